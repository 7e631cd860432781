"""Runs SQL over a store: the project's own questions from .sql files, and what users write, within limits."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache, partial
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from rbpx.errors import DamageError, MeasureError, RbpxError
from rbpx.files.output import Rows
from rbpx.store import schema
from rbpx.store.checks.integrity import sound_runs
from rbpx.store.sql import relations
from rbpx.store.sql.bounded import Bounded, SqlLimits, close, is_left_behind, limit, too_large
from rbpx.store.sql.relations import take_problem
from rbpx.store.store import Store

_LIMITS = SqlLimits()
_ROWS = 2048  # asked for at a time; DuckDB computes no fewer
_Connections = dict[tuple[Path, SqlLimits], duckdb.DuckDBPyConnection]
_shared: ContextVar[tuple[ExitStack, _Connections] | None] = ContextVar("shared", default=None)
_PACKAGE = Path(str(files("rbpx")))


@cache
def read_sql(name: str) -> str:
    """The SQL of one question, header included; its file lies beside the code that asks it and has a unique name."""
    (path,) = (path for path in _sql_files() if path.stem == name)
    return path.read_text(encoding="utf-8")


@cache
def _sql_files() -> tuple[Path, ...]:
    """All files of SQL; the package is searched once for all questions of a command."""
    return tuple(_PACKAGE.rglob("*.sql"))


@contextmanager
def connect(store: Store, with_fits: bool = True, limits: SqlLimits = _LIMITS) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to the relations of a store in memory; no statement can reach a file, an extension or a setting.

    The Parquet files are registered as Arrow datasets, so that DuckDB itself needs no access to any path.

    Args:
        store: the store.
        with_fits: whether to include `fits`, `rank_fits` and `failures`.
        limits: of the memory and the temporary files of all questions that it is asked.

    Raises:
        MeasureError: the records of the runs need more memory than that.
    """
    connection = duckdb.connect(":memory:")
    spill = limit(connection, limits)
    try:
        try:
            _fill(connection, store, with_fits)
        except duckdb.OutOfMemoryException as problem:
            raise _unheld(problem) or problem from None
        yield connection
    finally:
        close(connection, spill)


@contextmanager
def connected_once() -> Iterator[None]:
    """While the block lasts, questions share a connection (`shared`), and so the runs that the first of them found.

    Within another such block this one does nothing.
    """
    if _shared.get() is not None:
        yield
        return
    with ExitStack() as stack:
        before = _shared.set((stack, {}))
        try:
            yield
        finally:
            _shared.reset(before)


@contextmanager
def shared(store: Store, limits: SqlLimits) -> Iterator[duckdb.DuckDBPyConnection]:
    """As `connect` without fits; to make one anew for each question of a report takes seconds for thousands of runs."""
    stack, connections = _shared.get() or (None, {})
    if stack is None:
        with connect(store, with_fits=False, limits=limits) as connection:
            yield connection
        return
    key = (store.root, limits)
    if key not in connections:
        connections[key] = stack.enter_context(connect(store, with_fits=False, limits=limits))
    connection = connections[key]
    try:
        yield connection
    except BaseException as problem:  # one that found damage, or computes still, may not be asked again
        known = isinstance(problem, RbpxError) and not isinstance(problem, DamageError)
        if not known or is_left_behind(connection):
            connections.pop(key, None)
        raise


def _fill(connection: duckdb.DuckDBPyConnection, store: Store, with_fits: bool) -> None:
    run_ids = sound_runs(store)
    stamps = relations.stamps_of_runs(store, run_ids, with_fits)
    with relations.opened_index(store) as index:
        relations.create_tables(connection, store, stamps, index)
    for name in (*relations.BY_FILE, *relations.ALSO_BY_FILE):
        connection.register(name, relations.dataset(store, name, run_ids))
    connection.execute(read_sql("relations"))
    _lock(connection)


