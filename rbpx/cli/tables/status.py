"""What a store holds and the state of the cells of a grid: relations or states in, tables out.

The states of the cells of a grid, or of a store, in a table of models by texts.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.display.records import print_records
from rbpx.display.terminal import Grid, console, grid, put
from rbpx.display.vocabulary import UNKNOWN, time
from rbpx.errors import number_of
from rbpx.groups.group import MEASURED
from rbpx.groups.select.sizes import choices
from rbpx.store.cell_states import CellState, LastHeartbeat, State, read_heartbeats
from rbpx.store.imports.kept import list_imports
from rbpx.store.relations import records_alone
from rbpx.store.store import Record, Store

Row = tuple[str, str]  # family, size
Column = tuple[str, str | None]  # text and how it was read, revision
_COLUMN = ("dataset", "protocol", "dtype")
_MOST_COLUMNS = 10  # where there are more, the revisions of a text are counted in one


def of_grid(states: Sequence[CellState]) -> Grid:
    """The cells that were named."""
    words = {(_row(s.cell.names()), _column(s.cell.names())): _word(s.state, s.heartbeat) for s in states}
    return _table(words, list(dict.fromkeys(column for _, column in words)))


def of_store(
    runs: Sequence[Record], failures: Sequence[Record], heartbeats: Mapping[str, LastHeartbeat]
) -> Grid | None:
    """All cells of a store; a model measured on one of the texts of its family is missing on the others.

    Args:
        runs: the relation `runs`.
        failures: the records.
        heartbeats: of cells that are being measured.

    Returns:
        None where the store has no cells.
    """
    words: dict[tuple[Row, Column], str] = {}
    for failure in failures:
        words[_row(failure), _column(failure)] = State.failed.value
    for beat in heartbeats.values():
        state = State.running if beat.alive else State.stopped
        words[_row(beat.facts), _column(beat.facts)] = _word(state, beat)
    for run in sorted(runs, key=lambda run: (run["family"], run["non_embedding_params"], run["size"])):
        words[_row(run), _column(run)] = State.done.value
    order = {_row(run): run["non_embedding_params"] for run in runs}
    ordered = dict(sorted(words.items(), key=lambda item: (item[0][0][0], order.get(item[0][0], float("inf")))))
    columns = sorted({column for _, column in words}, key=lambda column: (column[0], column[1] or ""))
    return _table(ordered, columns) if words else None


def _row(names: Record) -> Row:
    return names["family"], names["size"]


def _column(names: Record) -> Column:
    """A text, and how it was read unless as usual; records of older versions say less."""
    usual = ("", "paper", "float32")
    values = [names.get(name, plain) for name, plain in zip(_COLUMN, usual, strict=True)]
    said = " ".join(str(value) for value, plain in zip(values, usual, strict=True) if value not in (plain, None))
    return said, names.get("revision")


def _word(state: State, heartbeat: LastHeartbeat | None) -> str:
    if state is State.running and heartbeat is not None and heartbeat.share is not None:
        return f"{state.value} {heartbeat.share:.0%}"
    return state.value


def _table(words: Mapping[tuple[Row, Column], str], columns: Sequence[Column]) -> Grid:
    if len(columns) > _MOST_COLUMNS and any(revision for _, revision in columns):
        words, columns = _folded(words), list(dict.fromkeys((text, None) for text, _ in columns))
    used = {(family, column) for (family, _), column in words}
    headings = [" ".join(part for part in column if part) for column in columns]
    shown = grid("state of the cells", ["family", "size", *map(escape, headings)], left=2 + len(columns))
    for row in dict.fromkeys(row for row, _ in words):
        absent = [State.missing.value if (row[0], column) in used else UNKNOWN for column in columns]
        cells = [words.get((row, column), word) for column, word in zip(columns, absent, strict=True)]
        shown.add_row(*map(escape, (*row, *cells)))
    return shown


def _folded(words: Mapping[tuple[Row, Column], str]) -> dict[tuple[Row, Column], str]:
    """The revisions of each model on each text, counted by state: a size need not have those of another."""
    states: dict[tuple[Row, Column], Counter[str]] = {}
    for (row, (text, _)), word in words.items():
        states.setdefault((row, (text, None)), Counter())[word] += 1
    return {
        cell: ", ".join(word if n == 1 == len(counts) else f"{n} {word}" for word, n in counts.items())
        for cell, counts in states.items()
    }


def lines_of_heartbeats(heartbeats: Sequence[LastHeartbeat]) -> list[str]:
    """A line for each cell that is being measured or was stopped: progress, speed and time left."""
    lines = []
    for beat in heartbeats:
        facts: dict[str, Any] = beat.facts
        where = f"process {facts['pid']} on {facts['host']} since {facts['since'][:16].replace('T', ' ')} UTC"
        parts = [f"cell {facts['cell']} of {facts['cells']} that it measures", where]
        if beat.share is not None:
            parts.insert(0, f"{beat.share:.0%} of {facts['n_tokens']:,} tokens")
        if beat.alive and beat.left_s is not None:
            parts[1:1] = [f"{facts['tokens_per_s']:,.0f} tokens/s", f"{time(beat.left_s)} left"]
        state = State.running if beat.alive else State.stopped
        lines.append(f"{state.value}: {facts['family']} {facts['size']} on {facts['dataset']}, {', '.join(parts)}")
    return lines


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
        store = Store(name)
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
    runs = [run for run in store.runs() if _meets(run, narrowed)]
    imports = [one for one in list_imports(store) if _meets(one, narrowed)]
    failed = [failure for failure in store.records("failures") if _meets(failure, narrowed)]
    with records_alone(store, "failures") as connection:
        failures = connection.sql("FROM failures").to_arrow_table().to_pylist()
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
