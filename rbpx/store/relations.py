"""Makes the relations of a store: tables of JSON records, Arrow datasets of Parquet files, and what derives from them.

A command makes them in memory from the files that can be read (`relations_of`). Each file of a dataset has its run, so
that a query about some runs opens no other file. The store's `rbpx.duckdb` has views of the same columns over globs
(`write_views`), never out of date and open to any client; there a malformed file has no row.
"""

import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
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
from rbpx.store.records import MANIFESTS, NAMED_BY, NEEDED, RECORDS, RUN_TABLES, Record, contradiction
from rbpx.store.store import BESIDE, NO_ROWS, Store

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
_RANK: Final = "coalesce(f.greater, 0) + f.ties + 1 AS rank"  # under the rule pessimistic
Read = dict[Path, tuple[Record, str]]
"""The records of a kind, each with its text, by file."""

RELATIONS: Final = (*BY_RECORD, *BY_FILE, "vocab", "observations", *BESIDE)
_TYPES: Final = {
    "string": "VARCHAR",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "timestamp[us]": "TIMESTAMP",
}
UNLINKED: Final = "no cell names it, so no answer has it"
LINK: Final = "run the line that measured it again, which finds it"
_TEXTS: Final = schema.columns_of("filename, record")
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
        paths = [str(store.part(run_id, name)) for run_id in run_ids]
        connection.register(f"{name}_files", dataset_of(paths, columns, run_ids))
        connection.execute(f"CREATE VIEW {name} AS SELECT {_shown(columns)} FROM {name}_files AS f")
    for name, columns in _ALONE.items():
        paths = [str(path) for path in _beside(store, name) if _is_whole(store, path)]
        stems = [Path(path).stem for path in paths] if name in BESIDE else None
        connection.register(name, dataset_of(paths, _with_varied(name, columns, paths), stems))
    connection.execute(read_sql("relations"))


def with_rank(columns: pa.Schema) -> pa.Schema:
    """Columns of a file as its relation shows them: `rank` follows `greater` and `ties`."""
    if "greater" not in columns.names:
        return columns
    return columns.insert(columns.get_field_index("ties") + 1, pa.field("rank", pa.int32()))


COLUMNS: Final = {name: with_rank(BY_FILE.get(name, getattr(schema, name.upper()))) for name in RELATIONS}
"""Of each relation; those of observations without what runs vary."""


def _shown(columns: pa.Schema) -> str:
    """SQL for these columns of the table `f`, each named with it, as `ties` is a parameter of macros too."""
    return ", ".join(_RANK if name == "rank" else f"f.{name}" for name in with_rank(columns).names)


