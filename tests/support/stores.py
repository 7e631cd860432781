"""A family of four tiny models whose losses fall with size, and what lies in a store, read without rbpx."""

import hashlib
import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from tests.support.checkpoints import TINY_TEXT, build_checkpoint
from tests.support.commands import Answer

FAMILY = "mine"
# size -> hidden width, layers, and how well the frequent tokens are known: the larger, the better, as in real life
SHAPES = {"xs": (8, 1, 0.2), "s": (16, 1, 0.4), "m": (24, 2, 0.6), "l": (32, 3, 0.8)}
TWINS = "abcdefghefgh"  # each stands for a row without a token that ties with this letter, so the tie rules differ
RESAMPLES = "resamples=50"  # enough for an interval


@dataclass(frozen=True)
class Family:
    """Folders of the four models by size, and the text that they are measured on."""

    folders: dict[str, Path]
    text: Path

    def words(self, *sizes: str, name: str = FAMILY, text: Path | None = None) -> list[str]:
        """The overrides that name these sizes (all by default) and a text."""
        ids = ",".join(str(self.folders[size]) for size in sizes or SHAPES)
        path = self.text if text is None else text
        return ["model=hub", f"model.id=[{ids}]", f"model.family={name}", "dataset=file", f"dataset.path={path}"]


@dataclass(frozen=True)
class Measured:
    """A store, the family in it, and the answer of the command that made it."""

    store: Path
    family: Family
    answer: Answer


def build_member(folder: Path, size: str, seed: int = 0) -> Path:
    """One model of the family: random, but its logits rise with the counts of the tokens that the text is made of.

    The counts stand along the diagonal of the embedding, which layer norms cannot see; a final bias reads them there.
    """
    from safetensors.numpy import load_file, save_file
    from transformers import AutoTokenizer

    hidden, layers, strength = SHAPES[size]
    build_checkpoint("gpt2", folder, seed, hidden_size=hidden, layers=layers)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    often = Counter(token for text in TINY_TEXT for token in tokenizer(text)["input_ids"])
    weights = load_file(folder / "model.safetensors")
    rows_VD = weights["transformer.wte.weight"]
    for token, n in often.items():
        rows_VD[token] += np.float32(np.log1p(n) / hidden**0.5)
    assert len(tokenizer) <= len(rows_VD) - len(TWINS), "a twin would be a token of its own"
    rows_VD[-len(TWINS) :] = rows_VD[[tokenizer.convert_tokens_to_ids(letter) for letter in TWINS]]
    weights["transformer.ln_f.bias"] += np.float32(strength / hidden**0.5)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_jsonl(path: Path, *texts: str) -> Path:
    """A JSONL file of these texts."""
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


def run_folders(store: Path) -> dict[str, Path]:
    """The runs that lie in a store whole, by the name of their folder."""
    return {path.parent.name: path.parent for path in store.glob("runs/[!.]*/manifest.json")}


def manifests(store: Path) -> dict[str, dict[str, Any]]:
    """The manifest of each run, by run_id."""
    return {name: json.loads((path / "manifest.json").read_text()) for name, path in run_folders(store).items()}


def cell_records(store: Path) -> list[dict[str, Any]]:
    """Which run answers which request."""
    return [json.loads(path.read_text()) for path in sorted((store / "cells").glob("*.json"))]


def columns_of(run: Path, relation: str) -> dict[str, Any]:
    """A relation of one run as numpy columns, read by nothing but pyarrow."""
    table = pq.read_table(run / f"{relation}.parquet")
    return {name: table[name].to_numpy() for name in table.column_names}


def runs_by_size(store: Path, dtype: str = "float32") -> dict[str, dict[str, Any]]:
    """The tokens of the run of each size, with `S`, `vocab_size` and `run_id` from its manifest, in order of S."""
    facts = manifests(store)
    found = {
        record["size"]: columns_of(store / "runs" / record["run_id"], "tokens")
        | {name: facts[record["run_id"]][name] for name in ("non_embedding_params", "vocab_size")}
        | {"run_id": record["run_id"]}
        for record in cell_records(store)
        if facts[record["run_id"]]["dtype"] == dtype
    }
    return dict(sorted(found.items(), key=lambda item: item[1]["non_embedding_params"]))


def rank_by_hand(tokens: dict[str, Any], ties: str) -> Any:
    """Ranks by the three definitions, in numpy."""
    greater, tied = tokens["greater"].astype(float), tokens["ties"].astype(float)
    return {"pessimistic": greater + tied + 1, "optimistic": greater + 1, "mid": greater + tied / 2 + 1}[ties]


def snapshot(store: Path) -> dict[str, tuple[int, bytes]]:
    """Modification time and bytes of everything in a store, but for locks and the files without rows of its views."""
    files = [path for path in store.rglob("*") if path.is_file() and path.suffix != ".lock"]
    files = [path for path in files if "_columns" not in (path.stem, path.parent.name)]
    return {str(path.relative_to(store)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def assert_same_tokens(one: Path, other: Path) -> None:
    """Two runs are the same results as the contract means it: equal rows, ranks and logprobs but for rounding."""
    a, b = columns_of(one, "tokens"), columns_of(other, "tokens")
    for name in ("doc_id", "position", "token_id"):
        np.testing.assert_array_equal(a[name], b[name])
    for name in ("greater", "ties"):
        assert np.mean(a[name] != b[name]) <= 1e-3
    np.testing.assert_allclose(a["logprob"], b["logprob"], rtol=0, atol=1e-4)


def without_bytes(store: Path, to: Path) -> Path:
    """A copy of a store as earlier versions wrote it: tokens do not know which bytes they stand for."""
    shutil.copytree(store, to)
    for run in (to / "runs").glob("[!_]*"):
        path = run / "tokens.parquet"
        pq.write_table(pq.read_table(path).drop_columns(["first_byte", "n_bytes"]), path)
        reseal(run)
    return to


def write_unsealed(path: Path, record: dict[str, Any]) -> None:
    """Write a record as 0.4.0 did, without the seal that would tell that it was changed."""
    path.write_text(json.dumps({name: value for name, value in record.items() if name != "seal"}))


def reseal(run: Path) -> None:
    """Make a run that a test has rewritten pass for one that was measured so: its manifest names it by new hashes."""
    manifest = run / "manifest.json"
    facts = json.loads(manifest.read_text())
    for name in facts["files"]:
        facts["files"][name] = hashlib.sha256((run / name).read_bytes()).hexdigest()
    write_unsealed(manifest, facts)
