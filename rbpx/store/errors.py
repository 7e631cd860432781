"""Translates errors of DuckDB into errors of rbpx with advice."""

import re
from typing import TYPE_CHECKING, Final

import duckdb

from rbpx.errors import MeasureError, RbpxError
from rbpx.store.schema import COLUMNS

if TYPE_CHECKING:
    from rbpx.store.sql import SqlLimits

_DERIVED: Final = {  # columns that newcomers ask for, and how to have them
    "S": "non_embedding_params of runs",
    "D": "training_tokens of runs",
    "C": "training_flops of runs",
    "hit": "rank <= k",
    "hits": "rank <= k",
    "loss": "-logprob of tokens, and cross_entropy_nats of runs",
    "rbp": "in FROM rbp_at(k, 'pessimistic'), and in observations at some k",
    "text": "in vocab: JOIN runs USING (run_id) JOIN vocab USING (tokenizer_hash, token_id)",
    "token": "text of vocab: JOIN runs USING (run_id) JOIN vocab USING (tokenizer_hash, token_id)",
}
_RESERVED: Final = ("window",)  # columns whose names are words of SQL


def too_large(limits: "SqlLimits") -> str:
    """The message for a query that exceeds its memory limit."""
    return (
        f"this query needs more than sql_memory_mib={limits.held_mib}; narrow it with WHERE or LIMIT, or give it more: "
        f"sql_memory_mib={2 * limits.held_mib}"
    )


def beyond(problem: Exception, limits: "SqlLimits") -> RbpxError | None:
    """The error to raise where DuckDB ran out of memory or disk."""
    return RbpxError(too_large(limits)) if "Out of Memory Error" in str(problem) else None


def unread(problem: Exception) -> MeasureError | None:
    """The error to raise where a file of the store cannot be read."""
    said = one_line(problem)
    read = re.search(r"/(?:runs/[^/]+/(\w+)|(vocab|best|imports)/[^/]+)\.parquet\b", said)
    if read is None or isinstance(problem, duckdb.PermissionException):
        return None
    return MeasureError(f"{read[1] or read[2]} cannot be read: {said}; rbpx store verify names the file and what to do")


def untold(problem: Exception) -> RbpxError | None:
    """The error to raise where an engine gave no rank for a token."""
    rule = re.search(r"rank untold: (\w+)", str(problem))
    if rule is None:
        return None
    return RbpxError(
        f"a run holds tokens of another engine, which gave no ranks with ties={rule[1]}; find it by the column engine "
        "of the relation runs, then ask with the tie rule of its ranks, or narrow the question to other runs"
    )


def wrong_query(problem: Exception, query: str) -> RbpxError:
    """The error of a user's query: where an unknown column is, or how to write its name."""
    named = re.search(r'(?:Referenced column|have a column named) "(\w+)"', str(problem))
    if named is not None:
        column = named[1]
        there = [name for name, columns in COLUMNS.items() if column in columns.names]
        where = f"it is in {', '.join(there)}" + (": JOIN runs USING (run_id)" if "runs" in there else "")
        derived = f"{column} is {_DERIVED[column]}" if column in _DERIVED else ""
        if there or derived:
            return RbpxError(f"no column named {column} in what this SQL reads; {derived or where}")
    quoted = [name for name in _RESERVED if re.search(rf'(?<!["\w]){name}(?!["\w])', query)]
    if quoted and "syntax error" in str(problem):
        return RbpxError(f'{quoted[0]} is a word of SQL: write the column as "{quoted[0]}"')
    return RbpxError(f"this SQL is wrong: {one_line(problem)}; relations: {', '.join(COLUMNS)}")


def one_line(problem: Exception) -> str:
    """The message of an error on one line, without the SQL that DuckDB appends."""
    said = problem.object.decode(errors="replace") if isinstance(problem, UnicodeDecodeError) else str(problem)
    return " ".join(re.split(r"\n\s*\n|\nLINE ", said)[0].split())
