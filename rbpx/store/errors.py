"""Translates errors of DuckDB into errors of rbpx with advice."""

import re
from typing import TYPE_CHECKING

from rbpx.errors import MeasureError, RbpxError, UntoldRanksError

if TYPE_CHECKING:
    from rbpx.store.sql import SqlLimits


def too_large(limits: "SqlLimits") -> str:
    """The message for a query that exceeds its memory limit."""
    return (
        f"this query needs more than sql_memory_mib={limits.held_mib}; narrow it with WHERE or LIMIT, or give it more: "
        f"sql_memory_mib={2 * limits.held_mib}"
    )


def beyond(problem: Exception, limits: "SqlLimits") -> RbpxError | None:
    """The error to raise where DuckDB ran out of memory or disk; None otherwise."""
    return RbpxError(too_large(limits)) if "Out of Memory Error" in str(problem) else None


def unread(problem: Exception) -> MeasureError | None:
    """The error to raise where a file of the store cannot be read; None otherwise."""
    read = re.search(r"reading the stream registered as '(\w+)' failed: (.*)", one_line(problem))
    if read is None:
        return None
    return MeasureError(f"{read[1]} cannot be read: {read[2]}; rbpx store verify names the file and what to do")


def untold(problem: Exception) -> UntoldRanksError | None:
    """The error to raise where an engine gave no rank for a token; None otherwise."""
    rule = re.search(r"rank untold: (\w+)", str(problem))
    if rule is None:
        return None
    return UntoldRanksError(
        f"a run holds tokens of another engine, which gave no ranks with ties={rule[1]}; find it by the column engine "
        "of the relation runs, then ask with the tie rule of its ranks, or narrow the question to other runs"
    )


def one_line(problem: Exception) -> str:
    """The message of an error on one line, without the SQL that DuckDB appends."""
    said = problem.object.decode(errors="replace") if isinstance(problem, UnicodeDecodeError) else str(problem)
    return " ".join(re.split(r"\n\s*\n|\nLINE ", said)[0].split())
