"""What a store holds and the state of the cells of a grid: runs or states in, tables out."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.display.records import print_records
from rbpx.display.terminal import Grid, console, grid, put
from rbpx.display.vocabulary import UNKNOWN, time
from rbpx.errors import number_of
from rbpx.runs.group import MEASURED
from rbpx.runs.select.sizes import choices
from rbpx.store.cell_states import CellState, LastHeartbeat, State, read_heartbeats
from rbpx.store.imports.kept import list_imports
from rbpx.store.schema import FAILURES
from rbpx.store.store import Record, Store

Row = tuple[str, str]  # family, size
Column = tuple[str, str | None]  # text and how it was read, revision
_COLUMN: Final = {"dataset": "", "protocol": "paper", "dtype": "float32"}  # with what is usual, which is not said
_MOST_COLUMNS: Final = 10  # where there are more, the revisions of a text are counted in one
_MOST_ROWS: Final = 60  # where there are more, models that are done everywhere are counted
_NARROWED: Final = {
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
            logging.getLogger(__name__).info(f"store={name} {there}")


def _print_grid(cell_states: Sequence[CellState], format: Format) -> None:
    if format is not Format.table:
        print_records([one.row() for one in cell_states], format)
        return
    screen = console()
    names = [one.cell.names() for one in cell_states]
    words = {_place(of): _word(one.state, one.heartbeat) for of, one in zip(names, cell_states, strict=True)}
    lines: list[str] = []
    if words:  # none of a part of the grid
        table, lines = states_table(words, list(dict.fromkeys(column for _, column in words)))
        if table.rows:
            put(screen, table)
    counts = Counter(one.state for one in cell_states)
    states = [f"{counts[state]} {state.value}" for state in State if counts[state]]
    heartbeats = [one.heartbeat for one in cell_states if one.heartbeat is not None]
    pace = sum(beat.facts["tokens_per_s"] or 0.0 for beat in heartbeats if beat.alive)
    counted = ": ".join([number_of(len(cell_states), "cell"), *([", ".join(states)] if states else [])])
    lines += [f"{counted}{f'; {pace:,.0f} tokens/s' if pace else ''}", *lines_of_heartbeats(heartbeats)]
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
    failures = [failure for failure in store.records("failures") if _meets(failure, narrowed)]
    answered = {run["cell_key"] for run in runs}
    heartbeats = [beat for key, beat in read_heartbeats(store).items() if key not in answered]
    heartbeats = [beat for beat in heartbeats if _meets(beat.facts, narrowed)]
    request, found = requests[0], bool(runs or imports or failures or heartbeats)
    if request.format is not Format.table:
        states = {"done": runs, "imported": imports}
        states["failed"] = [{name: failure.get(name) for name in FAILURES.names} for failure in failures]
        states["running"] = [beat.facts for beat in heartbeats if beat.alive]
        states["stopped"] = [beat.facts for beat in heartbeats if not beat.alive]
        print_records([{"state": state} | row for state, rows in states.items() for row in rows], request.format)
        return found
    screen = console()
    if runs:
        put(screen, _runs_table(store, runs))
    if imports:
        put(screen, _imports_table(imports))
    lines: list[str] = []
    if runs or failures or heartbeats:
        table, lines = store_table(runs, failures, heartbeats)
        if table.rows:
            put(screen, table)
    lines += lines_of_heartbeats(heartbeats)
    for failure in failures:
        at = str(failure["at"])[:16].replace("T", " ")
        lines.append(
            f"failed: {failure['family']} {failure['size']} on {failure['dataset']} at {at}: {failure['error']}"
        )
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)
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


def _runs_table(store: Store, runs: Sequence[Record]) -> Grid:
    cells: dict[tuple[str, ...], list[Record]] = {}
    for run in sorted(runs, key=lambda r: (r["non_embedding_params"], r["size"])):
        cells.setdefault(tuple(run[name] for name in ("family", "dataset", "protocol", "dtype")), []).append(run)
    table = grid(f"store {store.name}", ["family", "dataset", "protocol", "dtype", "sizes", "tokens"], left=5)
    for names, members in sorted(cells.items()):
        sizes = ", ".join(f"{size} ({n})" if n > 1 else size for size, n in Counter(r["size"] for r in members).items())
        table.add_row(*map(escape, (*names, sizes)), f"{sum(run['n_tokens'] for run in members):,}")
    _fold(table, 4)
    return table


def _imports_table(imports: Sequence[Record]) -> Grid:
    table = grid("imported", ["source", "family", "dataset", "file", "sizes", "k", "observations"], left=4)
    for one in imports:
        file = f"{one['file']}, where {one['where']}" if "where" in one else one["file"]
        names = (one["source"], ", ".join(one["family"]), ", ".join(one["dataset"]), file)
        counts = (len(one["size"]), len(one["k"]), one["n_observations"])
        table.add_row(*map(escape, names), *(f"{count:,}" for count in counts))
    for column in (2, 3) if any("where" in one for one in imports) else (2,):
        _fold(table, column)
    return table


def _fold(table: Table, at: int) -> None:
    """A family may have many sizes, and a file many texts."""
    column = table.columns[at]
    column.no_wrap, column.min_width, column.max_width = False, 12, 60


def store_table(
    runs: Sequence[Record], failures: Sequence[Record], heartbeats: Sequence[LastHeartbeat]
) -> tuple[Grid, list[str]]:
    """All cells of a store; a model measured on one of the texts of its family is missing on the others.

    Args:
        runs: the relation `runs`.
        failures: the records.
        heartbeats: of cells that are being measured.
    """
    words = {_place(failure): State.failed.value for failure in failures}
    for beat in heartbeats:
        words[_place(beat.facts)] = _word(State.running if beat.alive else State.stopped, beat)
    for run in runs:
        words[_place(run)] = State.done.value
    S = {_place(run)[0]: (run["non_embedding_params"], run["size"]) for run in runs}
    last = (float("inf"), "")
    ordered = dict(sorted(words.items(), key=lambda item: (item[0][0][0], S.get(item[0][0], last))))
    return states_table(ordered, sorted({column for _, column in words}, key=lambda c: (c[0], c[1] or "")))


def _place(names: Record) -> tuple[Row, Column]:
    """The row and the column of a cell: a text, and how it was read unless as usual; older records say less."""
    values = [names.get(name, usual) for name, usual in _COLUMN.items()]
    said = [str(v) for v, usual in zip(values, _COLUMN.values(), strict=True) if v not in (usual, None)]
    return (names["family"], names["size"]), (" ".join(said), names.get("revision"))


def _word(state: State, heartbeat: LastHeartbeat | None) -> str:
    if state is State.running and heartbeat is not None and heartbeat.share is not None:
        return f"{state.value} {heartbeat.share:.0%}"
    return state.value


def states_table(words: Mapping[tuple[Row, Column], str], columns: Sequence[Column]) -> tuple[Grid, list[str]]:
    """A table of models by texts, and a line for what is left out of it."""
    if len(columns) > _MOST_COLUMNS and any(revision for _, revision in columns):
        words, columns = _folded(words), list(dict.fromkeys((text, None) for text, _ in columns))
    used = {(family, column) for (family, _), column in words}
    headings = [" ".join(part for part in column if part) for column in columns]
    table = grid("state of the cells", ["family", "size", *map(escape, headings)], left=2 + len(columns))
    shown: dict[Row, list[str]] = {}
    for row in dict.fromkeys(row for row, _ in words):
        absent = [State.missing.value if (row[0], column) in used else UNKNOWN for column in columns]
        shown[row] = [words.get((row, column), word) for column, word in zip(columns, absent, strict=True)]
    n_all, lines = len(shown), []
    if n_all > _MOST_ROWS:
        shown = {row: cells for row, cells in shown.items() if not all(_is_done(cell) for cell in cells)}
        lines = [f"{n_all - len(shown):,} of {n_all:,} models are done on all texts of their families, and not shown."]
        if len(shown) > _MOST_ROWS:
            lines.append(f"{len(shown) - _MOST_ROWS:,} more that are not; narrow with family=, size= or dataset=.")
            shown = dict(list(shown.items())[:_MOST_ROWS])
    for row, cells in shown.items():
        table.add_row(*map(escape, (*row, *cells)))
    return table, lines


def _is_done(word: str) -> bool:
    """Whether nothing is left to do in a cell, or in several that are counted in one."""
    return word == UNKNOWN or (word.endswith(State.done.value) and "," not in word)


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
