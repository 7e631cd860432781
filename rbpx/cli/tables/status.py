"""Prints what a store holds and the state of a grid's cells."""

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from rbpx.config.options import Format
from rbpx.display.records import print_records
from rbpx.display.table import Column, Table, table_of
from rbpx.display.terminal import console, print_tables, print_under
from rbpx.display.vocabulary import UNKNOWN, size_name, time, whole
from rbpx.errors import number_of
from rbpx.runs.run import MEASURED
from rbpx.runs.select.stored import NARROWED_BY, choices
from rbpx.spelling import typed
from rbpx.store.cell_states import CellState, LastHeartbeat, State, read_heartbeats
from rbpx.store.imports.storage import list_imports
from rbpx.store.schema import FAILURES
from rbpx.store.store import Record, Store

if TYPE_CHECKING:
    from rbpx.cli.verbs.status import StatusKeys

_MOST_COLUMNS: Final = 10  # with more, the revisions of a text are counted as one
_MOST_ROWS: Final = 60  # with more, models that are done everywhere are counted
_USUAL: Final = {"dataset": "", "protocol": "paper", "dtype": "float32"}  # of a column; the usual value is not shown
_TEXT: Final = ("family", "dataset", "protocol", "dtype")
_DONE: Final = re.compile(rf"{UNKNOWN}|(\d+ )?done")
_place: Final = itemgetter(*_TEXT)
_RUNS: Final = table_of("runs", *((name, name) for name in (*_TEXT, "sizes")), ("tokens", "n_tokens", whole))
_IMPORTS: Final = table_of(
    "imports",
    *((name, name) for name in ("source", "family", "dataset", "file")),
    ("sizes", "size", whole), ("k", "k", whole), ("observations", "n_observations", whole),
)  # fmt: skip


def print_grid(cell_states: Sequence[CellState], format: Format) -> None:
    """Prints the state of the cells of grids, each once."""
    cell_states = list({one.cell: one for one in cell_states}.values())
    if format is not Format.table:
        print_records([one.row() for one in cell_states], format)
        return
    sizes = [{"size": f"{one.cell.size}{one.cell.adapted}"} for one in cell_states]
    beats = [{} if one.heartbeat is None else _facts(one.heartbeat) for one in cell_states]
    rows = [one.row() | beat | size for one, beat, size in zip(cell_states, beats, sizes, strict=True)]
    counts = Counter(one.state for one in cell_states)
    states = ", ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
    pace = sum(row["tokens_per_s"] or 0.0 for row in rows if row["state"] == State.running.value)
    counted = f"{number_of(len(rows), 'cell')}{states and ': '}{states}{f'; {pace:,.0f} tokens/s' if pace else ''}"
    table, lines = states_table(rows)
    _print(counted, [table], [*lines, *lines_of(rows)])


def print_store(store: Store, requests: Sequence["StatusKeys"], narrowing: str) -> None:
    """Prints what a store holds of what requests choose by `narrowing`."""
    narrowed, format = [choices(request) for request in requests], requests[0].format
    runs = [run for run in store.runs() if _meets(run, narrowed)]
    imports = [one for one in list_imports(store) if _meets(one, narrowed)]
    failures = [failure for failure in store.records("failures") if _meets(failure, narrowed)]
    answered = {run["cell_key"] for run in runs}
    heartbeats = [beat for key, beat in read_heartbeats(store).items() if key not in answered]
    heartbeats = sorted((beat for beat in heartbeats if _meets(beat.facts, narrowed)), key=lambda beat: not beat.alive)
    done, beats = [{"state": "done"} | run for run in runs], [_facts(beat) for beat in heartbeats]
    if format is not Format.table:
        failed = [{name: failure.get(name) for name in FAILURES.names} for failure in failures]
        other = [{"state": "imported"} | one for one in imports] + [{"state": "failed"} | one for one in failed]
        print_records(done + other + beats, format)
    else:
        rows = sorted(
            done, key=lambda run: (run["non_embedding_params"], run["size"], _text(run), run["revision"] or "")
        )
        rows += beats + [{"state": "failed"} | failure for failure in failures]
        table, lines = states_table(sorted(rows, key=itemgetter("family")))
        texts = [list(runs) for _, runs in groupby(sorted(rows[: len(done)], key=_place), _place)]
        measured = _RUNS.of("measured", map(_told, texts))
        states = (
            [table] if any(not _DONE.fullmatch(row[c.key]) for row in table.rows for c in table.columns[2:]) else []
        )
        shown = [measured, _IMPORTS.of("imported", map(_imported, imports)), *states]
        _print(_holdings(store, runs, imports, rows), shown, [*lines, *lines_of(rows)])
    if not (runs or imports or failures or heartbeats):
        found = f"holds nothing{f' that matches {narrowing}; drop that to see all' if narrowing else ' yet'}"
        if not store.root.is_dir():
            found = f"does not exist; name another with {typed(store='DIR')}"
        logging.getLogger(__name__).info(f"store={store.name} {found}")


