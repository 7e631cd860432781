"""Imported observations: results of others, kept in the store as immutable Parquet files with their provenance."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rbpx.config.imports import ImportConfig, ImportRequest, told_runs
from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError, number_of, reason
from rbpx.files.column_table import Column, ColumnTable, is_long, long_columns, read_columns, widened
from rbpx.files.columns import Columns, ColumnsError, match_columns
from rbpx.files.entries import plain_file
from rbpx.files.output import digest_of_rows
from rbpx.store.cell_states import read_heartbeats
from rbpx.store.checks.integrity import TABLE_MIB, file_fault, is_copy, read_whole, sound_files, trust
from rbpx.store.files.ledger import locked
from rbpx.store.imports.chosen_rows import named_in, rows_where
from rbpx.store.imports.contradictions import Judged, fields_of, not_stored, sized
from rbpx.store.imports.faults import Faults, refuse
from rbpx.store.imports.harness_samples import Scored, is_of_harness, read_samples
from rbpx.store.imports.identity import LATER, codes, run_ids
from rbpx.store.imports.observations import MODEL, ROW, STATED, Reading, read_observations
from rbpx.store.schema import OBSERVATIONS, varied, with_all, with_varied
from rbpx.store.store import Record, Store, now

_PROVENANCE = b"rbpx.import"  # key in the metadata of the Parquet schema
_FEW = 10_000  # parameters, or tokens, below which a file may count millions or billions


@dataclass(frozen=True)
class Imported:
    """The result of one import.

    Attributes:
        n: observations in the file.
        n_models: different models that they are about.
        n_datasets: different texts.
        n_k: different k.
        n_new: how many of them were not in the store before.
        ignored: columns of the file that were not recognised.
        n_left_out: rows without a value.
        n_not_chosen: rows that do not meet `where`.
        n_repeated: rows that repeat an earlier row of the file.
        n_missing: losses and accuracies that are empty or NaN, in other rows.
        rounded: column -> counts in it that were rounded to whole numbers.
        steps: the first and the last row, where rows count as steps.
        few: S or D, where it is nowhere so large as a count of parameters or tokens is -> the largest one.
        preview: what it brings, by text and quantity; empty unless it was asked for.
    """

    n: int
    n_models: int
    n_datasets: int
    n_k: int
    n_new: int
    ignored: tuple[str, ...]
    n_left_out: int = 0
    n_not_chosen: int = 0
    n_repeated: int = 0
    n_missing: int = 0
    rounded: dict[str, int] = field(default_factory=dict)
    steps: tuple[int, int] | None = None
    few: dict[str, float] = field(default_factory=dict)
    preview: tuple[Record, ...] = ()


def _few(read: pa.Table) -> dict[str, float]:
    """The largest S and D of what was read, where they are so small that they may count millions or billions."""
    names = {"S": "non_embedding_params", "D": "training_tokens"}
    largest = {axis: pc.max(read[name]).as_py() for axis, name in names.items()}
    return {axis: most for axis, most in largest.items() if most is not None and most < _FEW}


def import_file(store: Store, path: Path, config: ImportConfig, dry_run: bool = False) -> Imported:
    """Check every row of a file, then write the new ones to the store as one Parquet file; all of them or none.

    In a dry run everything is read and checked, also against the store, and nothing is written.

    Raises:
        RbpxError: the file, its columns or a row are invalid, or contradict the store.
        MeasureError: the store cannot be written.
    """
    table = read_columns(path, lambda names: _check_header(names, path, config))
    return _import_table(store, table, path, config, dry_run)


def import_samples(store: Store, path: Path, request: ImportRequest) -> tuple[Imported, Scored]:
    """Bring the samples that lm-evaluation-harness logged of one model on one task into the store, as one observation.

    Returns:
        What it brought, and the scores.

    Raises:
        RbpxError: the request lacks a name, or as in `read_samples` and `import_file`.
        MeasureError: the store cannot be written.
    """
    others = sorted((request.columns or {}).keys() - {"accuracy"})
    if others:
        raise RbpxError(f"import samples takes columns='{{accuracy: METRIC}}' alone, got {others[0]}; leave it out")
    scored = read_samples(path, (request.columns or {}).get("accuracy"))
    names = {name: getattr(request, name) for name in ("source", "family", "size", "S")}
    names["dataset"] = request.dataset or scored.task
    missing = [f"{name}=" for name, value in names.items() if value in (None, "")]
    if missing:
        raise RbpxError(
            f"import samples needs {', '.join(missing)}: source=lm_eval family=NAME size=7b S=6500000000 (dataset= "
            "where the file is not named samples_TASK_TIME.jsonl)"
        )
    row = {**names, "protocol": request.protocol or HARNESS}
    for name in ("accuracy", "accuracy_stderr", "bits_per_byte", "bits_per_byte_stderr"):
        row[name] = getattr(scored, name)
    columns = {name: Column(np.zeros(1, np.int64), [value]) for name, value in row.items() if value is not None}
    del columns["source"]
    table = ColumnTable(path, scored.sha256, columns, np.array([1]), None)
    named = replace(request, columns=None, dataset=None, family=None, protocol=None)
    return _import_table(store, table, path, named, request.dry_run), scored


def _import_table(store: Store, table: ColumnTable, path: Path, config: ImportConfig, dry_run: bool) -> Imported:
    n_rows, has_one_a_row = table.n_rows, bool(_long(list(table.columns), config))
    table = table if config.where is None else rows_where(table, config.where)
    columns, table = _matched(table, path, config)
    reading, told = read_observations(table, columns, config), list[Record]()
    # Where there is no store yet, before a folder is made for it.
    judged = None if store.root.exists() else _judged(reading, _NOTHING, table, columns)
    if dry_run:
        judged = judged or _judged(reading, observations_of(store, str(config.source)), table, columns)
        told = preview(judged.read, judged.new)
    else:
        store.prepare()
        with locked(store.root, ".imports.lock"):  # two imports at once must not contradict each other
            stored = observations_of(store, str(config.source))
            if judged is None or stored.num_rows:
                judged = _judged(reading, stored, table, columns)
            if judged.new.num_rows:
                _write(store, judged.new, _origin(table, columns, config))
    kinds, read = (("family", "size", "model"), ("dataset",)), judged.read
    n_models, n_datasets = (len(np.unique(codes(read, names))) for names in kinds)
    return Imported(
        n=read.num_rows,
        n_models=n_models,
        n_datasets=n_datasets,
        n_k=pc.count_distinct(read["k"]).as_py(),
        n_new=judged.new.num_rows,
        ignored=tuple(name for name in columns.ignored if name not in named_in(config.where or "", columns.ignored)),
        n_left_out=reading.n_empty,
        n_not_chosen=n_rows - table.n_rows,
        n_repeated=judged.n_repeated,
        n_missing=0 if has_one_a_row else reading.n_missing,
        rounded=reading.rounded,
        steps=reading.steps,
        few=_few(read),
        preview=tuple(told),
    )


def _judged(reading: Reading, stored: pa.Table, table: ColumnTable, columns: Columns) -> Judged:
    """What is new of a file, with the sizes that it does not name.

    Raises:
        RbpxError: it has faults, no row with a value, or contradicts the store.
    """
    judged = not_stored(sized(reading.observations, stored), stored, table.short_place, columns.shown)
    faults = Faults([*reading.faults.found, *judged.faults.found])
    refuse(faults.lines(table.place), len(faults), table.path)
    if not reading.observations.num_rows:
        raise RbpxError(f"{table.path} has {number_of(table.n_rows, 'row')}, but no value: each is empty or NaN")
    return judged


def _origin(table: ColumnTable, columns: Columns, config: ImportConfig) -> Record:
    """Where observations come from."""
    origin = {
        "source": config.source,
        "file": table.path.name,
        "sha256": table.sha256,
        "imported_at": now(),
        "columns": columns.mapping,
    }
    more = {"where": config.where, "runs": told_runs(config.runs)}
    return origin | {name: value for name, value in more.items() if value is not None}


def _matched(table: ColumnTable, path: Path, config: ImportConfig) -> tuple[Columns, ColumnTable]:
    """What the columns are, of a table that has one for each quantity."""
    chosen = dict(config.columns or {})
    named = _long(list(table.columns), config)
    if named:
        table = widened(table, named)
        chosen = {name: column for name, column in chosen.items() if name not in named}
    return _columns(list(table.columns), chosen, path, config), table


def _long(names: Sequence[str], config: ImportConfig) -> dict[str, str]:
    """The columns of a table whose rows name what their value is; none where it is another."""
    named = long_columns(list(names), dict(config.columns or {}))
    return named if is_long(named) and not config.runs else {}


def _check_header(names: Sequence[str], path: Path, config: ImportConfig) -> None:
    """Refuse columns that lack something before the rows are read; what a long table has is seen in its rows."""
    if is_of_harness(names):
        raise RbpxError(
            f"{path} has the samples of lm-evaluation-harness; type python -m rbpx import samples FILE source=NAME"
        )
    if not _long(names, config):
        _columns(names, dict(config.columns or {}), path, config)


def _columns(names: Sequence[str], chosen: dict[str, str], path: Path, config: ImportConfig) -> Columns:
    """What the columns are.

    Raises:
        RbpxError: some will not do, or what every row needs is neither among them nor given.
    """
    lines, columns = list[str](), None
    runs = {name: run.columns for name, run in config.wide_runs().items()}
    try:
        columns = match_columns(names, chosen, str(path), config.texts, runs)
    except ColumnsError as problem:
        lines += problem.lines
    if columns is not None and columns.has_rbp and config.ties is None and "ties" not in columns.named:
        lines.append(f"{path} has no column ties, so give ties=pessimistic, ties=optimistic or ties=mid")
    found = {name.strip().lower() for name in (*names, *chosen)}
    for name, is_given in (("family", config.family), ("dataset", config.dataset or config.texts)):
        if not is_given and name not in found:
            lines.append(f"{path}: the {name} is missing; add a column {name}, or give {name}=NAME")
    refuse(lines, len(lines), path)
    assert columns is not None
    return columns


def adopt(store: Store, path: Path) -> int:
    """Copy one import of another store, with its provenance; returns how many of its observations were new.

    Raises:
        RbpxError: it contradicts observations in this store, or was not imported by rbpx.
        MeasureError: the store cannot be written.
    """
    origin = provenance(path)
    with locked(store.root, ".imports.lock"):
        whole = read_whole(path)
        read = with_all(whole, with_varied(_NOTHING.schema, whole.column_names))
        read = read.append_column(ROW, pa.array(np.arange(read.num_rows)))
        judged = not_stored(read, observations_of(store, origin["source"]), lambda row: f"row {row + 1}")
        faults = judged.faults.lines(lambda row: f"{path.name}, row {row + 1}")
        if faults:
            more = f" (and {len(judged.faults) - 1:,} more)" if len(judged.faults) > 1 else ""
            raise RbpxError(f"{faults[0]}{more}")
        if judged.new.num_rows:
            _write(store, judged.new, origin)
    return int(judged.new.num_rows)


def _write(store: Store, new: pa.Table, origin: Record) -> None:
    empty = [name for name in LATER if new[name].null_count == new.num_rows]  # so files of before keep their names
    columns = pa.schema([each for each in with_varied(OBSERVATIONS, new.column_names) if each.name not in empty])
    rows = new.append_column(OBSERVATIONS.field("run_id"), run_ids(new)).select(columns.names)
    columns = columns.with_metadata({_PROVENANCE: json.dumps(origin)})
    name = name_of_rows(origin["source"], rows)
    store.write_import(name, rows.cast(columns))
    trust(store, store.root / "imports" / f"{name}.parquet")


def name_of_rows(source: str, rows: pa.Table) -> str:
    """The name of a file of observations: their source, and a digest of all their values."""
    return f"{source}-{digest_of_rows(rows)}"


def observations_of(store: Store, source: str) -> pa.Table:
    """The observations of one source.

    Raises:
        RbpxError: a file of imports is corrupt or not written by rbpx, so that its observations are unknown.
    """
    for path in store.import_files():
        provenance(path)
        fault = file_fault(path)
        if fault is not None and not is_copy(fault):
            raise RbpxError(f"{path} is corrupt: {fault}; move it out of the store, and import its file again")
    tables = [_NOTHING, *(table for origin, table in _tables(store) if origin["source"] == source)]
    columns = with_varied(_NOTHING.schema, (name for table in tables for name in table.column_names))
    return pa.concat_tables([with_all(table, columns) for table in tables])


_NOTHING = fields_of(OBSERVATIONS).empty_table()


def dataset_names(store: Store) -> list[str]:
    """The names of the texts that a store knows, measured or imported, being measured or failed, sorted."""
    imported = {name for one in list_imports(store) for name in one["dataset"]}
    records = [*store.records("cells"), *store.records("failures")]
    records += [beat.facts for beat in read_heartbeats(store).values()]
    return sorted(imported | {record["dataset"] for record in records})


def list_imports(store: Store) -> list[Record]:
    """Each import: source, file, sha256, imported_at, columns, and its n_observations, families, datasets, sizes, k."""
    rows = []
    for origin, table in _tables(store):
        contents = {name: _distinct(table, name) for name in ("family", "dataset", "size", "k", "n")}
        rows.append(origin | {"n_observations": table.num_rows} | contents)
    return sorted(rows, key=lambda row: (row["source"], row["imported_at"]))


def imported_run_ids(store: Store) -> set[str]:
    """The run_ids of imported observations, to which fits may refer."""
    return {run_id for _, table in _tables(store) for run_id in _distinct(table, "run_id")}


def provenance_of(store: Store, run_id: str) -> Record | None:
    """Where an imported run comes from, with its rows; None if there is no run with that id."""
    for origin, table in _tables(store):
        rows = [record for record in table.to_pylist() if record["run_id"] == run_id]
        if rows:
            return {"run_id": run_id, **origin, "rows": rows}
    return None


def remove_source(store: Store, source: str) -> int:
    """Remove all that was imported from a source; returns the number of imports removed."""
    with locked(store.root, ".imports.lock"):
        paths = [path for path in sound_files(store, store.import_files()) if provenance(path)["source"] == source]
        for path in paths:
            store.remove(path)
    return len(paths)


def _tables(store: Store) -> Iterator[tuple[Record, pa.Table]]:
    for path in sound_files(store, store.import_files()):
        yield provenance(path), read_whole(path)


def provenance(path: Path) -> Record:
    """Where the observations of one file come from.

    Raises:
        RbpxError: it cannot be read, or was not imported by rbpx.
    """
    try:
        metadata = pq.read_schema(plain_file(path, TABLE_MIB)).metadata or {}
    except (OSError, ValueError, pa.ArrowException) as problem:
        raise RbpxError(f"{path} cannot be read: {reason(problem)}; move it out of the store") from None
    try:
        origin: Record = json.loads(metadata[_PROVENANCE])
        if all(isinstance(origin[name], str) for name in ("source", "file", "sha256", "imported_at")):
            return origin
    except (KeyError, TypeError, ValueError, RecursionError):
        pass
    raise RbpxError(f"{path} was not imported by rbpx; move it out of the store and import it from there")


def _distinct(table: pa.Table, name: str) -> list[Any]:
    return list(dict.fromkeys(table[name].to_pylist()))


_RANGES = {"S": "non_embedding_params", "D": "training_tokens", "C": "training_flops", "step": "training_step"}


def preview(read: pa.Table, new: pa.Table) -> list[dict[str, Any]]:
    """One row for each family, text and quantity.

    Args:
        read: the observations of a file.
        new: those of them that are not in the store.

    Returns:
        family, dataset, quantity, rows, new, models (each training of a size once), runs (each of its checkpoints too),
        and the least and largest S, D (tokens), C (FLOPs) and step, null where unknown.
    """
    rows, is_new = [], np.isin(read["row"].to_numpy(), new["row"].to_numpy())
    for name in ("rbp", *STATED):
        has = pc.is_valid(read[name]).to_numpy()
        if not has.any():
            continue
        of, fresh = read.filter(pa.array(has)), is_new[has]
        groups = codes(of, ("family", "dataset"))
        for group in dict.fromkeys(groups.tolist()):
            rows.append(_row(of.filter(pa.array(groups == group)), name, int(fresh[groups == group].sum())))
    return sorted(rows, key=lambda row: (row["family"], row["dataset"]))


def _row(of: pa.Table, name: str, n_new: int) -> dict[str, Any]:
    row: dict[str, Any] = {"family": of["family"][0].as_py(), "dataset": of["dataset"][0].as_py(), "quantity": name}
    row |= {"rows": of.num_rows, "new": n_new}
    row |= {
        "models": len(np.unique(codes(of, ("family", "size", "model")))),
        "runs": len(np.unique(codes(of, (*MODEL, *varied(of.column_names))))),
    }
    for label, column in _RANGES.items():
        ends = pc.min_max(of[column]).as_py()
        row |= {f"{label}_min": ends["min"], f"{label}_max": ends["max"]}
    return row
