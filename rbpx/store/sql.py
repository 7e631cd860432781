"""Runs SQL over a store: the queries of rbpx from .sql files, and users' queries, within limits."""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import duckdb
import pyarrow as pa

from rbpx.cores import machine_mib
from rbpx.errors import RbpxError
from rbpx.files.leftovers import held, remove_left
from rbpx.store.errors import beyond, one_line, too_large, unread, untold, wrong_query
from rbpx.store.messages import warn_run
from rbpx.store.parquet import asked_fault
from rbpx.store.relations import check_read, files_of, pattern, read_sql, relations_of
from rbpx.store.schema import BY_FILE

if TYPE_CHECKING:
    from rbpx.store.store import Store

T = TypeVar("T")
_MIB: Final = 2**20
_SPILL: Final = "rbpx-spill-"
_ROWS: Final = 2048  # fetched at a time, DuckDB's smallest unit


@dataclass(frozen=True)
class SqlLimits:
    """The limits of a query: seconds of a user's (None: any), MiB that DuckDB may hold (None: half)."""

    timeout_s: float | None = 60.0
    memory_mib: int | None = None

    @property
    def held_mib(self) -> int:
        """The memory limit, MiB."""
        return self.memory_mib or machine_mib() // 2


_LIMITS: Final = SqlLimits()
_Connections = dict[tuple[Path, SqlLimits], duckdb.DuckDBPyConnection]
_Answers = dict[tuple[int, str, str], pa.Table]
_shared: ContextVar[tuple[ExitStack, _Connections, _Answers] | None] = ContextVar("shared", default=None)
_MOST_BYTES: Final = 256 * _MIB  # size of the cache


@contextmanager
def connect(store: "Store", with_fits: bool = True, limits: SqlLimits = _LIMITS) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to the relations of a store in memory; statements reach no file outside of the store and no setting."""
    with _limited(limits) as connection:
        relations_of(connection, store, with_fits)
        _lock(connection, store.root)
        yield connection


@cache  # once a process: every condition of a user opens a connection
def _remove_spills() -> None:
    remove_left(Path(tempfile.gettempdir()).glob(f"{_SPILL}*"))


@contextmanager
def _limited(limits: SqlLimits) -> Iterator[duckdb.DuckDBPyConnection]:
    _remove_spills()
    with tempfile.TemporaryDirectory(prefix=_SPILL, ignore_cleanup_errors=True) as spill:
        with held(Path(spill)), duckdb.connect(":memory:") as connection:
            connection.execute("SET memory_limit = $1", [f"{limits.held_mib}MiB"])
            connection.execute("SET temp_directory = $1", [spill])
            yield connection


def _lock(connection: duckdb.DuckDBPyConnection, root: Path | None = None) -> None:
    """Deny statements all files outside of the store, extensions and settings."""
    if root is not None:
        connection.execute("SET allowed_directories = $1", [[f"{root}/", f"{pattern(str(root))}/"]])
    connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    connection.execute("SET python_enable_replacements = false; SET enable_external_access = false")
    ((has_bar,),) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    if has_bar:  # it would be printed among rows; a notebook without ipywidgets has none, and refuses to be told so
        connection.execute("SET enable_progress_bar = false")
    connection.execute("SET lock_configuration = true")


@contextmanager
def connected_once() -> Iterator[None]:
    """Share a connection (`shared`) and its cached answers (`ask_once`) within the block; nested, do nothing."""
    if _shared.get() is not None:
        yield
        return
    with ExitStack() as stack:
        stack.callback(_shared.reset, _shared.set((stack, {}, {})))
        yield


@contextmanager
def shared(store: "Store", limits: SqlLimits) -> Iterator[duckdb.DuckDBPyConnection]:
    """As `connect` without fits, with the connection of `connected_once`: making one can take seconds."""
    with connected_once():
        stack, connections, _ = _shared.get()  # type: ignore[misc]
        key = (store.root, limits)
        if key not in connections:
            connections[key] = stack.enter_context(connect(store, with_fits=False, limits=limits))
        yield connections[key]


# ------------------------------------------------------------------------------------------- the project's questions


def ask(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pa.Table:
    """Run one of the queries of rbpx; raises MeasureError where a file of the store cannot be read."""
    query = read_sql(name)
    named = [parameters[key] for key in ("run_id", "smaller_run_id") if key in parameters]
    check_read(connection, re.sub("--.*", "", query), named or parameters.get("run_ids"))
    try:
        return connection.sql(query, params=parameters).to_arrow_table()
    except (duckdb.Error, UnicodeDecodeError) as problem:
        raise unread(problem) or untold(problem) or problem from None


def whole_runs(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[str]) -> set[str]:
    """Those of some runs whose tables are as they were written; logs the others."""
    whole = {*run_ids}
    for run_id, path, sha256 in files_of(connection, BY_FILE, run_ids):
        fault = asked_fault(path, sha256) if run_id in whole else None
        if fault:
            whole.discard(run_id)
            warn_run(path.parents[2], run_id, fault)
    return whole


def ask_once(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pa.Table:
    """As `ask`, with a cache of 256 MiB for a shared connection."""
    _, connections, answers = _shared.get() or (None, {}, {})
    if not any(connection is each for each in connections.values()):  # the id of a closed connection may be reused
        return ask(connection, name, **parameters)
    key = (id(connection), name, repr(sorted(parameters.items())))
    if key in answers:
        return answers[key]
    answer = ask(connection, name, **parameters)
    if sum(each.nbytes for each in answers.values()) + answer.nbytes <= _MOST_BYTES:
        answers[key] = answer
    return answer


def ask_beside(connection: duckdb.DuckDBPyConnection, rows: pa.Table, name: str, **parameters: Any) -> pa.Table:
    """As `ask`, with rows that are not in the store; the query calls them `given`."""
    connection.register("given", rows)
    try:
        return ask(connection, name, **parameters)
    finally:
        connection.unregister("given")


def ask_where(
    connection: duckdb.DuckDBPyConnection, rows: pa.Table, key: str, condition: str, name: str, limits: SqlLimits
) -> pa.Table:
    """Run one query of rbpx on the rows that meet a user's condition, each with its index `row`; raises as `meets`."""
    return ask_beside(connection, rows.filter(_truths(connection, rows, key, condition, limits)), name)


