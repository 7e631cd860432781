"""What an error of DuckDB means to whoever asked: the error to raise in its place, with what to do about it."""

import re
from itertools import product
from typing import TYPE_CHECKING, Final

import duckdb

from rbpx.errors import MeasureError, RbpxError, UntoldRanksError
from rbpx.store import schema
from rbpx.store.relations import BY_FILE, BY_RECORD, RELATIONS

if TYPE_CHECKING:
    from rbpx.store.sql import SqlLimits

_SCHEMAS: Final = {
    **BY_RECORD,
    **BY_FILE,
    **{"vocab": schema.VOCAB, "observations": schema.OBSERVATIONS},
    **{"temperatures": schema.TEMPERATURES, "best": schema.BEST},
}
_COLUMNS: Final = {name: frozenset(columns.names) for name, columns in _SCHEMAS.items()}
_NAMED_BY: Final = {"runs": ("run_id",), "documents": ("run_id", "doc_id"), "vocab": ("tokenizer_hash", "token_id")}


def elsewhere(query: str, problem: Exception) -> str | None:
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
    return f"{one_line(problem).partition('!')[0]}; it is a column of {having[0]}" if having else None


def _join(of: str, other: str) -> str | None:
    """The SQL that brings the columns of another relation beside those of one, perhaps by way of `runs`."""
    by, columns = _NAMED_BY.get(other), _COLUMNS[of]
    if by is None or "run_id" not in columns or not columns.union(_COLUMNS["runs"]).issuperset(by):
        return None
    steps = [other] if columns.issuperset(by) else ["runs", other]
    return " ".join(f"JOIN {step} USING ({', '.join(_NAMED_BY[step])})" for step in steps)


def too_large(limits: "SqlLimits") -> str:
    """What to say of a query that needs more memory than it may have."""
    return (
        f"this query needs more than sql_memory_mib={limits.held_mib} and {limits.spilled_mib} MiB of temporary files; "
        f"narrow it with WHERE or LIMIT, or give it more: sql_memory_mib={2 * limits.held_mib}"
    )


def beyond(problem: Exception, limits: "SqlLimits") -> RbpxError | None:
    """The error to raise where DuckDB had too little memory or disk; None where it had enough."""
    return RbpxError(too_large(limits)) if "Out of Memory Error" in str(problem) else None


def unheld(problem: Exception) -> MeasureError | None:
    """The error to raise where one of our own questions had too little memory; None where it had enough."""
    if not isinstance(problem, duckdb.OutOfMemoryException):
        return None
    used = re.search(r"\(([^)]* used)\)", str(problem))
    return MeasureError(
        f"this question needs more memory than it may hold{f' ({used[1]})' if used else ''}; ask for less at once "
        "(dataset=, family=, size=, limit=), or give this process more memory"
    )


def unread(problem: Exception) -> MeasureError | None:
    """The error to raise where a file of the store cannot be read; None if it is another."""
    read = re.search(r"reading the stream registered as '(\w+)' failed: (.*)", one_line(problem))
    if read is None:
        return None
    return MeasureError(f"{read[1]} cannot be read: {read[2]}; rbpx store verify names the file and what to do")


def untold(problem: Exception) -> UntoldRanksError | None:
    """The error to raise when a rank is asked for that an engine did not tell; None if it is another."""
    rule = re.search(r"rank untold: (\w+)", str(problem))
    if rule is None:
        return None
    return UntoldRanksError(
        f"a run holds tokens of another engine, which gave no ranks with ties={rule[1]}; find it by `engine` in python "
        "-m rbpx sql 'FROM runs', then ask with the tie rule of its ranks, or narrow the question to other runs"
    )


def one_line(problem: Exception) -> str:
    """What an error says, without the statement that DuckDB shows below it."""
    said = problem.object.decode(errors="replace") if isinstance(problem, UnicodeDecodeError) else str(problem)
    return " ".join(re.split(r"\n\s*\n|\nLINE ", said)[0].split())
