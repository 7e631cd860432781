"""What an error of DuckDB means to whoever asked: the error to raise in its place, with what to do about it."""

import re
from typing import TYPE_CHECKING

from rbpx.errors import MeasureError, RbpxError, UntoldRanksError

if TYPE_CHECKING:
    from rbpx.store.sql import SqlLimits


def too_large(limits: "SqlLimits") -> str:
    """What to say of a query that needs more memory than it may have."""
    return (
        f"this query needs more than sql_memory_mib={limits.held_mib}; narrow it with WHERE or LIMIT, or give it more: "
        f"sql_memory_mib={2 * limits.held_mib}"
    )


def beyond(problem: Exception, limits: "SqlLimits") -> RbpxError | None:
    """The error to raise where DuckDB had too little memory or disk; None where it had enough."""
    return RbpxError(too_large(limits)) if "Out of Memory Error" in str(problem) else None


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
        f"a run holds tokens of another engine, which gave no ranks with ties={rule[1]}; find it by the column engine "
        "of the relation runs, then ask with the tie rule of its ranks, or narrow the question to other runs"
    )


def one_line(problem: Exception) -> str:
    """What an error says, without the statement that DuckDB shows below it."""
    said = problem.object.decode(errors="replace") if isinstance(problem, UnicodeDecodeError) else str(problem)
    return " ".join(re.split(r"\n\s*\n|\nLINE ", said)[0].split())
