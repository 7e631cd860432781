"""What a store holds: its relations in, a table out."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from rbpx import relations
from rbpx.config import Format, Request
from rbpx.store import Store
from rbpx.tables.plain import console, grid, print_records, put


def print_status(store: Store, request: Request) -> None:
    """Print what a store holds, a row a family, dataset and protocol, and what failed."""
    runs = relations.table(store, "runs").to_pylist()
    failures = relations.table(store, "failures").to_pylist()
    if request.format is not Format.table:
        print_records(
            [*({"state": "done"} | r for r in runs), *({"state": "failed"} | f for f in failures)], request.format
        )
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
    sources: dict[tuple[str, str, str, str], list[Any]] = {}
    for row in relations.dataset(store, "imported").to_table().to_pylist() if store.import_files() else []:
        sources.setdefault((row["source"], row["family"], row["dataset"], row["ties"]), []).append(row)
    if sources:
        shown = grid("imported", ["source", "family", "dataset", "ties", "sizes", "observations"], left=5)
        for names, rows in sorted(sources.items()):
            shown.add_row(
                *map(escape, names), escape(", ".join(dict.fromkeys(r["size"] for r in rows))), str(len(rows))
            )
        _fold_sizes(shown, 4)
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