@contextmanager
def records_alone(store: Store, *names: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the relations of records only."""
    with duckdb.connect(":memory:") as connection:
        _records(connection, store, names)
        yield connection


def _records(connection: duckdb.DuckDBPyConnection, store: Store, names: Iterable[str]) -> list[str]:
    """Make tables of records; returns the readable runs, for `runs`.

    Records are listed before runs, as a process writes a run before the cell that names it.
    """
    wanted, run_ids = dict.fromkeys(names), list[str]()
    kinds = dict.fromkeys("cells" if name == "runs" else name for name in wanted)
    read = {kind: _read(store, kind, {path: path.stem for path in store.record_files(kind)}) for kind in kinds}
    if "runs" in wanted:
        there = store.run_ids()
        read[MANIFESTS] = _read(store, MANIFESTS, {store.manifest_file(run_id): run_id for run_id in there})
        facts = {record["run_id"]: record for record, _ in read[MANIFESTS].values() if _has_tables(store, record)}
        read["cells"], run_ids = _linked(store, read["cells"], facts, {*there}), [*facts]
    for kind, of_kind in read.items():
        texts = [[str(path) for path in of_kind], [text for _, text in of_kind.values()]]
        connection.register("texts", pa.table(texts, _TEXTS))
        connection.execute(f"CREATE TEMP TABLE parsed_{kind} AS SELECT filename, record::JSON AS record FROM texts")
    for name in wanted:
        connection.execute(f"CREATE TABLE {name} AS {_rows_of(name)}")
    for kind in read:
        connection.execute(f"DROP TABLE parsed_{kind}")
    connection.unregister("texts")
    return run_ids


def _read(store: Store, kind: str, names: Mapping[Path, str]) -> Read:
    return {path: read for path, name in names.items() if (read := store.read(kind, name, path))}


def _linked(store: Store, cells: Read, facts: Mapping[str, Record], there: Container[str]) -> Read:
    """The cells of readable runs; logs each of a missing run or that contradicts its run, and runs without a cell."""
    linked: Read = {}
    for path, (cell, text) in cells.items():
        run_id = cell["run_id"]
        fault = contradiction(cell, facts[run_id]) if run_id in facts else None
        if fault:
            store.warn(f"cells/{path.name}", fault, "remove that file, then run the line that made it again")
        elif run_id in facts:
            linked[path] = cell, text
        elif run_id not in there:
            gone = f"{cell['family']} {cell['size']} on {cell['dataset']} is gone"
            store.warn(f"run {run_id}", gone, "run the line that measured it again")
    for run_id in store.unlinked(facts, {cell["run_id"] for cell, _ in cells.values()}):
        store.warn(f"run {run_id}", UNLINKED, LINK)
    return linked


def _has_tables(store: Store, facts: Record) -> bool:
    faults = [fault for table in RUN_TABLES if (fault := _parquet_fault(store.part(facts["run_id"], table)))]
    if faults:
        store.warn_run(facts["run_id"], faults[0])
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


def dataset_of(paths: Sequence[str], columns: pa.Schema, run_ids: Sequence[str] | None) -> Any:
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

# The seal of `records.sealed`, where a record has one.
_UNCHANGED: Final = """CASE
    WHEN len(record->>'seal') = 64 OR regexp_full_match(right(text, 77), ', "[^"]{4}": "[^"]{64}"\\}')
    THEN right(text, 77) = ', "seal": "' || sha256(left(text, -77)) || '"}' ELSE true END"""


def _parse(source: str, kind: str) -> str:
    """SQL for the name and JSON of each file; null where it is a copy or lacks what readers need."""
    needs = [f"record->>'{key}' IS NOT NULL" for key in NEEDED.get(kind, schema.KNOWN)]
    if kind in NAMED_BY:
        needs.append(f"record->>'{NAMED_BY[kind]}' = parse_filename(filename, true)")
    if kind == "manifests":
        needs.append("record->>'run_id' = parse_path(filename)[-2]")
        numbers = [schema.RUNS.field(key) for key in schema.KNOWN if schema.RUNS.field(key).type != pa.string()]
        needs += [f"TRY_CAST(record->>'{n.name}' AS {_type(n)}) >= {int(n.name in schema.FROM_1)}" for n in numbers]
    elif kind == "forecasts":
        needs.append("json_array_length(record->'predictions') > 0")
    return (
        f"SELECT filename, CASE WHEN json_type(record) = 'OBJECT' AND {' AND '.join([*needs, _UNCHANGED])} THEN record "
        f"END AS record FROM (SELECT filename, text, TRY_CAST(text AS JSON) AS record "
        f"FROM (SELECT filename, TRY(decode(content)) AS text FROM {source}))"
    )


def _rows_of(name: str) -> str:
    """SQL for the rows of a relation of records, from the tables or views `parsed_KIND`."""
    columns, source, parts = BY_RECORD[name], f"parsed_{name}", {"record": [*BY_RECORD[name]]}
    if name == "runs":  # what was asked for is in the cell, all else in the manifest of its run
        source = "parsed_cells AS c JOIN parsed_manifests AS m ON c.record->>'run_id' = m.record->>'run_id'"
        parts = {"c.record": [], "m.record": []}
        for column in columns:
            parts["c.record" if column.name in schema.ASKED else "m.record"].append(column)
    elif name == "forecasts":
        own = "json_object('forecast_id', parse_filename(filename, true), 'seen_at', NULL)"
        source = "parsed_forecasts, unnest(record->'$.predictions[*]') AS predictions(prediction)"
        parts = {f"json_merge_patch(record, prediction, {own})": [*columns]}
    shown, rows = dict[str, str](), list[str]()
    for number, (part, of_part) in enumerate(parts.items()):
        typed = {column.name: _type(column) for column in of_part if column.name not in schema.ANY_JSON}
        rows.append(f"json_transform({part}, '{json.dumps(typed)}') AS row{number}")
        for column in of_part:
            any_json = f"coalesce(prediction->'{column.name}', record->'{column.name}')::VARCHAR"  # with nulls in it
            any_json = any_json if name == "forecasts" else f"({part}->'{column.name}')::VARCHAR"
            shown[column.name] = f'row{number}."{column.name}"' if column.name in typed else any_json
    selected = ", ".join(f"{shown[column]} AS {column}" for column in columns.names)
    return f"SELECT {selected} FROM {source}, LATERAL (SELECT {', '.join(rows)}) WHERE row0 IS NOT NULL"


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
            f"CREATE VIEW {name} AS SELECT {_shown(columns)} "
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
