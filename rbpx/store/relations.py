"""Makes the relations of a store: tables of its JSON records, views of its Parquet files, and what derives from them.

A view names the columns of its files and takes `run_id` from their paths. So it is made without opening any file, and a
query about some runs opens theirs alone. A command makes views in memory over the files of the runs that can be read
(`relations_of`); the store's `rbpx.duckdb` has the same views over globs (`write_views`), never out of date and open to
any client; there a malformed record has no row.
"""

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import MeasureError
from rbpx.files.digest import digest
from rbpx.files.entries import atomic_write
from rbpx.store import schema
from rbpx.store.messages import warn_damage, warn_run
from rbpx.store.parquet import asked_fault, end_fault
from rbpx.store.records import (
    BESIDE,
    MANIFESTS,
    NAMED_BY,
    NEEDED,
    NO_ROWS,
    RECORDS,
    RUN_TABLES,
    Record,
    contradiction,
    place_of,
)
from rbpx.store.schema import ALONE, BY_FILE, BY_RECORD, SQL_TYPES

if TYPE_CHECKING:
    from rbpx.store.store import Store

INDEX: Final = "rbpx.duckdb"
_STORAGE: Final = "v1.0.0"  # DuckDB 1.x clients open it too
_RANK: Final = "coalesce(f.greater, 0) + f.ties + 1 AS rank"  # under the rule pessimistic
_STEM, _FOLDER = "parse_filename(f.filename, true)", "parse_path(f.filename)[-2]"
_KEYS: Final = {  # the column that names a file, and where the name stands; a copy has another name and no rows
    **dict.fromkeys(BY_FILE, ("run_id", _FOLDER)),
    **dict.fromkeys(BESIDE, ("run_id", _STEM)),
    "vocab": ("tokenizer_hash", _STEM),
}
_READ_BY: Final = {  # what queries call the files that they read
    "tokens": {"tokens", "tokens_of", "true_tokens", "true_tokens_of"},
    "rank_counts": {"rank_counts", "rank_counts_of", "observations", "rbp_at"},
    "documents": {"documents", "documents_of"},
    "vocab": {"vocab"},
    "best": {"best"},
}
_SPECIAL: Final = r"[*?\[{]"  # what means more than itself in a glob

UNLINKED: Final = "no cell names it, so no answer has it"
LINK: Final = "run the line that measured it again, which finds it"
# Name of a vocabulary or an import; a copy has another name and must not count twice.
OWN_STEM: Final = "(.+-)?[0-9a-f]{16}"


@cache
def read_sql(name: str) -> str:
    """The text of one query; each .sql file has a name of its own."""
    (path,) = (path for path in _sql_files() if path.stem == name)
    return path.read_text(encoding="utf-8")


@cache
def _sql_files() -> tuple[Path, ...]:
    return tuple(Path(str(files("rbpx"))).rglob("*.sql"))


# ---------------------------------------------------------------------------------------------------------- in memory


def relations_of(connection: duckdb.DuckDBPyConnection, store: "Store", with_fits: bool = True) -> None:
    """Make the relations of a store; logs each run, record and file that cannot be read; raises as `check_format`.

    Only users' queries read `fits`, `rank_fits` and `failures` (`with_fits`).
    """
    facts = records_of(connection, store, BY_RECORD if with_fits else ("runs", "forecasts"))
    known: list[tuple[str, str | None, str, str | None]] = [
        (name, run_id, f"{store.root}/runs/{run_id}/{name}.parquet", of_run["files"][f"{name}.parquet"])
        for name in BY_FILE
        for run_id, of_run in facts.items()
    ]
    for name in ALONE:
        for path in store.files("imports" if name == "imported" else name):
            if (name not in BESIDE or store.has_run(path.stem)) and _is_whole(store, path):
                known.append((name, path.stem if name in BESIDE else None, str(path), None))
    connection.execute(
        "CREATE TEMP TABLE own_files AS SELECT unnest($1::VARCHAR[]) AS relation, unnest($2::VARCHAR[]) AS run_id, "
        "unnest($3::VARCHAR[]) AS path, unnest($4::VARCHAR[]) AS sha256",
        [[row[column] for row in known] for column in range(4)],
    )
    paths = {name: [path for relation, _, path, _ in known if relation == name] for name in (*BY_FILE, *ALONE)}
    for statement in _of_files(store, _columns(paths["imported"]), {name: list_of(of) for name, of in paths.items()}):
        connection.execute(statement)