def _holdings(store: Store, runs: Sequence[Record], imports: Sequence[Record], rows: Sequence[Record]) -> str:
    models, texts = {(run["family"], run["size"]) for run in runs}, {run["dataset"] for run in runs}
    states = Counter(row["state"] for row in rows if row["state"] != State.done.value)
    of_runs = f"{number_of(len(runs), 'run')} of {number_of(len(models), 'model')} on {number_of(len(texts), 'text')}"
    n_imported = number_of(sum(one["n_observations"] for one in imports), "imported observation")
    parts = [*([of_runs] if runs else []), *([n_imported] if imports else [])]
    parts += [f"{n} {state}" for state, n in states.items()]
    return f"{store.name}: {', '.join(parts)}" if parts else ""


def _print(answer: str, tables: Sequence[Table], lines: Sequence[str]) -> None:
    screen = console()
    print_under(screen, [answer, ""] if answer else [])
    print_tables(screen, tables)
    print_under(screen, (), (), lines)


def _meets(record: Record, narrowed: Sequence[Mapping[str, list[str] | None]]) -> bool:
    named = {"source": MEASURED, **record}
    return any(
        all(
            wanted is None or set(wanted).intersection(value if isinstance(value, list) else [value])
            for wanted, value in ((choice[name], named.get(name)) for name in ("source", *NARROWED_BY))
        )
        for choice in narrowed
    )


def _told(runs: Sequence[Record]) -> Record:
    sizes = Counter(run["size"] for run in runs).items()
    told = ", ".join(f"{size_name(size)} ({n})" if n > 1 else size_name(size) for size, n in sizes)
    return {**runs[0], "sizes": told, "n_tokens": sum(run["n_tokens"] for run in runs)}


def _imported(one: Record) -> Record:
    names = {name: ", ".join(one[name]) for name in ("family", "dataset")}
    counts = {name: len(one[name]) for name in ("size", "k")}
    return {**one, **names, **counts, "file": ", where ".join(filter(None, (one["file"], one.get("where"))))}


def _facts(beat: LastHeartbeat) -> Record:
    return {"state": (State.running if beat.alive else State.stopped).value, **beat.facts}


def states_table(rows: Sequence[Record]) -> tuple[Table, list[str]]:
    """A table of models by texts, and a line about what it leaves out; of several states the first counts.

    A model is missing on the texts on which others of its family were measured.
    """
    words: dict[tuple[str, str, str, str | None], str] = {}
    for row in rows:
        n_tokens = row["n_tokens"] if row["state"] == State.running.value else None
        word = f"{row['state']} {row['tokens_done'] / n_tokens:.0%}" if n_tokens else row["state"]
        words.setdefault((row["family"], row["size"], _text(row), row.get("revision")), word)
    texts = {at[2:] for at in words}
    by_text = len(texts) > _MOST_COLUMNS
    cells: dict[tuple[str, str], dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for (family, size, about, revision), word in words.items():
        cells[family, size][about if by_text or not revision else f"{about} {revision}"][word] += 1
    headings = list(dict.fromkeys(heading for row in cells.values() for heading in row))
    used = {(family, heading) for (family, _), row in cells.items() for heading in row}
    shown = []
    for (family, size), row in cells.items():
        absent = (State.missing.value if (family, heading) in used else UNKNOWN for heading in headings)
        states = [_counted(row[heading]) or word for heading, word in zip(headings, absent, strict=True)]
        if len(cells) <= _MOST_ROWS or not all(_DONE.fullmatch(word) for word in states):
            shown.append({"family": family, "size": size, **{f"text_{at}": of for at, of in enumerate(states)}})
    n_done = len(cells) - len(shown)
    done = f"{n_done:,} of {len(cells):,} models are done on all texts of their families, and not shown."
    columns = [Column(name, name) for name in ("family", "size")]
    columns += [Column(name, f"text_{at}") for at, name in enumerate(headings)]
    return table_of("states", *columns).of("state of the cells", shown), [done] if n_done else []


def _text(row: Record) -> str:
    return " ".join(row[name] for name, usual in _USUAL.items() if row.get(name, usual) not in (usual, None))


def _counted(words: Counter[str]) -> str:
    return ", ".join(word if n == 1 == len(words) else f"{n} {word}" for word, n in words.items())


def lines_of(rows: Sequence[Record]) -> list[str]:
    """A line for each cell that is running, was stopped or failed."""
    lines = []
    for row in rows:
        at = f"@{row['revision']}" if row.get("revision") else ""
        cell = f"{row['state']}: {row['family']} {row['size']}{at} on {row['dataset']}"
        if row.get("error"):
            lines.append(
                f"{cell}{' at ' if 'at' in row else ''}{row.get('at', '')[:16].replace('T', ' ')}: {row['error']}"
            )
        elif row.get("pid"):
            n, pace, since = row["n_tokens"], row["tokens_per_s"], row["since"][:16].replace("T", " ")
            parts = [f"{row['tokens_done'] / n:.0%} of {n:,} tokens"] if n else []
            if n and pace and row["state"] == State.running.value:
                parts += [f"{pace:,.0f} tokens/s", f"{time((n - row['tokens_done']) / pace)} left"]
            parts += [
                f"cell {row['cell']} of {row['cells']}",
                f"process {row['pid']} on {row['host']} since {since} UTC",
            ]
            lines.append(", ".join([cell, *parts]))
    return lines
