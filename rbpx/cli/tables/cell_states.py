"""The states of the cells of a grid, or of a store, in a table of models by texts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape

from rbpx.display.numbers import UNKNOWN, time
from rbpx.display.tables import Grid, grid
from rbpx.store.cell_states import CellState, State
from rbpx.store.heartbeat import LastHeartbeat
from rbpx.store.store import Record

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