def records_of(connection: duckdb.DuckDBPyConnection, store: "Store", names: Iterable[str]) -> dict[str, Record]:
    """Make tables of records, and return the manifests of readable runs by their run_id, for `runs`.

    Records are listed before runs, as a process writes a run before the cell that names it.
    """
    wanted, facts = dict.fromkeys(names), dict[str, Record]()
    kinds = dict.fromkeys("cells" if name == "runs" else name for name in wanted)
    read = {kind: _read(store, kind, [path.stem for path in store.paths(kind)]) for kind in kinds}
    if "runs" in wanted:
        there = store.run_ids()
        read[MANIFESTS] = _read(store, MANIFESTS, there)
        facts = {record["run_id"]: record for record in read[MANIFESTS].values() if _has_tables(store, record)}
        read["cells"] = _linked(store, read["cells"], facts, {*there})
    for kind, of_kind in read.items():
        connection.execute(
            f"CREATE TEMP TABLE parsed_{kind} AS SELECT unnest($1::VARCHAR[]) AS filename, "
            "unnest($2::VARCHAR[])::JSON AS record",
            [[str(path) for path in of_kind], list(map(json.dumps, of_kind.values()))],
        )
    for name in wanted:
        connection.execute(f"CREATE TABLE {name} AS {_rows_of(name)}")
    for kind in read:
        connection.execute(f"DROP TABLE parsed_{kind}")
    return facts


def _read(store: "Store", kind: str, names: Iterable[str]) -> dict[Path, Record]:
    return {store.root / place_of(kind, name): read for name in names if (read := store.record(kind, name))}


def _linked(
    store: "Store", cells: dict[Path, Record], facts: Mapping[str, Record], there: Container[str]
) -> dict[Path, Record]:
    linked = dict[Path, Record]()
    for path, cell in cells.items():
        run_id = cell["run_id"]
        fault = contradiction(cell, facts[run_id]) if run_id in facts else None
        if fault:
            again = "remove that file, then run the line that made it again"
            warn_damage(store.root, f"cells/{path.name}", fault, again)
        elif run_id in facts:
            linked[path] = cell
        elif run_id not in there:
            gone = f"{cell['family']} {cell['size']} on {cell['dataset']} is gone"
            warn_damage(store.root, f"run {run_id}", gone, "run the line that measured it again")
    for run_id in store.unlinked(facts, {cell["run_id"] for cell in cells.values()}):
        warn_damage(store.root, f"run {run_id}", UNLINKED, LINK)
    return linked


def _has_tables(store: "Store", facts: Record) -> bool:
    folder = f"{store.root}/runs/{facts['run_id']}"
    fault = next((fault for table in RUN_TABLES if (fault := end_fault(f"{folder}/{table}.parquet"))), None)
    if fault:
        warn_run(store.root, facts["run_id"], fault)
    return fault is None


def _is_whole(store: "Store", path: Path) -> bool:
    fault, kind = end_fault(str(path)), path.parent.name
    if kind in ("vocab", "imports") and not re.fullmatch(OWN_STEM, path.stem):
        fault = "it is a copy under another name"
    elif kind == "imports" and fault is None:
        fault = asked_fault(path, None)
    if fault:
        warn_damage(store.root, f"{kind}/{path.name}", fault, "remove it, and make it again")
    return fault is None


def _columns(imports: Iterable[str]) -> dict[str, pa.Schema]:
    names = (name for path in imports for name in pq.read_schema(path).names)
    return {**BY_FILE, **ALONE, "imported": schema.with_varied(schema.OBSERVATIONS, names)}


def files_of(
    connection: duckdb.DuckDBPyConnection, relations: Iterable[str], run_ids: Sequence[str] | None
) -> list[tuple[str, Path, str | None]]:
    """The run (or the relation), path and SHA-256 of the files of some relations, of some runs or all."""
    found = connection.execute(
        "SELECT coalesce(run_id, relation), path, sha256 FROM own_files WHERE list_contains($1, relation) "
        "AND ($2 IS NULL OR run_id IS NULL OR list_contains($2, run_id))",
        [[*relations], run_ids],
    ).fetchall()
    return [(name, Path(path), sha256) for name, path, sha256 in found]


