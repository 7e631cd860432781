"""Runs SQL over a store: the project's own questions from .sql files, and a user's SELECT, each as an Arrow table."""

import re
import tempfile
import uuid
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from rbpx.errors import DamageError, RbpxError
from rbpx.store import relations
from rbpx.store.store import Store

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def read_sql(name: str) -> str:
    """The SQL of one question, header included; its file lies beside the code that asks it and has a unique name."""
    (path,) = (path for path in _files() if path.stem == name)
    return path.read_text(encoding="utf-8")


@cache
def _files() -> tuple[Path, ...]:
    """All files of SQL; the package is searched once for all questions of a command."""
    return tuple(_PACKAGE.rglob("*.sql"))


def connect(store: Store, with_fits: bool = True) -> duckdb.DuckDBPyConnection:
    """Connect to the relations of a store in memory; no statement can reach a file, an extension or a setting.

    The Parquet files are registered as Arrow datasets, so that DuckDB itself needs no access to any path.

    Args:
        store: the store.
        with_fits: whether to include `fits`, `rank_fits` and `failures`, each of whose rows is a file to be read.
    """
    connection = duckdb.connect(":memory:")
    for name in ("runs", *(relations.BY_RECORD if with_fits else ())):
        connection.register(f"{name}_arrow", relations.table(store, name))
        connection.execute(f"CREATE TABLE {name} AS FROM {name}_arrow")
        connection.unregister(f"{name}_arrow")
    for name in (*relations.BY_FILE, *relations.ALSO_BY_FILE):
        connection.register(name, relations.dataset(store, name))
    connection.execute(read_sql("relations"))
    connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    # By default it spills into .tmp of the working directory. Files there could be read, so the name is a random one.
    connection.execute("SET temp_directory = $1", [f"{tempfile.gettempdir()}/rbpx-{uuid.uuid4().hex}"])
    connection.execute("SET python_enable_replacements = false; SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def ask(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pa.Table:
    """The answer to one of the project's own questions, with its `$parameters` bound.

    Raises:
        DamageError: a file of the store cannot be read.
    """
    try:
        return connection.sql(read_sql(name), params=parameters).to_arrow_table()
    except duckdb.Error as problem:
        raise _damage(problem) or problem from None


def ask_beside(connection: duckdb.DuckDBPyConnection, rows: pa.Table, name: str, **parameters: Any) -> pa.Table:
    """As `ask`, with rows that are not in the store; the question refers to them as `given`."""
    connection.register("given", rows)
    try:
        return ask(connection, name, **parameters)
    finally:
        connection.unregister("given")


def ask_where(connection: duckdb.DuckDBPyConnection, rows: pa.Table, condition: str, name: str) -> pa.Table:
    """The answer to one question about the rows that meet a user's condition; the question calls them `chosen`.

    DuckDB parses the condition as one expression, never as a statement, in a read-only transaction.

    Raises:
        RbpxError: it is not a single boolean expression, or DuckDB refuses it.
    """
    connection.execute("BEGIN TRANSACTION READ ONLY")
    try:
        relation = connection.from_arrow(rows)
        chosen = relation.filter(condition)
        (kind,) = relation.project(f"({condition}\n)").types
        if kind != "BOOLEAN":
            raise RbpxError(f"it is {kind}, not true or false")
        answer = chosen.query("chosen", read_sql(name))
        assert answer is not None, f"{name}.sql is not a SELECT"
        return answer.to_arrow_table()
    except duckdb.Error as problem:
        raise _damage(problem) or RbpxError(_one_line(problem)) from None
    finally:
        connection.execute("ROLLBACK")


def ask_user(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """The answer to a user's query: one read-only SELECT over the relations.

    Raises:
        RbpxError: it is not a SELECT, it would change something, or DuckDB refuses it.
        DamageError: a file of the store cannot be read.
    """
    try:
        statements = connection.extract_statements(query)
    except duckdb.Error as problem:
        raise RbpxError(f"this SQL is wrong: {_one_line(problem)}") from None
    if len(statements) != 1 or not _selects(statements[0]):
        raise RbpxError(f"sql takes one SELECT and only reads, got: {query.strip()[:80]!r}; the store is not changed")
    try:
        connection.execute("BEGIN TRANSACTION READ ONLY")
        return connection.sql(query).to_arrow_table()
    except duckdb.Error as problem:
        wrong = RbpxError(f"this SQL is wrong: {_one_line(problem)}; relations: {', '.join(RELATIONS)}")
        raise _damage(problem) or wrong from None
    finally:
        connection.execute("ROLLBACK")


def _selects(statement: duckdb.Statement) -> bool:
    try:
        return bool(statement.type == duckdb.StatementType.SELECT)
    except ValueError:  # the Python client has no name for UPDATE EXTENSIONS and some other kinds
        return False


RELATIONS = (
    "runs",
    "tokens",
    "rank_counts",
    "documents",
    "vocab",
    "observations",
    "temperatures",
    "fits",
    "rank_fits",
    "failures",
)


def _damage(problem: duckdb.Error) -> DamageError | None:
    """The error to raise when a page fails its checksum or a file has changed since it was listed; None if neither."""
    read = re.search(r"reading the stream registered as '(\w+)' failed: (.*)", _one_line(problem))
    if read is None:
        return None
    return DamageError(f"{read[1]} cannot be read: {read[2]}; rbpx store verify names the file")


def _one_line(problem: Exception) -> str:
    text = re.split(r"\n\s*\n|\nLINE ", str(problem))[0]
    return " ".join(text.split())
