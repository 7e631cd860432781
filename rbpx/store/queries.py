"""Questions to the store: the name of an .sql file and its parameters in, an Arrow table out."""

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
    """The text of one question, header included; its file lies with whoever asks it, its name is its own."""
    (path,) = _PACKAGE.rglob(f"{name}.sql")
    return path.read_text(encoding="utf-8")


def connect(store: Store, with_fits: bool = True) -> duckdb.DuckDBPyConnection:
    """The relations of a store in memory, closed off: no statement can reach a file, an extension or a setting.

    The Parquet files are given as Arrow datasets, so that DuckDB itself needs no access to any path.

    Args:
        store: the store.
        with_fits: whether `fits`, `rank_fits` and `failures` are there too, each of whose rows is a file to be read.
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
    # Else it spills into .tmp of the working directory; files in it could be read, so it is one that nobody else knows.
    connection.execute("SET temp_directory = $1", [f"{tempfile.gettempdir()}/rbpx-{uuid.uuid4().hex}"])
    connection.execute("SET python_enable_replacements = false; SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def ask(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pa.Table:
    """The answer to one question of rbpx/sql, its `$parameters` bound.

    Raises:
        DamageError: a file of the store cannot be read.
    """
    try:
        return connection.sql(read_sql(name), params=parameters).to_arrow_table()
    except duckdb.Error as problem:
        raise _damage(problem) or problem from None


def ask_beside(connection: duckdb.DuckDBPyConnection, rows: pa.Table, name: str, **parameters: Any) -> pa.Table:
    """As `ask`, with rows that the store does not hold; in the question they are called `given`."""
    connection.register("given", rows)
    try:
        return ask(connection, name, **parameters)
    finally:
        connection.unregister("given")


def ask_where(connection: duckdb.DuckDBPyConnection, rows: pa.Table, condition: str, name: str) -> pa.Table:
    """The answer to one question about the rows for which a user's condition is true; in it they are called `chosen`.

    DuckDB reads the condition as one expression, never as a statement, and in a transaction that only reads.

    Raises:
        RbpxError: it is no single expression that is true or false, or DuckDB refuses it.
    """
    connection.execute("BEGIN TRANSACTION READ ONLY")
    try:
        relation = connection.from_arrow(rows)
        chosen = relation.filter(condition)
        (kind,) = relation.project(f"({condition}\n)").types
        if kind != "BOOLEAN":
            raise RbpxError(f"it is {kind}, neither true nor false")
        answer = chosen.query("chosen", read_sql(name))
        assert answer is not None, f"{name}.sql is no SELECT"
        return answer.to_arrow_table()
    except duckdb.Error as problem:
        raise _damage(problem) or RbpxError(_one_line(problem)) from None
    finally:
        connection.execute("ROLLBACK")


def ask_user(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """The answer to a user's question: one SELECT over the relations, reading only.

    Raises:
        RbpxError: it is no SELECT, it would change something, or DuckDB refuses it.
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
    except ValueError:  # UPDATE EXTENSIONS and others are of kinds for which the Python client has no name
        return False


RELATIONS = (
    "runs", "tokens", "rank_counts", "documents", "vocab", "observations", "fits", "rank_fits", "failures"
)  # fmt: skip


def _damage(problem: duckdb.Error) -> DamageError | None:
    """What Arrow says when a page fails its checksum, or a file is not what it was when it was listed."""
    read = re.search(r"reading the stream registered as '(\w+)' failed: (.*)", _one_line(problem))
    if read is None:
        return None
    return DamageError(f"{read[1]} cannot be read: {read[2]}; rbpx store verify names the file")


def _one_line(problem: Exception) -> str:
    text = re.split(r"\n\s*\n|\nLINE ", str(problem))[0]
    return " ".join(text.split())