def check_read(connection: duckdb.DuckDBPyConnection, query: str, run_ids: Sequence[str] | None = None) -> None:
    """Raises MeasureError where a file that a query reads, of some runs or of all, has changed since it was written."""
    words = {*re.findall(r"\w+", query.lower())}
    for name in (name for name, names in _READ_BY.items() if words & names):
        for _, path, sha256 in files_of(connection, [name], run_ids):
            fault = asked_fault(path, sha256)
            if fault:
                raise MeasureError(f"{name} cannot be read: {fault}; rbpx store verify names the file and what to do")


# --------------------------------------------------------------------------------------------------- SQL of both kinds


def scan(columns: pa.Schema, places: str) -> str:
    """SQL that reads Parquet files with these columns, null where a file lacks one; nothing is opened before."""
    types = {column.name: SQL_TYPES[column.type] for column in columns}
    if places == "[]":
        nothing = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in {**types, "filename": "VARCHAR"}.items())
        return f"(SELECT {nothing} WHERE false)"
    of_file = (
        f"{literal(n)}: {{name: {literal(n)}, type: '{kind}', default_value: NULL}}" for n, kind in types.items()
    )
    options = f"schema = MAP {{{', '.join(of_file)}}}, filename = true, hive_partitioning = false"
    return f"read_parquet({places}, {options})"


def _rows(name: str, columns: pa.Schema, places: str) -> str:
    """SQL for the rows of a relation of Parquet files; `f` names their columns, as `ties` is a parameter of macros."""
    key, own = _KEYS.get(name, ("", ""))
    shown = {column: f'f."{column}"' for column in schema.with_rank(columns).names}
    shown |= {"rank": _RANK} if "rank" in shown else {}
    shown |= {key: f"{own} AS {key}"} if key else {}
    is_own = f"f.{key} = {own}" if key else f"regexp_full_match({_STEM}, '{OWN_STEM}')"
    return f"SELECT {', '.join(shown.values())} FROM {scan(columns, places)} AS f WHERE {is_own}"


def _of_files(store: "Store", columns: Mapping[str, pa.Schema], places: Mapping[str, str]) -> list[str]:
    views = [f"CREATE VIEW {name} AS {_rows(name, of, places[name])}" for name, of in columns.items()]
    runs = f"{literal(pattern(f'{store.root}/runs/'))} || regexp_replace(run, '{_SPECIAL}', '[\\0]', 'g')"
    macros = [
        f"CREATE MACRO {name}_of(run_ids) AS TABLE {_rows(name, of, f'[{runs} || {literal(file)} FOR run IN run_ids]')}"
        for name, of, file in ((name, of, f"/{name}.parquet") for name, of in BY_FILE.items())
    ]
    return [*views, *macros, read_sql("relations")]


# The seal of `records.sealed`, where a record has one.
_UNCHANGED: Final = """CASE
    WHEN len(record->>'seal') = 64 OR regexp_full_match(right(text, 77), ', "[^"]{4}": "[^"]{64}"\\}')
    THEN right(text, 77) = ', "seal": "' || sha256(left(text, -77)) || '"}' ELSE true END"""


