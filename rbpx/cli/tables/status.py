"""What a store holds and the state of the cells of a grid: relations or states in, tables out."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from rbpx.cli.tables.cell_states import lines_of_heartbeats, of_grid, of_store
from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.counts import number_of
from rbpx.display.records import print_records
from rbpx.display.tables import console, grid, put
from rbpx.groups.group import MEASURED
from rbpx.groups.select.sizes import choices
from rbpx.store.cell_states import CellState, State
from rbpx.store.heartbeat import read_heartbeats
from rbpx.store.imports.kept import list_imports
from rbpx.store.named import open_store
from rbpx.store.sql import relations
from rbpx.store.store import Record, Store

_LOGGER = logging.getLogger(__name__)


_NARROWED = {
    "sources": "source",
    "families": "family",
    "sizes": "size",
    "datasets": "dataset",
    "protocols": "protocol",
    "revisions": "revision",
}


def print_status(requests: Sequence[Request], cell_states: Sequence[CellState] | None, narrowing: str = "") -> None:
    """Print the state of the named cells, or else what each store holds of what the requests narrow to.

    Args:
        requests: of the jobs; the first one says how to print.
        cell_states: the cells of the named grids; a cell that several jobs name is shown once. None: no grid is named.
        narrowing: what was typed to narrow it.
    """
    if cell_states is not None:
        _print_grid(list({one.cell: one for one in cell_states}.values()), requests[0].format)
        return
    for name in dict.fromkeys(request.store for request in requests):
        store = open_store(name)
        if not _print_store(store, requests):
            matches = f" that matches {narrowing}; drop that to see all" if narrowing else " yet; measure first"
            there = (
                f"holds nothing{matches}" if store.root.is_dir() else "does not exist; name another with --store DIR"
            )
            _LOGGER.info(f"store={name} {there}")


def _print_grid(cell_states: Sequence[CellState], format: Format) -> None:
    if format is not Format.table:
        print_records([one.row() for one in cell_states], format)
        return
    screen = console()
    if cell_states:  # none of a part of the grid
        put(screen, of_grid(cell_states))
    counts = Counter(one.state for one in cell_states)
    states = [f"{counts[state]} {state.value}" for state in State if counts[state]]
    heartbeats = [one.heartbeat for one in cell_states if one.heartbeat is not None]
    pace = sum(beat.facts["tokens_per_s"] or 0.0 for beat in heartbeats if beat.alive)
    counted = ": ".join([number_of(len(cell_states), "cell"), *([", ".join(states)] if states else [])])
    lines = [f"{counted}{f'; {pace:,.0f} tokens/s' if pace else ''}"]
    lines += lines_of_heartbeats(heartbeats)
    lines += [f"failed: {one.cell}: {one.error}" for one in cell_states if one.error is not None]
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)


def _print_store(store: Store, requests: Sequence[Request]) -> bool:
    """Print what a store holds by family, dataset and protocol, then the states of cells, what runs and what failed.

    Returns:
        Whether it holds anything that the requests narrow to.
    """
    narrowed = [choices(request) for request in requests]
    runs = [run for run in relations.table(store, "runs").to_pylist() if _meets(run, narrowed)]
    imports = [one for one in list_imports(store) if _meets(one, narrowed)]
    failed = [failure for failure in store.records("failures") if _meets(failure, narrowed)]
    failures = relations.table(store, "failures").to_pylist()
    failures = [failure for failure in failures if failure["cell_key"] in {each["cell_key"] for each in failed}]
    answered = {run["cell_key"] for run in runs}
    heartbeats = {key: beat for key, beat in read_heartbeats(store).items() if key not in answered}
    heartbeats = {key: beat for key, beat in heartbeats.items() if _meets(beat.facts, narrowed)}
    request, found = requests[0], bool(runs or imports or failures or heartbeats)
    if request.format is not Format.table:
        states = {"done": runs, "imported": imports, "failed": failures}
        states["running"] = [beat.facts for beat in heartbeats.values() if beat.alive]
        states["stopped"] = [beat.facts for beat in heartbeats.values() if not beat.alive]
        print_records([{"state": state} | row for state, rows in states.items() for row in rows], request.format)
        return found
    screen = console()
    cells: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda r: (r["non_embedding_params"], r["size"])):
        cells.setdefault((run["family"], run["dataset"], run["protocol"], run["dtype"]), []).append(run)
    shown = grid(f"store {store.name}", ["family", "dataset", "protocol", "dtype", "sizes", "tokens"], left=5)
    for names, members in sorted(cells.items()):
        sizes = ", ".join(f"{size} ({n})" if n > 1 else size for size, n in Counter(r["size"] for r in members).items())
        shown.add_row(*map(escape, names), escape(sizes), f"{sum(run['n_tokens'] for run in members):,}")
    if runs:
        _fold(shown, 4)
        put(screen, shown)
    if imports:
        shown = grid("imported", ["source", "family", "dataset", "file", "sizes", "k", "observations"], left=4)
        for one in imports:
            file = f"{one['file']}, where {one['where']}" if "where" in one else one["file"]
            names = (one["source"], ", ".join(one["family"]), ", ".join(one["dataset"]), file)
            counts = (len(one["size"]), len(one["k"]), one["n_observations"])
            shown.add_row(*map(escape, names), *(f"{count:,}" for count in counts))
        for column in (2, 3) if any("where" in one for one in imports) else (2,):
            _fold(shown, column)
        put(screen, shown)
    cells_table = of_store(runs, failed, heartbeats)
    if cells_table is not None:
        put(screen, cells_table)
    for line in lines_of_heartbeats(list(heartbeats.values())):
        screen.print(line, markup=False, soft_wrap=True)
    for failure in failures:
        screen.print(
            f"failed: {failure['family']} {failure['size']} on {failure['dataset']} at {failure['at']:%Y-%m-%d %H:%M}: "
            f"{failure['error']}",
            markup=False,
            soft_wrap=True,
        )
    return found


def _meets(record: Record, narrowed: Sequence[Mapping[str, list[str] | None]]) -> bool:
    """Whether one of several choices is of a run, a failure, a heartbeat, or an import, which has several names."""
    named = {"source": MEASURED, **record}
    return any(
        all(
            wanted is None or set(wanted).intersection(value if isinstance(value, list) else [value])
            for wanted, value in ((choice[key], named.get(name)) for key, name in _NARROWED.items())
        )
        for choice in narrowed
    )


def _fold(table: Table, at: int) -> None:
    """A family may have many sizes, and a file many texts."""
    column = table.columns[at]
    column.no_wrap, column.min_width, column.max_width = False, 12, 60
