"""What an import would bring, before it is written: rows of `store.import_preview` in, a table or records out."""

from collections.abc import Sequence
from typing import Any

from rich.markup import escape

from rbpx.config.options import Format
from rbpx.display.numbers import UNKNOWN, short
from rbpx.display.records import print_records
from rbpx.display.tables import console, grid, put

_COUNTS = ("rows", "new", "models", "runs")


def print_preview(rows: Sequence[dict[str, Any]], title: str, format: Format) -> None:
    """Print a row for each family, text and quantity: how many, and between which S, D and C."""
    if format is not Format.table:
        print_records(rows, format)
        return
    shown = grid(title, ["family", "dataset", "quantity", *_COUNTS, "S", "D", "C"], left=3)
    for row in rows:
        names = [escape(str(row[name])) for name in ("family", "dataset", "quantity")]
        ends = [(row[f"{axis}_min"], row[f"{axis}_max"]) for axis in ("S", "D", "C")]
        ranges = [UNKNOWN if lo is None else f"{short(lo)}..{short(hi)}" for lo, hi in ends]
        shown.add_row(*names, *(f"{row[name]:,}" for name in _COUNTS), *ranges)
    put(console(), shown)
