"""Prepares the training text of a ladder: sources of installed packages, cut into token windows.

Drops files that share a span of tokens with an evaluation document.
"""

import hashlib
import json
import random
import sys
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from rbpx.config.recipe import Recipe
from rbpx.data.corpus import read_pydoc, read_stdlib
from rbpx.errors import RbpxError
from rbpx.files.entries import atomic_write, atomic_write_text
from rbpx.train.model import END_OF_TEXT, train_tokenizer

Ids = np.ndarray


@dataclass(frozen=True)
class SourceFile:
    """One Python file of an installed package."""

    package: str
    path: str
    text: str


def find_packages(recipe: Recipe) -> dict[str, Distribution]:
    """The installed distribution of each package of the recipe.

    Raises:
        RbpxError: a package is missing or has another version.
    """
    site, packages = recipe.text.site, recipe.text.packages
    available = distributions() if site is None else distributions(path=[site])
    installed = {d.metadata["Name"].lower().replace("_", "-"): d for d in available}
    mismatches = [
        f"{name} {version}".strip()
        for name, version in packages.items()
        if name not in installed or (version and version != installed[name].version)
    ]
    if mismatches:
        raise RbpxError(
            f"the training text needs {len(mismatches)} packages that are not installed in the recipe's version: "
            f"{', '.join(mismatches[:5])}{' ...' if len(mismatches) > 5 else ''}; install them with "
            "pip install --no-deps --target FOLDER -r experiments/ladder_text.txt and give text.site=FOLDER"
        )
    return {name: installed[name] for name in packages}


def _is_handwritten(text: str) -> bool:
    """False for generated tables: very long lines, or digits as more than a fifth of the characters."""
    lines = text.count("\n") + 1
    digits = sum(map(text.count, "0123456789"))
    return 200 <= len(text) <= 100_000 and len(text) / lines <= 100 and digits <= len(text) / 5


def read_sources(name: str, package: Distribution, recipe: Recipe) -> list[SourceFile]:
    """Python files of one package in a seeded order, up to `package_bytes`; tests and generated tables are left out."""
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
        if not _is_handwritten(text) or n_bytes + len(raw) > recipe.text.package_bytes:
            continue
        n_bytes += len(raw)
        kept.append(SourceFile(name, path, text))
    return kept


def _span_hashes(ids: Ids, span: int) -> np.ndarray:
    """A 64-bit hash of each run of `span` tokens; equal runs have equal hashes."""
    if len(ids) < span:
        return np.empty(0, np.uint64)
    prime = np.uint64(0x9E3779B97F4A7C15)
    powers = np.cumprod(np.full(span, prime, np.uint64))[::-1]
    windows = np.lib.stride_tricks.sliding_window_view(ids.astype(np.uint64) + np.uint64(1), span)
    return windows @ powers


def drop_shared(encoded: list[Ids], evaluation: list[Ids], span: int) -> list[bool]:
    """Whether to keep each file: those that share no run of `span` tokens with an evaluation document."""
    evaluation_hashes = np.unique(np.concatenate([_span_hashes(ids, span) for ids in evaluation]))
    keep = []
    for ids in encoded:
        hashes = _span_hashes(ids, span)
        nearest = np.searchsorted(evaluation_hashes, hashes)
        nearest[nearest == len(evaluation_hashes)] = 0
        keep.append(not bool((evaluation_hashes[nearest] == hashes).any()))
    return keep


def _encode(tokenizer: Tokenizer, texts: list[str]) -> list[Ids]:
    return [np.asarray(e.ids, np.uint16) for e in tokenizer.encode_batch(texts, add_special_tokens=False)]


def prepare_text(recipe: Recipe, folder: Path) -> None:
    """Write `windows.npy` [n_windows, context + 1], `tokenizer.json` and `text.json` (provenance) into `folder`.

    The file has all windows of the text, in a seeded order; a training reads as many of them as its budget takes.

    Raises:
        RbpxError: a package is missing, or the text has fewer tokens than one step takes.
    """
    packages = find_packages(recipe)
    files, contents = [], set()
    for name, package in packages.items():
        for source in read_sources(name, package, recipe):
            content = hashlib.sha256(source.text.encode()).digest()
            if content not in contents:  # packages vendor each other
                contents.add(content)
                files.append(source)
    random.Random(recipe.seed).shuffle(files)
    tokenizer = train_tokenizer([f.text for f in files], recipe.vocab_size)
    encoded = _encode(tokenizer, [f.text for f in files])
    evaluation = _encode(tokenizer, [text for _, text in (*read_stdlib(), *read_pydoc())])
    keep = drop_shared(encoded, evaluation, recipe.text.span)
    kept = [(f, ids) for f, ids, is_kept in zip(files, encoded, keep, strict=True) if is_kept]

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

    digest = hashlib.sha256()
    for source, _ in kept:
        digest.update(f"{source.package}\0{source.path}\0{source.text}\0".encode())
    with atomic_write(folder / "windows.npy") as temporary, temporary.open("wb") as file:
        np.save(file, windows)
    with atomic_write(folder / "tokenizer.json") as temporary:
        tokenizer.save(str(temporary))
    provenance = {
        "text_hash": digest.hexdigest()[:16],
        "windows_hash": hashlib.sha256(windows.tobytes()).hexdigest()[:16],
        "files": len(kept),
        "files_dropped_for_shared_spans": len(files) - len(kept),
        "bytes": sum(len(f.text.encode()) for f, _ in kept),
        "tokens_available": len(stream),
        "windows": len(windows),
        "evaluation_python": sys.version.split()[0],
        "packages": [_package_facts(name, package) for name, package in packages.items()],
    }
    atomic_write_text(
        folder / "text.json", json.dumps(provenance, indent=1) + "\n"
    )  # last, as the sign that the text is complete


def _package_facts(name: str, package: Distribution) -> dict[str, str]:
    meta = package.metadata
    classifiers = [c.split("::")[-1].strip() for c in meta.get_all("Classifier") or [] if c.startswith("License ::")]
    licence = meta["License-Expression"] or ", ".join(classifiers) or (meta["License"] or "").split("\n")[0]
    if not licence:  # not in the metadata, but there may be a licence file
        licence = next((f"see {f}" for f in package.files or [] if "LICENSE" in str(f).upper()), "")
    return {"name": name, "version": package.version, "licence": licence}
