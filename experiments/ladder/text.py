"""The training text of a ladder: Python sources of installed packages in, windows of tokens and their tokenizer out.

Files that share a span of tokens with an evaluation document are dropped.
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from rbpx.data.corpus import read_pydoc, read_stdlib
from rbpx.errors import RbpxError
from rbpx.files.entries import atomic_write, atomic_write_text

END_OF_TEXT = "<|endoftext|>"


def prepare_text(recipe: Any, folder: Path) -> None:
    """Write `windows.npy` [n_windows, context + 1], `tokenizer.json` and `text.json` (provenance) into `folder`.

    The windows are those of the whole text, in a seeded order; a training reads as many as its budget takes.

    Raises:
        RbpxError: a package is missing, or the text has fewer tokens than one step takes.
    """
    packages = find_packages(recipe)
    sources = [source for name, package in packages.items() for source in read_sources(name, package, recipe)]
    first: dict[str, tuple[str, str, str]] = {}
    for source in sources:
        first.setdefault(source[2], source)  # packages vendor each other
    files = list(first.values())
    random.Random(recipe.seed).shuffle(files)
    texts = [text for _, _, text in files]
    tokenizer = train_tokenizer(texts, recipe.vocab_size)
    encoded = _encode(tokenizer, texts)
    evaluation = _encode(tokenizer, [text for _, text in (*read_stdlib(), *read_pydoc())])
    keep = keep_apart(encoded, evaluation, recipe.text.span)
    kept = [(file, ids) for file, ids, is_kept in zip(files, encoded, keep, strict=True) if is_kept]

    end = np.asarray([tokenizer.token_to_id(END_OF_TEXT)], np.uint16)
    stream = np.concatenate([part for _, ids in kept for part in (ids, end)])
    width = recipe.context + 1
    windows = stream[: len(stream) // width * width].reshape(-1, width)
    if len(windows) < recipe.windows_per_step:
        raise RbpxError(
            f"the packages give {len(stream):,} tokens, but one step of the recipe takes "
            f"{recipe.windows_per_step * width:,}; name more packages or raise text.package_bytes"
        )
    windows = windows[np.random.default_rng(recipe.seed).permutation(len(windows))]

    digest = hashlib.sha256("".join(f"{package}\0{path}\0{text}\0" for (package, path, text), _ in kept).encode())
    with atomic_write(folder / "windows.npy") as temporary, temporary.open("wb") as file:
        np.save(file, windows)
    with atomic_write(folder / "tokenizer.json") as temporary:
        tokenizer.save(str(temporary))
    provenance = {
        "text_hash": digest.hexdigest()[:16],
        "windows_hash": hashlib.sha256(windows.tobytes()).hexdigest()[:16],
        "files": len(kept),
        "files_dropped_for_shared_spans": len(files) - len(kept),
        "bytes": sum(len(text.encode()) for (_, _, text), _ in kept),
        "tokens_available": len(stream),
        "windows": len(windows),
        "evaluation_python": sys.version.split()[0],
        "packages": [_package_facts(name, package) for name, package in packages.items()],
    }
    # last, as the sign that the text is complete
    atomic_write_text(folder / "text.json", json.dumps(provenance, indent=1) + "\n")


def find_packages(recipe: Any) -> dict[str, Distribution]:
    """The installed distribution of each package of the recipe, in the version that it names, if it names one.

    Raises:
        RbpxError: a package is missing or has another version.
    """
    site = recipe.text.site
    available = distributions() if site is None else distributions(path=[site])
    installed = {d.metadata["Name"].lower().replace("_", "-"): d for d in available}
    packages = recipe.text.packages
    absent = [
        f"{name} {version}".strip()
        for name, version in packages.items()
        if name not in installed or version not in ("", installed[name].version)
    ]
    if absent:
        raise RbpxError(
            f"the training text needs {len(absent)} packages that are not installed in the recipe's version: "
            f"{', '.join(absent[:5])}{' ...' if len(absent) > 5 else ''}; install them with "
            "pip install --no-deps --target FOLDER -r experiments/ladder/packages.txt and give text.site=FOLDER"
        )
    return {name: installed[name] for name in packages}


def read_sources(name: str, package: Distribution, recipe: Any) -> list[tuple[str, str, str]]:
    """(package, path, text) of Python files in a seeded order, up to `package_bytes`, without tests and tables."""
    paths = sorted(str(path) for path in package.files or [] if str(path).endswith(".py"))
    random.Random(f"{recipe.seed} {name}").shuffle(paths)
    n_bytes, kept = 0, []
    for path in paths:
        if set(recipe.text.exclude_parts).intersection(path.split("/")) or path.split("/")[-1].startswith("test_"):
            continue
        raw = Path(str(package.locate_file(path))).read_bytes()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if _is_handwritten(text) and n_bytes + len(raw) <= recipe.text.package_bytes:
            n_bytes += len(raw)
            kept.append((name, path, text))
    return kept


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train a byte-level BPE of `vocab_size` entries; every text round-trips, and id 0 ends a document."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def keep_apart(encoded: list[np.ndarray], evaluation: list[np.ndarray], span: int) -> list[bool]:
    """Whether to keep each file: those that share no run of `span` tokens with an evaluation document."""
    evaluation_hashes = np.unique(np.concatenate([_span_hashes(ids, span) for ids in evaluation]))
    keep = []
    for ids in encoded:
        hashes = _span_hashes(ids, span)
        nearest = np.searchsorted(evaluation_hashes, hashes) % len(evaluation_hashes)
        keep.append(not bool((evaluation_hashes[nearest] == hashes).any()))
    return keep


def _span_hashes(ids: np.ndarray, span: int) -> np.ndarray:
    """A 64-bit hash of each run of `span` tokens; equal runs have equal hashes."""
    if len(ids) < span:
        return np.empty(0, np.uint64)
    powers = np.cumprod(np.full(span, 0x9E3779B97F4A7C15, np.uint64))[::-1]
    return np.lib.stride_tricks.sliding_window_view(ids.astype(np.uint64) + np.uint64(1), span) @ powers


def _is_handwritten(text: str) -> bool:
    """False for generated tables: very long lines, or digits as more than a fifth of the characters."""
    lines = text.count("\n") + 1
    digits = sum(map(text.count, "0123456789"))
    return 200 <= len(text) <= 100_000 and len(text) / lines <= 100 and digits <= len(text) / 5


def _encode(tokenizer: Tokenizer, texts: list[str]) -> list[np.ndarray]:
    return [np.asarray(e.ids, np.uint16) for e in tokenizer.encode_batch(texts, add_special_tokens=False)]


def _package_facts(name: str, package: Distribution) -> dict[str, str]:
    meta = package.metadata
    classifiers = [c.split("::")[-1].strip() for c in meta.get_all("Classifier") or [] if c.startswith("License ::")]
    licence = meta["License-Expression"] or ", ".join(classifiers) or (meta["License"] or "").split("\n")[0]
    if not licence:  # not in the metadata, but there may be a licence file
        licence = next((f"see {f}" for f in package.files or [] if "LICENSE" in str(f).upper()), "")
    return {"name": name, "version": package.version, "licence": licence}
