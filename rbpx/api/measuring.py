"""Measures from Python, and makes a row for each cell that was measured or failed."""

from collections.abc import Sequence
from typing import Final

from rbpx.config.keys.runs import GridKeys
from rbpx.display.table import table_of
from rbpx.display.terminal import console, print_tables
from rbpx.display.vocabulary import whole
from rbpx.errors import MeasureError, RbpxError
from rbpx.measure.results import Measured
from rbpx.measure.runner import measure_grids
from rbpx.store.store import Record, Store


def measure(requests: Sequence[GridKeys]) -> tuple[list[Measured], list[Record]]:
    """Measures cells that the stores do not hold, and returns each grid's result and a row for each of its cells.

    Raises:
        RbpxError: a request is wrong, or every cell failed because of its request.
        MeasureError: a text is not available, or every cell failed.
    """
    grids = measure_grids(requests, quiet=True)
    for grid_done in grids:
        if grid_done.error is not None:
            raise (MeasureError if grid_done.status == 1 else RbpxError)(grid_done.error)
    failures = [failure for each in grids for failure in each.failures]
    if failures and not any(each.cell_keys for each in grids):
        kind = RbpxError if all(failure.request_is_wrong for failure in failures) else MeasureError
        raise kind("; ".join(dict.fromkeys(f"{failure.cell} failed: {failure.error}" for failure in failures)))
    return grids, [row for each in grids for row in _rows(each)]


def _rows(measured: Measured) -> list[Record]:
    store = Store(measured.request.store)
    rows: list[Record] = []
    for key in measured.cell_keys:
        record = store.cell(key)
        if record is not None:
            facts = store.manifest(record["run_id"])
            names = {name: record[name] for name in ("family", "size", "dataset", "revision", "run_id")}
            of_run = ("protocol", "dtype", "non_embedding_params", "n_documents", "n_tokens", "cross_entropy_nats")
            rows.append({"state": "done", **names, **{name: facts[name] for name in of_run}, "error": None})
    rows.sort(key=lambda row: row["non_embedding_params"])
    return rows + [{"state": "failed", "cell": each.cell, "error": each.error} for each in measured.failures]


CELLS: Final = table_of(
    "cells",
    *((name, name) for name in ("family", "size", "dataset")),
    ("S", "non_embedding_params", whole), ("documents", "n_documents", whole), ("tokens", "n_tokens", whole),
    ("CE", "cross_entropy_nats", ".4f"),
)  # fmt: skip


def show_cells(records: Sequence[Record]) -> None:
    """Prints a row for each cell that a store holds, and a line for each that failed."""
    screen = console()
    print_tables(screen, [CELLS.of("cells", [row for row in records if row["state"] == "done"])])
    for row in records:
        if row["state"] == "failed":
            screen.print(f"{row['cell']} failed: {row['error']}", markup=False, soft_wrap=True)