def _parse(source: str, kind: str) -> str:
    """SQL for the name and JSON of each file; null where it is a copy or lacks what readers need."""
    needs = [f"record->>'{key}' IS NOT NULL" for key in NEEDED.get(kind, schema.KNOWN)]
    if kind in NAMED_BY:
        needs.append(f"record->>'{NAMED_BY[kind]}' = parse_filename(filename, true)")
    if kind == MANIFESTS:
        needs.append("record->>'run_id' = parse_path(filename)[-2]")
        numbers = [schema.RUNS.field(key) for key in schema.KNOWN if schema.RUNS.field(key).type != pa.string()]
        needs += [
            f"TRY_CAST(record->>'{n.name}' AS {SQL_TYPES[n.type]}) >= {int(n.name in schema.FROM_1)}" for n in numbers
        ]
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
        source = "parsed_cells AS c JOIN parsed_runs AS m ON c.record->>'run_id' = m.record->>'run_id'"
        asked = [column for column in columns if column.name in schema.ASKED]
        parts = {"c.record": asked, "m.record": [column for column in columns if column not in asked]}
    elif name == "forecasts":
        own = "json_object('forecast_id', parse_filename(filename, true), 'seen_at', NULL)"
        source = "parsed_forecasts, unnest(record->'$.predictions[*]') AS predictions(prediction)"
        parts = {f"json_merge_patch(record, prediction, {own})": [*columns]}
    shown, rows = dict[str, str](), list[str]()
    for number, (part, of_part) in enumerate(parts.items()):
        typed = {column.name: SQL_TYPES[column.type] for column in of_part if column.name not in schema.ANY_JSON}
        rows.append(f"json_transform({part}, '{json.dumps(typed)}') AS row{number}")
        for column in of_part:
            any_json = f"coalesce(prediction->'{column.name}', record->'{column.name}')::VARCHAR"  # with nulls in it
            any_json = any_json if name == "forecasts" else f"({part}->'{column.name}')::VARCHAR"
            shown[column.name] = f'row{number}."{column.name}"' if column.name in typed else any_json
    selected = ", ".join(f"{shown[column]} AS {column}" for column in columns.names)
    return f"SELECT {selected} FROM {source}, LATERAL (SELECT {', '.join(rows)}) WHERE row0 IS NOT NULL"


def pattern(path: str) -> str:
    """A path as a glob that matches it alone."""
    return re.sub(_SPECIAL, r"[\g<0>]", path)


def literal(value: str | Sequence[str] | Sequence[int]) -> str:
    """SQL of a text, or of a list."""
    return str(duckdb.ConstantExpression(value))


def list_of(paths: Iterable[str]) -> str:
    """SQL for these paths, each of one file."""
    return literal([pattern(path) for path in paths])


# ---------------------------------------------------------------------------------------------------- for other clients


def write_views(store: "Store") -> None:
    """Write `rbpx.duckdb`, views over the files of the store, where it is absent or belongs to another path.

    It is skipped where it cannot be written or opened; rbpx itself never reads the views.
    """
    path = store.root / INDEX
    if not store.root.is_dir():
        return
    paths = [str(path) for path in store.files("imports") if end_fault(str(path)) is None]
    columns = _columns(paths)
    statements = _views(store, columns)
    state = digest(statements)
    if _state(path) == state:
        return
    statements.append(f"CREATE VIEW rbpx_state AS SELECT '{state}' AS state")
    with suppress(OSError, duckdb.Error):
        for name, of in columns.items():  # a glob without a file is an error
            with atomic_write(store.root / _place(name, NO_ROWS), durable=False) as empty:
                pq.write_table(of.empty_table(), empty)
        with atomic_write(path, durable=False) as temporary, duckdb.connect(":memory:") as connection:
            connection.execute(f"ATTACH {literal(str(temporary))} AS built (STORAGE_VERSION '{_STORAGE}'); USE built")
            for statement in [*statements, "USE memory; DETACH built"]:
                connection.execute(statement)


def _state(path: Path) -> str | None:
    with suppress(duckdb.Error):
        if path.is_file():
            with duckdb.connect(str(path), read_only=True) as connection:
                return str(connection.execute("SELECT state FROM rbpx_state").fetchall()[0][0])
    return None


def _views(store: "Store", columns: Mapping[str, pa.Schema]) -> list[str]:
    root = pattern(str(store.root))
    globs = {kind: literal(f"{root}/{place_of(kind, '[!.]*')}") for kind in (*RECORDS, MANIFESTS)}
    statements = [
        f"CREATE VIEW parsed_{kind} AS FROM ({_parse(f'read_blob({glob})', kind)}) WHERE record IS NOT NULL"
        for kind, glob in globs.items()
    ]
    statements += [f"CREATE VIEW {name} AS {_rows_of(name)}" for name in BY_RECORD]
    places = {name: literal(f"{root}/{_place(name, '[!.]*')}") for name in columns}
    return [*statements, *_of_files(store, columns, places)]


def _place(name: str, stem: str) -> str:
    if name in BY_FILE:
        return f"runs/{stem}/{name}.parquet"
    return f"{'imports' if name == 'imported' else name}/{stem}.parquet"