def meets(rows: pa.Table, key: str, condition: str, limits: SqlLimits) -> pa.ChunkedArray:
    """Whether each row of a table meets a user's condition, null where unknown; the condition can reach nothing else.

    Raises:
        RbpxError: it is not a single boolean expression, DuckDB refuses it, or a limit was reached.
    """
    with _limited(limits) as connection:
        _lock(connection)
        return _truths(connection, rows, key, condition, limits)


def _truths(
    connection: duckdb.DuckDBPyConnection, rows: pa.Table, key: str, condition: str, limits: SqlLimits
) -> pa.ChunkedArray:
    def answer() -> pa.Table:
        relation = connection.from_arrow(rows)
        relation.filter(condition)  # parses it as one expression about a row, never as a statement
        truths = relation.project(f"({condition}\n)")
        if truths.types != ["BOOLEAN"]:
            raise RbpxError(f"it is {truths.types[0]}, not true or false")
        return truths.to_arrow_table()

    with stoppable(connection, limits) as call:
        try:
            return call(answer).column(0)
        except (duckdb.Error, RbpxError) as problem:
            columns = ", ".join(column for column in rows.column_names if column != "row")
            why = one_line(problem).partition("; narrow it")[0]  # no key limits the time of such a condition
            raise RbpxError(
                f"{key}={condition!r} is not a valid condition: {why}; give one SQL expression over {columns}"
            ) from None


# ---------------------------------------------------------------------------------------------------- users' queries


@contextmanager
def user_rows(
    connection: duckdb.DuckDBPyConnection, query: str, limits: SqlLimits = _LIMITS
) -> Iterator[pa.RecordBatchReader]:
    """Run a user's query, one SELECT over the relations, and yield its rows in parts.

    The first part is computed at once, so that errors come before the caller writes anything.

    Raises:
        RbpxError: it is not a SELECT, DuckDB refuses it, or a limit was reached.
        MeasureError: a file of the store cannot be read.
    """
    with _reading(connection), stoppable(connection, limits) as call:

        def get(do: Callable[[], T]) -> T:
            try:
                return call(do)
            # Errors while reading rows come from pyarrow; one that quotes bytes of a damaged file cannot be decoded.
            except (duckdb.Error, OSError, pa.ArrowException, UnicodeDecodeError) as problem:
                raise unread(problem) or beyond(problem, limits) or wrong_query(problem, query) from None

        get(lambda: check_read(connection, query))
        select = get(lambda: select_of(connection, query))
        reader = get(lambda: _in_words(connection.sql(select)).to_arrow_reader(_ROWS))
        first = get(lambda: next(reader, None))

        def parts() -> Iterator[pa.RecordBatch]:
            part = first
            while part is not None:
                yield part
                part = get(lambda: next(reader, None))

        try:
            yield pa.RecordBatchReader.from_batches(reader.schema, parts())
        except OverflowError as problem:  # Python has no date before year 1, nor after 9999
            raise RbpxError(f"a value of this answer has no date ({problem}); cast it: column::VARCHAR") from None
        finally:
            reader.close()  # an unread answer would keep the connection busy


