"""Makes the relations of a store: tables of JSON records, Arrow datasets of Parquet files, and what derives from them.

A command makes them in memory from the files that can be read (`relations_of`). Each file of a dataset has its run, so
that a query about some runs opens no other file. The store's `rbpx.duckdb` has views of the same columns over globs
(`write_views`), never out of date and open to any client; there a malformed file has no row.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from pyarrow import fs

from rbpx.files.digest import digest
from rbpx.files.entries import atomic_write
from rbpx.store import schema
from rbpx.store.store import BESIDE, NAMED_BY, NEEDED, NO_ROWS, RECORDS, RUN_TABLES, Store

INDEX: Final = "rbpx.duckdb"
_STORAGE: Final = "v1.0.0"  # DuckDB 1.x clients open it too
BY_FILE: Final = {"tokens": schema.ITEMS_TOKENS, "rank_counts": schema.RANK_COUNTS, "documents": schema.ITEMS_DOCUMENTS}
_ALONE: Final = {  # Parquet files outside the runs
    "vocab": schema.VOCAB,
    "imported": schema.OBSERVATIONS,
    "best": schema.BEST,
}
BY_RECORD: Final = {
    "runs": schema.RUNS,
    "fits": schema.FITS,
    "rank_fits": schema.RANK_FITS,
    "failures": schema.FAILURES,
    "forecasts": schema.FORECASTS,
}
RELATIONS: Final = (*BY_RECORD, *BY_FILE, "vocab", "observations", *BESIDE)
_TYPES: Final = {
    "string": "VARCHAR",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "timestamp[us]": "TIMESTAMP",
}
_JSON: Final = ("config", "versions", "params", "weights")  # text columns that hold any JSON
OWN_STEM: Final = (
    "(.+-)?[0-9a-f]{16}"  # name of a vocabulary or an import; a copy has another name and must not count twice
)
_VERIFIED: Final = pyarrow.dataset.ParquetFileFormat(
    default_fragment_scan_options=pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
)


@cache
def read_sql(name: str) -> str:
    """The text of one query with its header; each .sql file has a unique name and lies next to its caller."""
    (path,) = (path for path in _sql_files() if path.stem == name)
    return path.read_text(encoding="utf-8")


@cache
def _sql_files() -> tuple[Path, ...]:
    return tuple(Path(str(files("rbpx"))).rglob("*.sql"))


# ---------------------------------------------------------------------------------------------------------- in memory


def relations_of(connection: duckdb.DuckDBPyConnection, store: Store, with_fits: bool = True) -> None:
    """Make the relations of a store in a connection; logs each run, record and file that cannot be read.

    Only users' queries read `fits`, `rank_fits` and `failures` (`with_fits`).

    Raises:
        RbpxError: a run has a newer format than this version reads.
    """
    run_ids = _records(connection, store, BY_RECORD if with_fits else ("runs", "forecasts"))
    for name, columns in BY_FILE.items():
        connection.register(name, _dataset([str(store.part(run_id, name)) for run_id in run_ids], columns, run_ids))
    for name, columns in _ALONE.items():
        paths = [str(path) for path in _beside(store, name) if _is_whole(store, path)]
        stems = [Path(path).stem for path in paths] if name in BESIDE else None
        connection.register(name, _dataset(paths, _with_varied(name, columns, paths), stems))
    connection.execute(read_sql("relations"))


@contextmanager
def records_alone(store: Store, *names: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the relations of records only."""
    with duckdb.connect(":memory:") as connection:
        _records(connection, store, names)
        yield connection


def _records(connection: duckdb.DuckDBPyConnection, store: Store, names: Iterable[str]) -> list[str]:
    """Make tables of records; returns the readable runs that they name, for `runs`."""
    wanted, run_ids = dict.fromkeys(names), store.run_ids() if "runs" in names else []
    sources = {"cells" if name == "runs" else name: name for name in wanted}
    for kind in sources:
        _parsed(connection, store, kind, store.record_files(kind))
    if "runs" in wanted:
        _parsed(connection, store, "manifests", [store.run_folder(run_id) / "manifest.json" for run_id in run_ids])
        run_ids = _known(connection, store)
    for name in wanted:
        connection.execute(f"CREATE TABLE {name} AS {_rows_of(name)}")
    broken = {run_id for run_id in run_ids if not _has_tables(store, run_id)}
    if broken:
        connection.execute("DELETE FROM runs WHERE run_id IN (SELECT unnest($1))", [list(broken)])
    for kind in (*sources, *(["manifests"] if "runs" in wanted else [])):
        connection.execute(f"DROP TABLE parsed_{kind}")
    return [run_id for run_id in run_ids if run_id not in broken]


