"""What a store holds: its relations in, a table out."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from rbpx import relations
from rbpx.config import Format, Request
from rbpx.imports import listed
from rbpx.store import Store
from rbpx.tables.plain import console, grid, print_records, put


def print_status(store: Store, request: Request) -> None:
    """Print what a store holds, a row a family, dataset and protocol, and what failed."""
    runs = relations.table(store, "runs").to_pylist()
    imports = listed(store)
    failures = relations.table(store, "failures").to_pylist()
    if request.format is not Format.table:
        states = {"done": runs, "imported": imports, "failed": failures}
        print_records([{"state": state} | row for state, rows in states.items() for row in rows], request.format)
        return
    screen = console()
    cells: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda r: r["non_embedding_params"]):
        cells.setdefault((run["family"], run["dataset"], run["protocol"], run["dtype"]), []).append(run)
    shown = grid(f"store {store.root}", ["family", "dataset", "protocol", "dtype", "sizes", "tokens"], left=5)
    for names, members in sorted(cells.items()):
        sizes = ", ".join(run["size"] for run in members)
        shown.add_row(*map(escape, names), escape(sizes), f"{sum(run['n_tokens'] for run in members):,}")
    if runs:
        _fold_sizes(shown, 4)
        put(screen, shown)
    if imports:
        shown = grid("imported", ["source", "family", "dataset", "file", "sizes", "k", "observations"], left=4)
        for one in imports:
            names = (one["source"], ", ".join(one["family"]), ", ".join(one["dataset"]), one["file"])
            counts = (len(one["size"]), len(one["k"]), one["n_observations"])
            shown.add_row(*map(escape, names), *(f"{count:,}" for count in counts))
        put(screen, shown)
    for failure in failures:
        screen.print(
            f"failed: {failure['family']} {failure['size']} on {failure['dataset']} at {failure['at']:%Y-%m-%d %H:%M}: "
            f"{failure['error']}",
            markup=False,
            soft_wrap=True,
        )


def _fold_sizes(table: Table, at: int) -> None:
    """A family may have many sizes."""
    column = table.columns[at]
    column.no_wrap, column.min_width, column.max_width = False, 12, 60