def _in_words(rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The same rows with intervals as DuckDB's text, such as 1 day: Arrow's are months, days and nanoseconds."""
    kinds = {name: str(kind) for name, kind in zip(rows.columns, rows.types, strict=True)}
    if not any("INTERVAL" in kind for kind in kinds.values()):
        return rows
    names = {name: '"' + name.replace('"', '""') + '"' for name in kinds}
    told = (f"{names[of]}::{kind.replace('INTERVAL', 'VARCHAR')} AS {names[of]}" for of, kind in kinds.items())
    return rows.project(", ".join(told))


@contextmanager
def _reading(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """A read-only transaction: to DuckDB, a SELECT that deletes rows in its WITH is a SELECT."""
    connection.execute("BEGIN TRANSACTION READ ONLY")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def ask_user(connection: duckdb.DuckDBPyConnection, query: str, limits: SqlLimits = _LIMITS) -> pa.Table:
    """As `user_rows`, as one table no larger than the memory limit."""
    parts, n_bytes = [], 0
    with user_rows(connection, query, limits) as reader:
        for part in reader:
            parts.append(part)
            n_bytes += part.nbytes
            if n_bytes > limits.held_mib * _MIB:
                raise RbpxError(f"the answer is larger: {too_large(limits)}")
        return pa.Table.from_batches(parts, reader.schema)


def select_among(name: str, rows: pa.Table, query: str, limits: SqlLimits = _LIMITS) -> pa.Table:
    """Run one SELECT over rows from outside any store, under their name; it reaches nothing else.

    Raises:
        RbpxError: it is not a SELECT, or a limit was reached.
        duckdb.Error: DuckDB refuses it.
    """
    with _limited(limits) as connection:
        connection.register(name, rows)
        _lock(connection)
        with stoppable(connection, limits) as call:
            select = select_of(connection, query)
            table: pa.Table = call(lambda: connection.sql(select).to_arrow_table())
            return table


@contextmanager
def stoppable(connection: duckdb.DuckDBPyConnection, limits: SqlLimits) -> Iterator[Callable[[Callable[[], T]], T]]:
    """A function that makes calls which Ctrl-C and the time limit interrupt.

    DuckDB stops between two tasks, not within one, so a single value of gigabytes is computed to its end.
    """
    used_s = 0.0
    with ThreadPoolExecutor(1, "rbpx-sql") as thread:

        def call(do: Callable[[], T]) -> T:
            nonlocal used_s
            future, began = thread.submit(do), time.monotonic()
            try:
                return future.result(None if limits.timeout_s is None else max(0.0, limits.timeout_s - used_s))
            except TimeoutError:
                if future.done():
                    raise
                raise RbpxError(
                    f"this query took longer than sql_timeout_s={limits.timeout_s:g} and was stopped; narrow it with "
                    f"WHERE or LIMIT, or give it more time: sql_timeout_s={10 * (limits.timeout_s or 0):g}"
                ) from None
            finally:
                used_s += time.monotonic() - began
                if not future.done():
                    connection.interrupt()

        yield call


def select_of(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """Check that a query is one SELECT and return it in executable form.

    DuckDB splits one with PIVOT into several statements; as a subquery it can only be a SELECT.

    Raises:
        RbpxError: it is not one SELECT.
    """
    try:
        statements = connection.extract_statements(query)
        if [statement.type for statement in statements] == [duckdb.StatementType.MULTI]:
            query = f"SELECT * FROM (\n{query.strip().rstrip(';')}\n)"
            (_,) = connection.extract_statements(query)
            return query
        if [statement.type for statement in statements] == [duckdb.StatementType.SELECT]:
            return query
    except ValueError:  # several statements, and kinds that the Python client lacks, as UPDATE EXTENSIONS
        pass
    raise RbpxError(f"sql takes one SELECT and only reads, got: {query.strip()[:80]!r}; the store is not changed")