def _parsed(connection: duckdb.DuckDBPyConnection, store: Store, kind: str, paths: Sequence[Path]) -> None:
    """Make a table of file names and JSON records, and log those that are invalid."""
    texts = [_pattern(str(path)) for path in paths]
    source = f"read_blob({_list(texts)})" if texts else "(SELECT '' AS filename, ''::BLOB AS content WHERE false)"
    connection.execute(f"CREATE TEMP TABLE parsed_{kind} AS {_parse(source, kind)}")
    for (name,) in connection.execute(f"SELECT filename FROM parsed_{kind} WHERE record IS NULL").fetchall():
        path = Path(name)
        what = f"run {path.parent.name}" if kind == "manifests" else f"{kind}/{path.name}"
        remedy = f"rbpx store rm {path.parent.name}" if kind == "manifests" else "remove that file"
        store.warn(
            what,
            "it is malformed, or a copy under another name",
            f"{remedy}, then run the line that made it again",
        )


def _known(connection: duckdb.DuckDBPyConnection, store: Store) -> list[str]:
    """The runs with a readable manifest; logs each missing run that a request names."""
    runs = connection.execute(
        "SELECT record->>'run_id', TRY_CAST(record->>'format' AS INTEGER) FROM parsed_manifests "
        "WHERE record IS NOT NULL"
    ).fetchall()
    for run_id, number in runs:
        schema.check_format(run_id, number)
    gone = connection.execute(
        "SELECT record->>'run_id', record->>'family', record->>'size', record->>'dataset' FROM parsed_cells "
        "WHERE record IS NOT NULL AND record->>'run_id' NOT IN (SELECT parse_path(filename)[-2] FROM parsed_manifests)"
    ).fetchall()
    for run_id, family, size, dataset in gone:
        store.warn(f"run {run_id}", f"{family} {size} on {dataset} is gone", "run the line that measured it again")
    return [name for name, _ in runs]


def _has_tables(store: Store, run_id: str) -> bool:
    faults = [fault for table in RUN_TABLES if (fault := _parquet_fault(store.part(run_id, table)))]
    if faults:
        remedy = f"rbpx store rm {run_id}, then run the line that measured it again"
        store.warn(f"run {run_id}", faults[0], remedy)
    return not faults


def _is_whole(store: Store, path: Path) -> bool:
    fault = _parquet_fault(path)
    if path.parent.name in ("vocab", "imports") and not re.fullmatch(OWN_STEM, path.stem):
        fault = "it is a copy under another name"
    if fault:
        store.warn(f"{path.parent.name}/{path.name}", fault, "remove it, and make it again")
    return fault is None


def _parquet_fault(path: Path) -> str | None:
    """The fault that the ends of a Parquet file show; a truncated one would fail every query."""
    if not path.is_file():
        return f"{path.name} is {'no file' if path.exists() else 'missing'}"
    with suppress(OSError), path.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        if file.read() == b"PAR1":
            return None
    return f"{path.name} is no whole Parquet file"


def _beside(store: Store, name: str) -> list[Path]:
    if name in BESIDE:
        return [path for path in store.files(name) if store.has_run(path.stem)]
    return store.files("vocab") if name == "vocab" else store.import_files()


def _dataset(paths: Sequence[str], columns: pa.Schema, run_ids: Sequence[str] | None) -> Any:
    """Parquet files as one Arrow dataset with these columns, each of one run where runs are given."""
    if not paths:
        return columns.empty_table()
    if run_ids is None:
        return pyarrow.dataset.dataset(list(paths), schema=columns, format=_VERIFIED)
    system, of_run = fs.LocalFileSystem(), pyarrow.dataset.field("run_id")
    parts = [
        _VERIFIED.make_fragment(path, system, of_run == run_id) for path, run_id in zip(paths, run_ids, strict=True)
    ]
    return pyarrow.dataset.FileSystemDataset(parts, columns, _VERIFIED, system)


def _with_varied(name: str, columns: pa.Schema, paths: Iterable[str]) -> pa.Schema:
    """The columns of `imported`, with what runs vary in any of its files; those of other relations unchanged."""
    if name != "imported":
        return columns
    return schema.with_varied(columns, (each for path in paths for each in pq.read_schema(path).names))


# --------------------------------------------------------------------------------------------------- SQL of both kinds


def _parse(source: str, kind: str) -> str:
    """SQL for the name and JSON of each file; null where it is a copy or lacks what readers need."""
    needs = [f"record->>'{key}' IS NOT NULL" for key in NEEDED.get(kind, ())]
    if kind in NAMED_BY:
        needs.append(f"record->>'{NAMED_BY[kind]}' = parse_filename(filename, true)")
    if kind == "manifests":
        needs = ["record->>'run_id' = parse_path(filename)[-2]"]
    elif kind == "forecasts":
        needs.append("json_array_length(record->'predictions') > 0")
    return (
        f"SELECT filename, CASE WHEN json_type(record) = 'OBJECT' AND {' AND '.join(needs)} THEN record END AS record "
        f"FROM (SELECT filename, TRY_CAST(TRY(decode(content)) AS JSON) AS record FROM {source})"
    )