def _lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Let no statement reach a file, an extension or a setting any more."""
    connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    connection.execute("SET python_enable_replacements = false; SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def ask(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pa.Table:
    """The answer to one of the project's own questions, with its `$parameters` bound.

    Raises:
        DamageError: a file of the store cannot be read.
        MeasureError: it needs more memory than there is.
    """
    try:
        return connection.sql(read_sql(name), params=parameters).to_arrow_table()
    except (duckdb.Error, UnicodeDecodeError) as problem:
        raise _unread(problem) or _untold(problem) or _unheld(problem) or problem from None


def ask_beside(connection: duckdb.DuckDBPyConnection, rows: pa.Table, name: str, **parameters: Any) -> pa.Table:
    """As `ask`, with rows that are not in the store; the question refers to them as `given`."""
    connection.register("given", rows)
    try:
        return ask(connection, name, **parameters)
    finally:
        connection.unregister("given")


def ask_where(
    connection: duckdb.DuckDBPyConnection, rows: pa.Table, condition: str, name: str, limits: SqlLimits = _LIMITS
) -> pa.Table:
    """The answer to one question about the rows that meet a user's condition; the question calls them `chosen`.

    DuckDB parses the condition as one expression, never as a statement, in a read-only transaction.

    Raises:
        RbpxError: it is not a single boolean expression, DuckDB refuses it, or a limit was reached.
    """

    def choose() -> pa.Table:
        chosen, _ = _meeting(connection, rows, condition)
        answer = chosen.query("chosen", read_sql(name))
        assert answer is not None, f"{name}.sql is not a SELECT"
        return answer.to_arrow_table()

    return _of_condition(connection, choose, limits)


def meets(rows: pa.Table, condition: str, limits: SqlLimits) -> pa.ChunkedArray:
    """Whether each row of a table meets a user's condition, which can reach nothing else; null where that is unknown.

    Raises:
        RbpxError: as in `ask_where`.
    """
    connection = duckdb.connect(":memory:")
    spill = limit(connection, limits)
    try:
        _lock(connection)
        truths: pa.Table = _of_condition(
            connection, lambda: _meeting(connection, rows, condition)[1].to_arrow_table(), limits
        )
        return truths.column(0)
    finally:
        close(connection, spill)


def _meeting(
    connection: duckdb.DuckDBPyConnection, rows: pa.Table, condition: str
) -> tuple[duckdb.DuckDBPyRelation, duckdb.DuckDBPyRelation]:
    """The rows that meet a condition, and of each row whether it does."""
    relation = connection.from_arrow(rows)
    chosen, truths = relation.filter(condition), relation.project(f"({condition}\n)")
    (kind,) = truths.types
    if kind != "BOOLEAN":
        raise RbpxError(f"it is {kind}, not true or false")
    return chosen, truths


def _of_condition(connection: duckdb.DuckDBPyConnection, do: Callable[[], pa.Table], limits: SqlLimits) -> pa.Table:
    with Bounded(connection, limits) as bounded, _reading(bounded):
        try:
            return bounded.call(do)
        except duckdb.Error as problem:
            raise _unread(problem) or _beyond(problem, limits) or RbpxError(_one_line(problem)) from None


@contextmanager
def user_rows(connection: duckdb.DuckDBPyConnection, query: str, limits: SqlLimits = _LIMITS) -> Iterator[Rows]:
    """The answer to a user's query, a part at a time: one read-only SELECT over the relations.

    The first part is computed before any is given out, so that what is wrong with a query is known before a caller has
    written anything.

    Raises:
        RbpxError: it is not a SELECT, it would change something, DuckDB refuses it, or a limit was reached.
        DamageError: a file of the store cannot be read.
    """
    with Bounded(connection, limits) as bounded:
        try:
            selects = bounded.call(lambda: is_one_select(connection, query))
        except duckdb.Error as problem:
            raise RbpxError(f"this SQL is wrong: {_one_line(problem)}") from None
        if not selects:
            raise RbpxError(
                f"sql takes one SELECT and only reads, got: {query.strip()[:80]!r}; the store is not changed"
            )
        with _reading(bounded):
            get = partial(_bounded_call, bounded, limits, query)
            reader = get(lambda: connection.sql(query).to_arrow_reader(_ROWS))
            first = get(lambda: next(reader, None))

            def parts() -> Iterator[pa.RecordBatch]:
                part = first
                while part is not None:
                    yield part
                    part = get(lambda: next(reader, None))

            try:
                yield Rows(reader.schema, parts())
            finally:
                if not bounded.is_left_behind:
                    reader.close()


def ask_user(connection: duckdb.DuckDBPyConnection, query: str, limits: SqlLimits = _LIMITS) -> pa.Table:
    """As `user_rows`, all of it as one table, which may not be larger than the limit of memory."""
    parts, n_bytes = [], 0
    with user_rows(connection, query, limits) as reader:
        for part in reader:
            parts.append(part)
            n_bytes += part.nbytes
            if n_bytes > limits.held_mib * 2**20:
                raise RbpxError(f"the answer is larger: {too_large(limits)}")
        return pa.Table.from_batches(parts, reader.schema)


def _bounded_call(bounded: Bounded, limits: SqlLimits, query: str, do: Callable[[], Any]) -> Any:
    try:
        return bounded.call(do)
    # While rows are read, errors come from pyarrow; one that quotes bytes of a damaged file cannot be decoded.
    except (duckdb.Error, OSError, pa.ArrowException, UnicodeDecodeError) as problem:
        line = _elsewhere(query, problem) or f"{_one_line(problem)}; relations: {', '.join(RELATIONS)}"
        wrong = RbpxError(f"this SQL is wrong: {line}")
        raise _unread(problem) or _beyond(problem, limits) or wrong from None


def _elsewhere(query: str, problem: Exception) -> str | None:
    """Which relation has the column that a query misses, and how to join it; None where none has it."""
    missing = re.search(r'column (?:named )?"([^"]+)"', str(problem))
    if missing is None or not isinstance(problem, duckdb.BinderException):
        return None
    name, words = missing[1].lower(), re.findall(r"\w+", query.lower())
    asked = [relation for relation in RELATIONS if relation in words]
    having = [relation for relation in RELATIONS if name in _COLUMNS[relation]]
    for of, relation in product(asked, having):
        join = None if relation in asked else _join(of, relation)
        if join is not None:
            return f"{name} is not in {of} but in {relation}: FROM {of} {join}"
    return f"{_one_line(problem).partition('!')[0]}; it is a column of {having[0]}" if having else None


def _join(of: str, other: str) -> str | None:
    """The SQL that brings the columns of another relation beside those of one, perhaps by way of `runs`."""
    by, columns = _NAMED_BY.get(other), _COLUMNS[of]
    if by is None or "run_id" not in columns or not columns.union(_COLUMNS["runs"]).issuperset(by):
        return None
    steps = [other] if columns.issuperset(by) else ["runs", other]
    return " ".join(f"JOIN {step} USING ({', '.join(_NAMED_BY[step])})" for step in steps)


@contextmanager
def _reading(bounded: Bounded) -> Iterator[None]:
    """A transaction that changes nothing."""
    bounded.call(lambda: bounded.connection.execute("BEGIN TRANSACTION READ ONLY"))
    try:
        yield
    finally:
        if not bounded.is_left_behind:
            bounded.connection.execute("ROLLBACK")


def is_one_select(connection: duckdb.DuckDBPyConnection, query: str, *, pivots: bool = False) -> bool:
    """Whether SQL is a single SELECT; with `pivots` one in which PIVOT, which makes a type first, may stand."""
    kinds = {duckdb.StatementType.SELECT} | ({duckdb.StatementType.MULTI} if pivots else set())
    statements = connection.extract_statements(query)
    try:
        return len(statements) == 1 and statements[0].type in kinds
    except ValueError:  # the Python client has no name for UPDATE EXTENSIONS and some other kinds
        return False


_SCHEMAS = {
    **{"runs": schema.RUNS, **relations.BY_FILE, "vocab": schema.VOCAB, "observations": schema.OBSERVATIONS},
    **{"temperatures": schema.TEMPERATURES, "best": schema.BEST, **relations.BY_RECORD},
}
_COLUMNS = {name: frozenset(columns.names) for name, columns in _SCHEMAS.items()}
RELATIONS = tuple(_SCHEMAS)
_NAMED_BY = {"runs": ("run_id",), "documents": ("run_id", "doc_id"), "vocab": ("tokenizer_hash", "token_id")}


def _beyond(problem: Exception, limits: SqlLimits) -> RbpxError | None:
    """The error to raise where DuckDB had too little memory or disk; None where it had enough."""
    return RbpxError(too_large(limits)) if "Out of Memory Error" in str(problem) else None


def _unheld(problem: Exception) -> MeasureError | None:
    """The error to raise where one of our own questions had too little memory; None where it had enough."""
    if not isinstance(problem, duckdb.OutOfMemoryException):
        return None
    used = re.search(r"\(([^)]* used)\)", str(problem))
    return MeasureError(
        f"this question needs more memory than it may hold{f' ({used[1]})' if used else ''}; ask for less at once "
        "(dataset=, family=, size=, limit=), or give this process more memory"
    )


def _unread(problem: Exception) -> RbpxError | None:
    """The error to raise when a file cannot be fetched, fails a checksum, or has changed; None if it is another."""
    unfetched = take_problem()
    if unfetched is not None:
        return unfetched
    read = re.search(r"reading the stream registered as '(\w+)' failed: (.*)", _one_line(problem))
    if read is None:
        return None
    return DamageError(f"{read[1]} cannot be read: {read[2]}; rbpx store verify names the file")


def _untold(problem: Exception) -> RbpxError | None:
    """The error to raise when a rank is asked for that an engine did not tell; None if it is another."""
    rule = re.search(r"rank untold: (\w+)", str(problem))
    if rule is None:
        return None
    return RbpxError(
        f"a run holds tokens of another engine, which gave no ranks with ties={rule[1]}; find it by `engine` in python "
        "-m rbpx sql 'FROM runs', then ask with the tie rule of its ranks, or narrow the question to other runs"
    )


def _one_line(problem: Exception) -> str:
    said = problem.object.decode(errors="replace") if isinstance(problem, UnicodeDecodeError) else str(problem)
    text = re.split(r"\n\s*\n|\nLINE ", said)[0]
    return " ".join(text.split())
