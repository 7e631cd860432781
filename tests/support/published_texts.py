"""The published files of known datasets in the shared reference data, and their texts read without rbpx."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

# dataset -> its file, its documents
FILES = {
    "humaneval": ("HumanEval.jsonl.gz", 164),
    "hotpotqa": ("hotpot_dev_v1_simplified.json", 7405),
    "gsm8k": ("gsm8k_test.jsonl", 1319),
    "wikitext": ("wikitext-2-raw-test.txt", 60),
    "auslegal": ("south_australian_legislation_sample.jsonl", 110),
}
_JOINED: dict[str, Callable[[dict[str, Any]], str]] = {
    "humaneval": lambda row: row["prompt"] + "\n" + row["canonical_solution"],
    "hotpotqa": lambda row: row["question"] + "\n" + row["answer"],
    "gsm8k": lambda row: row["question"] + "\n" + row["answer"],
    "auslegal": lambda row: row["text"],
}


def published(name: str, path: Path) -> list[str]:
    """The texts of a published file, in its order."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    if name == "wikitext":
        articles = re.findall(r"(?ms)^ = [^=\n]+ = \n \n.*?(?=\n \n = [^=\n]+ = \n \n|\n?\Z)", text)
        return [re.sub(r"(?m)^ $", "", article).rstrip("\n") for article in articles]  # as blank lines are on the hub
    rows = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.split("\n") if line]
    return [_JOINED[name](row) for row in rows]