def _rows_of(name: str) -> str:
    """SQL for the rows of a relation of records, from the tables or views `parsed_KIND`."""
    columns, source = BY_RECORD[name], f"parsed_{name}"
    parts = ["record"]  # of a row; each overrides those after it
    if name == "runs":  # the request, and the facts of the run
        parts = ["c.record", "m.record"]
        source = "parsed_cells AS c JOIN parsed_manifests AS m ON c.record->>'run_id' = m.record->>'run_id'"
    elif name == "forecasts":
        own = "json_object('forecast_id', parse_filename(filename, true), 'seen_at', NULL)"
        parts = [own, "prediction", "record"]
        source = "parsed_forecasts, unnest(record->'$.predictions[*]') AS predictions(prediction)"
    whole = parts[0] if len(parts) == 1 else f"json_merge_patch({', '.join(reversed(parts))})"
    shown = []
    for column in columns:
        each = f'row."{column.name}"'
        if column.name in _JSON:  # unchanged, with nulls in it
            each = f"coalesce({', '.join(f'{part}->{chr(39)}{column.name}{chr(39)}' for part in parts)})::VARCHAR"
        shown.append(f"{each} AS {column.name}")
    structure = json.dumps({column.name: _type(column) for column in columns if column.name not in _JSON})
    read = f"LATERAL (SELECT json_transform({whole}, '{structure}') AS row)"
    return f"SELECT {', '.join(shown)} FROM {source}, {read} WHERE row IS NOT NULL"


def _type(column: pa.Field) -> str | list[str]:
    if pa.types.is_list(column.type):
        return ["VARCHAR"]
    return _TYPES[str(column.type)]


def _pattern(path: str) -> str:
    return re.sub(r"[*?\[{]", r"[\g<0>]", path)


def _list(texts: Iterable[str]) -> str:
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"


# ---------------------------------------------------------------------------------------------------- for other clients


def write_views(store: Store) -> None:
    """Write `rbpx.duckdb`, views over the files of the store, where it is absent or belongs to another path.

    It is skipped where the store is read-only, the disk is full, DuckDB cannot open the path, or a Parquet file is
    truncated, which commands report. rbpx itself never reads the views.
    """
    path = store.root / INDEX
    if not store.root.is_dir():
        return
    statements = _views(store)
    state = digest(statements)
    if _state(path) == state:
        return
    statements.append(f"CREATE VIEW rbpx_state AS SELECT '{state}' AS state")
    with suppress(OSError, duckdb.Error):
        _write_empty(store)
        with atomic_write(path, durable=False) as temporary, duckdb.connect(":memory:") as connection:
            place = _list([str(temporary)])[1:-1]
            connection.execute(f"ATTACH {place} AS built (STORAGE_VERSION '{_STORAGE}'); USE built")
            for statement in [*statements, "USE memory; DETACH built"]:
                connection.execute(statement)


def _state(path: Path) -> str | None:
    with suppress(duckdb.Error):
        if path.is_file():
            with duckdb.connect(str(path), read_only=True) as connection:
                return str(connection.execute("SELECT state FROM rbpx_state").fetchall()[0][0])
    return None


def _views(store: Store) -> list[str]:
    root = _pattern(str(store.root))
    globs = {kind: f"{root}/{kind}/[!.]*.json" for kind in RECORDS} | {"manifests": f"{root}/runs/[!.]*/manifest.json"}
    statements = [
        f"CREATE VIEW parsed_{kind} AS FROM ({_parse(f'read_blob({_list([glob])})', kind)}) WHERE record IS NOT NULL"
        for kind, glob in globs.items()
    ]
    statements += [f"CREATE VIEW {name} AS {_rows_of(name)}" for name in BY_RECORD]
    for name, columns in {**BY_FILE, **_ALONE}.items():
        glob = f"{root}/runs/[!.]*/{name}.parquet" if name in BY_FILE else f"{root}/{_folder(name)}/[!.]*.parquet"
        paths = [str(path) for path in store.import_files()] if name == "imported" else []
        columns = _with_varied(name, columns, [path for path in paths if _parquet_fault(Path(path)) is None])
        own = f"regexp_full_match(parse_filename(f.filename, true), '{OWN_STEM}')"
        if name in BY_FILE:  # without copies of a run
            own = "f.run_id = parse_path(f.filename)[-2]"
        elif name in BESIDE:
            own = "f.run_id = parse_filename(f.filename, true)"
        statements.append(
            # named with their table, as `ties` is a parameter of macros too
            f"CREATE VIEW {name} AS SELECT {', '.join(f'f.{each}' for each in columns.names)} "
            f"FROM read_parquet({_list([glob])}, union_by_name = true, hive_partitioning = false, filename = true) "
            f"AS f WHERE {own}"
        )
    return [*statements, read_sql("relations")]


def _write_empty(store: Store) -> None:
    paths = [str(path) for path in store.import_files() if _parquet_fault(path) is None]
    for name, columns in {**BY_FILE, **_ALONE}.items():
        rows = _with_varied(name, columns, paths).empty_table()
        place = f"runs/{NO_ROWS}/{name}" if name in BY_FILE else f"{_folder(name)}/{NO_ROWS}"
        with atomic_write(store.root / f"{place}.parquet", durable=False) as path:
            pq.write_table(rows, path)


def _folder(name: str) -> str:
    return "imports" if name == "imported" else name
