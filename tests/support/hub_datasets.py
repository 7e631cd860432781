"""Datasets as the hub lays them out: the real ids, files, columns and cards of conf/dataset, with few rows."""

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.support.hub import Hub

Row = dict[str, Any]


def parquet(rows: Sequence[Row], group: int = 7) -> bytes:
    """Rows as a Parquet file of several row groups."""
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), file, row_group_size=group)
    return file.getvalue()


def jsonl(rows: Sequence[Row]) -> bytes:
    """Rows as lines of JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def card(splits: dict[str, dict[str, str]]) -> bytes:
    """A README that says where the files of each subset and split are: subset -> split -> pattern."""
    lines = ["---", "configs:"]
    for subset, paths in splits.items():
        lines += [f"- config_name: {subset}", "  data_files:"]
        lines += [line for split, path in paths.items() for line in (f"  - split: {split}", f"    path: {path}")]
    return "\n".join([*lines, "---", "# A card", ""]).encode()


def halves(folder: str, split: str, rows: Sequence[Row]) -> dict[str, bytes]:
    """A split in two Parquet files, the first the smaller."""
    cut = len(rows) // 3
    return {
        f"{folder}/{split}-00000-of-00002.parquet": parquet(rows[:cut]),
        f"{folder}/{split}-00001-of-00002.parquet": parquet(rows[cut:]),
    }


def in_parquet(subsets: dict[str, dict[str, Sequence[Row]]]) -> dict[str, bytes]:
    """A dataset with a folder for each subset, and each split in two files."""
    places = {subset: {split: f"{subset}/{split}-*" for split in splits} for subset, splits in subsets.items()}
    files = {"README.md": card(places)}
    for subset, splits in subsets.items():
        for split, rows in splits.items():
            files |= halves(subset, split, rows)
    return files


def sentence(kind: str, n: int) -> str:
    """A made-up text of its own for each number."""
    return f"{kind} {n}: the sea reads nothing, letter {n * n % 97}, line {n}. " * (1 + n % 3)


PILE = [
    {"text": sentence("code", n) * (2 + n % 11), "meta": {"pile_set_name": ("Github", "Pile-CC", "ArXiv")[n % 3]}}
    for n in range(120)
]
C4 = [{"text": sentence("web", n), "timestamp": "2019-04-25T12:57:54Z", "url": f"https://{n}.org"} for n in range(60)]
WIKIPEDIA = [{"id": str(n), "url": f"https://{n}", "title": f"T{n}", "text": sentence("article", n)} for n in range(90)]
ACTS = [
    {"version_id": str(n), "type": "primary_legislation", "jurisdiction": "commonwealth", "citation": f"Act {n}"}
    | {"text": sentence("section", n)}
    for n in range(40)
]


def wikitext_rows(published: Path) -> list[Row]:
    """The rows of the hub for the published file: lines with their ends, blank ones empty."""
    lines = published.read_text(encoding="utf-8").split("\n")
    return [{"text": "" if not line.strip() else f"{line}\n"} for line in lines]


def add_known(hub: Hub, shared: Path) -> None:
    """Every dataset of conf/dataset under its real id; from the published files where there are such."""
    with gzip.open(shared / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        humaneval = [json.loads(line) for line in lines]
    gsm8k = [json.loads(line) for line in (shared / "gsm8k_test.jsonl").read_text("utf-8").splitlines()]
    hotpot = json.loads((shared / "hotpot_dev_v1_simplified.json").read_text("utf-8"))
    hotpot = [{"id": str(n), **row, "context": {"title": ["A"], "sentences": [["b"]]}} for n, row in enumerate(hotpot)]
    wikitext = wikitext_rows(shared / "wikitext-2-raw-test.txt")
    hub.add("openai/openai_humaneval", in_parquet({"openai_humaneval": {"test": humaneval}}))
    hub.add("openai/gsm8k", in_parquet({"main": {"test": gsm8k, "train": gsm8k[:9]}, "socratic": {"test": gsm8k[:9]}}))
    splits = {"validation": hotpot[:300], "train": hotpot[300:2000]}
    hub.add("hotpotqa/hotpot_qa", in_parquet({"distractor": splits, "fullwiki": {"train": hotpot[:9]}}))
    hub.add("Salesforce/wikitext", in_parquet({"wikitext-2-raw-v1": {"test": wikitext, "train": wikitext[:20]}}))
    articles = {"20231101.de": {"train": WIKIPEDIA[:9]}, "20231101.en": {"train": WIKIPEDIA}}
    hub.add("wikimedia/wikipedia", in_parquet(articles))
    web = {"README.md": card({"en": {"train": "en/c4-train.*.json.gz", "validation": "en/c4-validation.*.json.gz"}})}
    web["en/c4-train.00000-of-01024.json.gz"] = gzip.compress(jsonl(C4[:5]))
    web["en/c4-validation.00000-of-00008.json.gz"] = gzip.compress(jsonl(C4[:25]))
    web["en/c4-validation.00001-of-00008.json.gz"] = gzip.compress(jsonl(C4[25:]))
    hub.add("allenai/c4", web)
    pile = {
        "README.md": card({"default": {"train": "train/*", "validation": "val.jsonl.zst", "test": "test.jsonl.zst"}})
    }
    pile["train/00.jsonl.zst"] = zstandard.compress(jsonl(PILE[:3]))
    pile |= {
        "val.jsonl.zst": zstandard.compress(jsonl(PILE[:70])),
        "test.jsonl.zst": zstandard.compress(jsonl(PILE[70:])),
    }
    hub.add("monology/pile-uncopyrighted", pile)
    laws = {"README.md": card({"corpus": {"corpus": "corpus.jsonl"}}), "corpus.jsonl": jsonl(ACTS)}
    hub.add("isaacus/open-australian-legal-corpus", laws | {"open_australian_legal_corpus.py": b"raise SystemExit"})
