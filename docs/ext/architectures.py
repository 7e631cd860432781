"""Which architectures of transformers are measured, and which are not: the table that `make census` wrote."""

import csv
from pathlib import Path

from ext.markdown import name, plain, table

TABLE = Path(__file__).parents[1] / "reference" / "architectures.csv"


def architectures() -> str:
    """Three tables: what is measured, what is refused, what could not be tried."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    measured = [row for row in rows if not row["refused"]]
    not_tried = [row for row in rows if row["refused"].startswith("not tried: ")]
    refused = [row for row in rows if row["refused"] and row not in not_tried]
    of_measured = ["architecture", "tokens it reads", "with one more", "behind the head", "in 16 bits"]
    return "\n".join(
        [
            f"## Measured: {len(measured)} of {len(rows)}\n",
            table(of_measured, [_measured(row) for row in measured]),
            f"## Refused: {len(refused)}\n",
            table(["architecture", "why"], [[name(row["architecture"]), plain(row["refused"])] for row in refused]),
            f"## Not tried: {len(not_tried)}\n",
            table(["architecture", "tokens it reads", "why"], [_not_tried(row) for row in not_tried]),
        ]
    )


def _measured(row: dict[str, str]) -> list[str]:
    same = row["in_16_bits"] == row["head"]
    context = "any number" if row["beyond"] == "no limit" else row["context"]
    beyond = "" if row["beyond"] == "no limit" else row["beyond"]
    return [name(row["architecture"]), context, beyond, row["head"], "the same" if same else plain(row["in_16_bits"])]


def _not_tried(row: dict[str, str]) -> list[str]:
    return [name(row["architecture"]), row["context"], plain(row["refused"].removeprefix("not tried: "))]
