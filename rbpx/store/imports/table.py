"""Imports a table of other people's results into a store: checks every row and writes all of them or none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from filelock import FileLock

from rbpx.config.imports import ImportConfig, ImportRequest, choice_of, told_runs
from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError, number_of
from rbpx.files.rows import Row, Rows, read_table, unrolled
from rbpx.spelling import typed
from rbpx.store.imports.chosen_rows import finished, named_in, rows_where
from rbpx.store.imports.columns import Columns, field_of, match_columns, shown_field
from rbpx.store.imports.contradictions import Comparison, kept_of, not_stored, sized
from rbpx.store.imports.diverged import told_diverged
from rbpx.store.imports.faults import Faults, refuse
from rbpx.store.imports.harness_samples import Scored, is_of_harness, read_samples
from rbpx.store.imports.observations import ROW, ObservationFile, read_observations
from rbpx.store.imports.storage import LOCK, files_of, observations_of, write
from rbpx.store.imports.units import unit_of
from rbpx.store.store import Store, now

_MOST: Final = 10  # runs that are named


@dataclass(frozen=True)
class Imported:
    """The result of one import.

    Attributes:
        reading: the contents of the file.
        judged: its observations compared with those of the store.
        ignored: columns of the file that were not recognised.
        n_not_chosen: rows that do not meet `where`.
        n_replaced: rows dropped by `keep` for another row of the same model and step.
        n_missing: losses and accuracies that are empty or NaN, in rows with another value.
        spoken: column -> how its heading was read, as `S times 1e6`, where it is none of our names.
        n_gone: observations that an earlier file of that name gave, and this one does not.
        notes: what else was left out, or may have to be, a line each.
    """

    reading: ObservationFile
    judged: Comparison
    ignored: tuple[str, ...]
    n_not_chosen: int
    n_replaced: int
    n_missing: int
    spoken: dict[str, str]
    n_gone: int
    notes: tuple[str, ...]


def import_file(store: Store, path: Path, config: ImportConfig, dry_run: bool = False) -> Imported:
    """Check every row of a file, then write the new ones to the store as one Parquet file; all of them or none.

    A dry run reads and checks everything, also against the store, and writes nothing.

    Raises:
        RbpxError: the file, its columns or a row are invalid, or contradict the store.
        MeasureError: the store cannot be written.
    """
    return _bring(store, read_table(path, config.decimal, config.sheet), config, dry_run)


def import_samples(store: Store, path: Path, request: ImportRequest) -> tuple[Imported, Scored]:
    """Import the samples that lm-evaluation-harness logged of one model on one task, as one observation.

    Returns:
        The result of the import, and the scores.

    Raises:
        RbpxError: the request lacks a name, or as in `read_samples` and `import_file`.
        MeasureError: the store cannot be written.
    """
    columns = request.columns or {}
    others = sorted(name for name, metric in columns.items() if name != "accuracy" or not isinstance(metric, str))
    if others:
        alone = typed(columns={"accuracy": "METRIC"})
        raise RbpxError(f"import samples takes {alone} alone, got {others[0]}; leave it out")
    scored = read_samples(path, columns.get("accuracy"), request.filter)
    row = {name: getattr(request, name) for name in ("source", "family", "size", "S")}
    row["dataset"] = request.dataset or scored.task
    missing = [f"{name}=" for name, value in row.items() if value in (None, "")]
    if missing:
        raise RbpxError(
            f"import samples needs {', '.join(missing)}, as in "
            f"{typed(source='lm_eval', family='NAME', size='7b', S=6500000000)} (dataset= where the file is not named "
            "samples_TASK_TIME.jsonl)"
        )
    row["protocol"] = request.protocol or HARNESS
    row |= {name: getattr(scored, name) for name in ("accuracy", "accuracy_stderr")}
    row |= {name: getattr(scored, name) for name in ("bits_per_byte", "bits_per_byte_stderr")}
    del row["source"]
    cells = {name: value for name, value in row.items() if value is not None}
    table = Rows(path, scored.sha256, tuple(cells), [Row(path, 1, None, cells)])
    typed_S = {"S": {"column": "S", "times": 1}}  # by hand, so it is what it says
    named = replace(request, columns=typed_S, dataset=None, family=None, protocol=None, S=None, size=None)
    return _bring(store, table, named, request.dry_run), scored


def _bring(store: Store, table: Rows, config: ImportConfig, dry_run: bool) -> Imported:
    if is_of_harness(table.columns):
        raise RbpxError(
            f"{table.path} has the samples of lm-evaluation-harness; on a command line: python -m rbpx import samples "
            "FILE source=NAME"
        )
    table = _with_given(unrolled(table, _known(table.columns, config)), config)
    named = _long(table.columns, config)
    of_fields = {name: column for name, column in (config.columns or {}).items() if name not in named}
    chosen = table if config.where is None else rows_where(table, config.where)
    n_not_chosen = len(table.rows) - len(chosen.rows)
    chosen, unfinished = finished(chosen, config.where)
    wide = _widened(chosen, named) if named else chosen
    columns = _columns(wide.columns, of_fields, table.path, config)
    reading = read_observations(wide, columns, config)
    if reading.few:
        raise _few(reading.few, table.path, config)
    n_replaced = 0
    if config.keep is not None:
        kept, n_replaced = kept_of(reading.observations, config.keep)
        reading = replace(reading, observations=kept)
    files = store.import_files()
    before = observations_of(store, config.source, table.path.name)
    judged = _judged(reading, store, wide, columns, config)  # refused before a folder is made for a store
    if not dry_run:
        store.prepare()
        with FileLock(store.root / LOCK):
            if store.import_files() != files:  # another process has imported something
                judged = _judged(reading, store, wide, columns, config)
            name = ""
            if judged.new.num_rows:
                origin = {"source": config.source, "file": table.path.name, "sha256": table.sha256}
                origin |= {"imported_at": now(), "columns": columns.mapping}
                more = {"where": config.where, "keep": config.keep, "runs": told_runs(config.runs)}
                more |= {"decimal": config.decimal, "sheet": config.sheet}
                name = write(store, judged.new, origin | {name: of for name, of in more.items() if of is not None})
            for path in files_of(store, config.source, table.path.name) if config.replace else ():
                if path.stem != name:
                    path.unlink(missing_ok=True)
    gone = _gone(judged.read, before)
    return Imported(
        reading,
        judged,
        ignored=tuple(name for name in columns.ignored if name not in named_in(config.where or "", columns.ignored)),
        n_not_chosen=n_not_chosen,
        n_replaced=n_replaced,
        n_missing=0 if named else reading.n_missing,
        spoken=columns.spoken,
        n_gone=gone.num_rows,
        notes=(
            *([unfinished] if unfinished else ()),
            *_told_gone(gone, before.num_rows, table.path, config),
            *told_diverged(judged.read, wide, columns, config),
        ),
    )


def _known(columns: Sequence[str], config: ImportConfig) -> set[str]:
    """The columns that are read as fields, by their names or as chosen."""
    chosen = [config.columns or {}, *(config.texts or {}).values(), *(of.columns for of in config.wide_runs().values())]
    names = {choice_of(told)[0].strip().lower() for of in chosen for told in of.values()}
    return {name for name in columns if name.strip().lower() in names or field_of(name) is not None or unit_of(name)}


def _with_given(table: Rows, config: ImportConfig) -> Rows:
    """The same rows with the size of their one model, where it is given by hand."""
    told = {name: getattr(config, name, None) for name in ("S", "size")}
    told = {name: value for name, value in told.items() if value is not None}
    if not told:
        return table
    both = next((name for name in told if name in table.columns), None)
    if both is not None:
        raise RbpxError(f"{table.path} has a column {both}, and {both}={told[both]} was given; leave it out")
    rows = [replace(row, values=row.values | told) for row in table.rows]
    return replace(table, columns=(*table.columns, *told), rows=rows)


def _few(few: Mapping[str, tuple[str, float, float]], path: Path, config: ImportConfig) -> RbpxError:
    most = ", ".join(
        f"{shown_field(field)} is {least:,g} to {largest:,g}" for field, (_, least, largest) in few.items()
    )
    told = {name: of for name, of in (config.columns or {}).items() if field_of(name) not in few}
    told |= {shown_field(field): {"column": column, "times": "TIMES"} for field, (column, _, _) in few.items()}
    units = ", ".join(
        f"{'1e18 (EFLOP) or 1e21 (ZFLOP)' if field == 'training_flops' else '1e6 or 1e9'} for {shown_field(field)}"
        for field in few
    )
    return RbpxError(
        f"{path}: {most}, so it may count millions or billions; say so, as {typed(columns=told)}, where TIMES is "
        f"{units}, or 1 for what counts neither"
    )


def _judged(reading: ObservationFile, store: Store, table: Rows, columns: Columns, config: ImportConfig) -> Comparison:
    """Compare a file with the store, filling in sizes that it does not name, and refuse faults and contradictions."""
    name = table.path.name
    stored = observations_of(store, config.source, name if config.replace else None, config.replace)
    judged = not_stored(sized(reading.observations, stored), stored, lambda row: table.rows[row].within, columns.shown)
    faults = Faults([*reading.faults.found, *judged.faults.found])
    again = len(judged.faults) and not config.replace and files_of(store, config.source, name)
    hint = f"; what an earlier {name} gave goes with {typed(replace=True)}" if again else ""
    refuse(faults.lines(lambda row: table.rows[row].place), len(faults), table.path, hint)
    if not reading.observations.num_rows:
        raise RbpxError(f"{table.path} has {number_of(len(table.rows), 'row')}, but no value: each is empty or NaN")
    return judged


def _gone(read: pa.Table, before: pa.Table) -> pa.Table:
    """The observations that an earlier file gave and a later one does not; other values of the same are none."""
    numbered = before.append_column(ROW, pa.array(np.arange(before.num_rows)))
    return not_stored(numbered, read, str).new if before.num_rows else before


def _told_gone(gone: pa.Table, n_before: int, path: Path, config: ImportConfig) -> Iterator[str]:
    """What happens to the observations that an earlier file of that name gave."""
    if config.replace and n_before:
        yield f"in place of the {number_of(n_before, 'observation')} that an earlier {path.name} gave"
    if gone.num_rows:
        names = dict.fromkeys(row["model"] or row["size"] for row in gone.select(["model", "size"]).to_pylist())
        told = ", ".join([*names][:_MOST]) + (f" and {len(names) - _MOST:,} more" if len(names) > _MOST else "")
        stay = "" if config.replace else f" stay; where this one stands for it, {typed(replace=True)} removes them"
        n = number_of(gone.num_rows, "observation")
        yield f"{n} of an earlier {path.name} that this one does not have ({told}){stay}"


def _long(columns: Sequence[str], config: ImportConfig) -> dict[str, str]:
    """The columns of quantity, value and stderr, where rows name their quantity; empty where they do not."""
    by_name = {column.strip().lower(): column for column in columns}
    chosen = {name: choice_of((config.columns or {}).get(name, name)) for name in ("quantity", "value", "stderr")}
    asked = {name: column.strip().lower() for name, (column, _) in chosen.items()}
    named = {name: by_name[column] for name, column in asked.items() if column in by_name}
    if "quantity" not in named or "value" not in named or config.runs:
        return {}
    scaled = next((name for name, (_, times) in chosen.items() if times is not None), None)
    if scaled is not None:
        raise RbpxError(f"columns: {scaled} takes no times, since its rows are of several quantities; leave times out")
    return named


def _widened(table: Rows, named: Mapping[str, str]) -> Rows:
    """The same rows with a column for each quantity, empty in the rows of the others."""
    kept = [name for name in table.columns if name not in named.values()]
    taken, rows, names = {name.strip().lower() for name in kept}, [], dict.fromkeys(kept)
    for row in table.rows:
        quantity = row.values.get(named["quantity"])
        if quantity is None:
            raise RbpxError(f"{row.place}: {named['quantity']} is empty; name what the value is")
        if str(quantity).strip().lower() in taken:
            raise RbpxError(f"{table.path}: the quantity {quantity} is also a column; rename one of them")
        values = {str(quantity): row.values.get(named["value"])}
        if "stderr" in named:
            values[f"{quantity}_stderr"] = row.values.get(named["stderr"])
        names.update(dict.fromkeys(values))
        rows.append(replace(row, values={name: row.values.get(name) for name in kept} | values))
    return replace(table, columns=tuple(names), rows=rows)


def _columns(names: Sequence[str], chosen: dict[str, str], path: Path, config: ImportConfig) -> Columns:
    """Map the columns of a file, and refuse faulty or missing ones."""
    runs = {name: run.columns for name, run in config.wide_runs().items()}
    columns, lines = match_columns(names, chosen, str(path), config.texts, runs)
    if not lines and columns.has_rbp and config.ties is None and "ties" not in columns.named:
        lines.append(f"{path} has no column ties, so give ties=pessimistic, ties=optimistic or ties=mid")
    found = {name.strip().lower() for name in (*names, *chosen)}
    for name, is_given in (("family", config.family), ("dataset", config.dataset or config.texts)):
        if not is_given and name not in found:
            lines.append(f"{path}: the {name} is missing; add a column {name}, or give {name}=NAME")
    refuse(lines, len(lines), path)
    return columns
