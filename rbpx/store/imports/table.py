"""Imports a table of other people's results into a store: checks every row and writes all of them or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
from filelock import FileLock

from rbpx.config.imports import ImportConfig, ImportRequest, choice_of
from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError, number_of
from rbpx.files.rows import Row, Rows, read_table, unrolled
from rbpx.spelling import typed
from rbpx.store.imports.chosen_rows import finished, named_in, rows_where
from rbpx.store.imports.columns import Columns, match_columns
from rbpx.store.imports.contradictions import Comparison, kept_of, not_stored, sized, unsaid
from rbpx.store.imports.diverged import told_diverged
from rbpx.store.imports.faults import Faults, named_of, refuse
from rbpx.store.imports.harness_samples import SCORES, Scored, is_of_harness, read_samples
from rbpx.store.imports.observations import ObservationFile, read_observations
from rbpx.store.imports.rules import field_of, misspelt, plain
from rbpx.store.imports.storage import LOCK, files_of, observations_of, write
from rbpx.store.imports.units import read_heading
from rbpx.store.store import Store, now

_LISTED: Final = 20  # ignored columns; rows of experiment trackers nest hundreds
_PARTS: Final = {"value": "", "stderr": "_stderr"}  # of a quantity, where each row names its own


@dataclass(frozen=True)
class Imported:
    """The result of one import.

    Attributes:
        table: the rows that were read.
        left_out: a number, what there are as many of, and why.
        unfinished: the runs that were left out, if any.
        before: observations that an earlier file of that name gave; `gone` are those that this one does not have, and
            `lost` facts of others.
    """

    table: Rows
    config: ImportConfig
    columns: Columns
    reading: ObservationFile
    judged: Comparison
    left_out: Sequence[tuple[int, str, str]]
    unfinished: str
    before: pa.Table
    gone: pa.Table
    lost: list[str]

    def notes(self) -> list[str]:
        """How the file was read, and what was left out of it, or may have to be."""
        file, config, reading, spoken = self.table.path.name, self.config, self.reading, self.columns.spoken
        named = named_in(config.where or "", self.columns.ignored)
        meant = ((name, misspelt(name)) for name in self.columns.ignored if name not in named)
        ignored = named_of((f"{name} (did you mean {near}?)" if near else name for name, near in meant), _LISTED)
        headings = ", ".join(f"{column!r} as {how}" for column, how in spoken.items())
        rounded = ", ".join(f"{n:,} of {column}" for column, n in reading.rounded.items())
        planned, (first, last) = number_of(reading.n_planned, "rate"), reading.steps or (0, 0)
        n_before, n_gone = (number_of(each.num_rows, "observation") for each in (self.before, self.gone))
        names = self.gone.select(["model", "size"]).to_pylist()
        runs = named_of(dict.fromkeys(row["model"] or row["size"] for row in names))
        lost = named_of(map(self.columns.shown, self.lost))
        stay = "" if config.replace else f" stay; where this one stands for it, {typed(replace=True)} removes them"
        notes = (  # each behind what makes it worth telling
            (ignored, f"ignored columns of {file}: {ignored}"),
            (reading.n_planned, f"took {planned} of {file} without a value as plans of runs"),
            *((n, f"left out {number_of(n, noun)} of {file} {which}") for n, noun, which in self.left_out),
            (last, f"took rows {first:,} to {last:,} of {file} as steps, since no column says step, D or C"),
            (headings, f"read headings of {file}: {headings}"),
            (rounded, f"rounded counts of {file} to whole numbers: {rounded}"),
            (self.unfinished, self.unfinished),
            (config.replace and self.before.num_rows, f"in place of the {n_before} that an earlier {file} gave"),
            (runs, f"{n_gone} of an earlier {file} that this one does not have ({runs}){stay}"),
            (lost, f"facts of an earlier {file} that this one does not have ({lost}){stay}"),
        )
        told = [note for is_told, note in notes if is_told]
        return [*told, *told_diverged(self.judged.read, self.table, self.columns, config)]


def import_file(store: Store, path: Path, config: ImportConfig, dry_run: bool = False) -> Imported:
    """Import a file; its new rows are one Parquet file.

    Raises:
        RbpxError: the file, its columns or a row are invalid, or contradict the store.
        MeasureError: the store cannot be written.
    """
    return _bring(store, read_table(path, config.decimal, config.sheet), config, dry_run)


def import_samples(store: Store, path: Path, request: ImportRequest) -> tuple[Imported, Scored]:
    """Import the samples that lm-evaluation-harness logged of one task as one observation; also returns their scores.

    Raises:
        RbpxError: the request lacks a name, or as in `read_samples` and `import_file`.
    """
    columns = request.columns or {}
    others = sorted(name for name, metric in columns.items() if name != "accuracy" or not isinstance(metric, str))
    if others:
        alone = typed(columns={"accuracy": "METRIC"})
        raise RbpxError(f"import samples takes {alone} alone, got {others[0]}; leave it out")
    scored = read_samples(path, columns.get("accuracy"), request.filter)
    dataset = request.dataset or scored.task
    of = {name: getattr(request, name) for name in ("source", "family", "size", "S")} | {"dataset": dataset}
    missing = [f"{name}=" for name, value in of.items() if value in (None, "")]
    if missing:
        raise RbpxError(
            f"import samples needs {', '.join(missing)}, as in "
            f"{typed(source='lm_eval', family='NAME', size='7b', S=6500000000)} (dataset= where the file is not named "
            "samples_TASK_TIME.jsonl)"
        )
    scores = {name: getattr(scored, name) for name in SCORES if getattr(scored, name) is not None}
    table = Rows(path, scored.sha256, tuple(scores), [Row(path, 1, None, scores)])
    typed_S = {"S": {"column": "S", "times": 1}}  # by hand, so it is what it says
    named = replace(request, columns=typed_S, dataset=dataset, protocol=request.protocol or HARNESS)
    return _bring(store, table, named, request.dry_run), scored


def _bring(store: Store, table: Rows, config: ImportConfig, dry_run: bool) -> Imported:
    if is_of_harness(table.columns):
        raise RbpxError(
            f"{table.path} has the samples of lm-evaluation-harness; on a command line: python -m rbpx import samples "
            "FILE source=NAME"
        )
    table = _with_given(unrolled(table, _known(table.columns, config)), config)
    named = _long(table.columns, config)
    chosen = table if config.where is None else rows_where(table, config.where)
    n_not_chosen = len(table.rows) - len(chosen.rows)
    chosen, unfinished = finished(chosen, config.where)
    wide = _widened(chosen, named) if named else chosen
    told = {name: of for name, of in (config.columns or {}).items() if name not in named}
    columns = match_columns(wide, told, config)
    reading, n_replaced = read_observations(wide, columns, config), 0
    if config.keep is not None:
        kept, n_replaced = kept_of(reading.observations, config.keep)
        reading = replace(reading, observations=kept)
    files, name = store.files("imports"), table.path.name
    judged, before = _judged(reading, store, wide, columns, config)  # refused before a folder is made for a store
    if not dry_run:
        store.prepare()
        with FileLock(store.root / LOCK):
            if store.files("imports") != files:  # another process has imported something
                judged, before = _judged(reading, store, wide, columns, config)
            written = _written(store, judged.new, table, columns, config)
            for path in files_of(store, config.source, name) if config.replace else ():
                if path.stem != written:
                    path.unlink(missing_ok=True)
    again = "a later" if config.keep == "last" else "an earlier"
    left_out = (
        (n_not_chosen, "row", "that where= does not choose"),
        (reading.n_empty, "row", "without a value, empty or NaN"),
        (n_replaced, "row", f"of which {again} one says the same step again ({typed(keep=config.keep)})"),
        (judged.n_repeated, "row", "that an earlier row says already"),
        (0 if named else reading.n_missing, "value", "that are empty or NaN"),
    )
    gone, lost = unsaid(before, judged.read)
    return Imported(wide, config, columns, reading, judged, left_out, unfinished, before, gone, lost)


def _written(store: Store, new: pa.Table, table: Rows, columns: Columns, config: ImportConfig) -> str:
    if not new.num_rows:
        return ""
    origin = {"source": config.source, "file": table.path.name, "sha256": table.sha256, "imported_at": now()}
    more = {name: getattr(config, name) for name in ("where", "keep", "decimal", "sheet")}
    more |= {"columns": columns.mapping, "runs": config.runs}
    return write(store, new, origin | {name: of for name, of in more.items() if of is not None})


def _known(columns: Sequence[str], config: ImportConfig) -> set[str]:
    """The columns that are read as fields, by their names or as chosen."""
    chosen = [config.columns or {}, *(config.texts or {}).values(), *(of.columns for of in config.wide_runs.values())]
    names = {plain(choice_of(told)[0]) for of in chosen for told in of.values()}
    return {name for name in columns if plain(name) in names or field_of(name) or read_heading(name)[1] is not None}


def _with_given(table: Rows, config: ImportConfig) -> Rows:
    """The same rows with the size of their one model, where it is given by hand."""
    told = {name: of for name in ("S", "size") if (of := getattr(config, name, None)) is not None}
    both = next((name for name in told if name in table.columns), None)
    if both is not None:
        raise RbpxError(f"{table.path} has a column {both}, and {both}={told[both]} was given; leave it out")
    rows = [replace(row, values=row.values | told) for row in table.rows] if told else table.rows
    return replace(table, columns=(*table.columns, *told), rows=rows)


def _judged(
    reading: ObservationFile, store: Store, table: Rows, columns: Columns, config: ImportConfig
) -> tuple[Comparison, pa.Table]:
    """Compare a file with the store, and refuse faults and contradictions; also returns what that file gave before."""
    name = table.path.name
    before, others = observations_of(store, config.source, name)
    stored = others if config.replace else pa.concat_tables([before, others], promote_options="default")
    judged = not_stored(sized(reading.observations, stored), stored, lambda row: table.rows[row].within, columns.shown)
    faults = Faults([*reading.faults.found, *judged.faults.found])
    hint = _not_read(table, columns, config) if len(judged.faults) else ""
    if len(judged.faults) and not config.replace and before.num_rows:
        hint = f"; what an earlier {name} gave goes with {typed(replace=True)}"
    refuse(faults.lines(lambda row: table.rows[row].place), len(faults), table.path, hint)
    if not reading.observations.num_rows:
        raise RbpxError(f"{table.path} has {number_of(len(table.rows), 'row')}, but no value: each is empty or NaN")
    return judged, before


def _not_read(table: Rows, columns: Columns, config: ImportConfig) -> str:
    """What to type where a column of few names that was not read tells runs apart."""
    for name in columns.ignored:
        if near := misspelt(name):
            return f"; {name} is not read: if it is {near}, give {typed(columns=(config.columns or {}) | {near: name})}"
        cells = table.cells(name)
        if set(map(type, cells)) == {str} and 2 <= len({*cells}) <= len(cells) / 2:
            how = typed(columns=(config.columns or {}) | {"variant": name})
            return f"; {name} is not read: if it tells runs apart, give {how}"
    return ""


def _long(columns: Sequence[str], config: ImportConfig) -> dict[str, str]:
    """The columns of quantity, value and stderr, where rows name their quantity; empty where they do not."""
    by_name = {plain(column): column for column in columns}
    chosen = {name: choice_of((config.columns or {}).get(name, name)) for name in ("quantity", *_PARTS)}
    named = {name: by_name[plain(column)] for name, (column, _) in chosen.items() if plain(column) in by_name}
    if "quantity" not in named or "value" not in named or config.runs:
        return {}
    scaled = next((name for name, (_, times) in chosen.items() if times is not None), None)
    if scaled is not None:
        raise RbpxError(f"columns: {scaled} takes no times, since its rows are of several quantities; leave times out")
    return named


def _widened(table: Rows, named: Mapping[str, str]) -> Rows:
    """The same rows with a column for each quantity, empty in the rows of the others."""
    kept = [name for name in table.columns if name not in named.values()]
    taken, rows, names = set(map(plain, kept)), [], dict.fromkeys(kept)
    for row in table.rows:
        quantity = row.values.get(named["quantity"])
        if quantity is None:
            raise RbpxError(f"{row.place}: {named['quantity']} is empty; name what the value is")
        if plain(str(quantity)) in taken:
            raise RbpxError(f"{table.path}: the quantity {quantity} is also a column; rename one of them")
        values = {f"{quantity}{part}": row.values.get(named[of]) for of, part in _PARTS.items() if of in named}
        names.update(dict.fromkeys(values))
        rows.append(replace(row, values={name: row.values.get(name) for name in kept} | values))
    return replace(table, columns=tuple(names), rows=rows)
