"""Which architectures of transformers are measured, and which are not: the table that `make census` wrote."""

import csv
from pathlib import Path

from ext.markdown import name, plain

TABLE = Path(__file__).parents[1] / "reference" / "architectures.csv"
_BEYOND = {
    "reads on": "These read on beyond the context of their default configuration, in tokens",
    "fails": "These fail beyond it",
    "no limit": "These read any number of tokens",
}


def architectures() -> str:
    """What is measured and how much it reads, what comes behind the head, what is refused, what could not be tried."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    measured = [row for row in rows if not row["refused"]]
    not_tried = [row for row in rows if row["refused"].startswith("not tried: ")]
    refused = [row for row in rows if row["refused"] and row not in not_tried]
    reads = {beyond: [row for row in measured if row["beyond"] == beyond] for beyond in _BEYOND}
    rest = [row for row in measured if row["beyond"] not in _BEYOND]
    heads = [row for row in measured if row["head"] != "identity" or row["in_16_bits"] != row["head"]]
    return "\n\n".join(
        [
            f"## Measured: {len(measured)} of {len(rows)}",
            *(f"{said}: {_contexts(reads[beyond])}." for beyond, said in _BEYOND.items()),
            *(f"- {_contexts([row])}: {plain(row['beyond'])}" for row in rest),
            "## Behind the head",
            "\n".join(f"- {name(row['architecture'])}: {_head(row)}" for row in heads),
            f"## Refused: {len(refused)}",
            "\n".join(f"- {name(row['architecture'])}: {plain(row['refused'])}" for row in refused),
            f"## Not tried: {len(not_tried)}",
            f"No tiny form of these builds: {', '.join(name(row['architecture']) for row in not_tried)}.",
        ]
    )


def _contexts(rows: list[dict[str, str]]) -> str:
    return ", ".join(
        name(row["architecture"]) + ("" if row["beyond"] == "no limit" else f" {row['context']}") for row in rows
    )


def _head(row: dict[str, str]) -> str:
    same = row["in_16_bits"] == row["head"]
    return plain(row["head"] if same else f"{row['head']}; in 16 bits {row['in_16_bits']}")
