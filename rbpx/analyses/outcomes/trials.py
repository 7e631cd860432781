"""Rows of somebody's benchmark in; for each model which sequences of N tokens passed, checked and counted, out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rbpx.errors import RbpxError
from rbpx.files.rows import Row, Rows

# Field -> names that its column goes by, the preferred one first; compared without regard to case.
ALIASES: Final = {
    "size": ("size", "model", "model_name"),
    "S": ("non_embedding_params", "s"),
    "N": ("n",),
    "passed": ("passed", "pass", "n_passed", "correct"),
    "trials": ("trials", "n_trials", "n_sequences"),
    "group": ("group", "task", "task_id", "document", "doc_id"),
    "k": ("k",),
}
_NEEDED: Final = ("S", "N", "passed")
_YES, _NO = ("true", "yes"), ("false", "no")
_LARGEST: Final = 2**53
_LONGEST: Final = 1_000_000  # tokens of a sequence


@dataclass(frozen=True)
class Trial:
    """One row: of `trials` sequences of N tokens, so many passed.

    Attributes:
        size: name of the model; S where none is told.
        S: non-embedding parameters.
        N: tokens of a sequence.
        passed: sequences that passed.
        trials: all.
        group: what they have in common, a document or a task; None where the file has no such column.
        k: a hit is a rank of at most k; None where it is not told.
    """

    size: str
    S: int
    N: int
    passed: int
    trials: int
    group: str | None
    k: int | None


def read_trials(rows: Rows) -> list[Trial]:
    """Each row of a file, checked.

    Raises:
        RbpxError: a column is missing, or a value is no number, out of its range, or against another row.
    """
    columns = _columns(rows.columns, str(rows.path))
    found, sizes = [], dict[str, tuple[int, str]]()
    for row in rows.rows:
        one = _trial(row, columns)
        S, place = sizes.setdefault(one.size, (one.S, row.place))
        if one.S != S:
            raise RbpxError(
                f"{row.place}: {one.size} has S = {one.S:,}, but {S:,} in {place}; a model has one S, mend it"
            )
        found.append(one)
    names = {S: name for name, (S, _) in sizes.items()}
    twin = next(((name, names[S]) for name, (S, _) in sizes.items() if names[S] != name), None)
    if twin is not None:
        raise RbpxError(f"{rows.path}: {twin[0]} and {twin[1]} have the same S; leave one of them out")
    return found


def _columns(found: Sequence[str], file: str) -> dict[str, str]:
    by_name = {column.strip().lower(): column for column in found}
    columns = {}
    for field, aliases in ALIASES.items():
        alias = next((alias for alias in aliases if alias in by_name), None)
        if alias is not None:
            columns[field] = by_name[alias]
    missing = next((field for field in _NEEDED if field not in columns), None)
    if missing is not None:
        raise RbpxError(
            f"{file} has no column {' or '.join(ALIASES[missing])}; it has: {', '.join(found)}; name the columns "
            "model, non_embedding_params, n, passed, and trials where passed is a count"
        )
    return columns


def _trial(row: Row, columns: dict[str, str]) -> Trial:
    value = {field: row.values.get(column) for field, column in columns.items()}
    S = _whole(row, value["S"], "non_embedding_params", 1, "give parameters, not millions")
    trials = _whole(row, value["trials"], "trials", 1, "a count from 1") if "trials" in columns else 1
    passed = _passed(row, value["passed"], trials, counts="trials" in columns)
    group = value.get("group")
    if "group" in columns and group is None:
        raise RbpxError(f"{row.place}: {columns['group']} is empty; name the group of every row, or drop the column")
    k = None if value.get("k") is None else _whole(row, value["k"], "k", 1, "a rank from 1")
    N = _whole(row, value["N"], "n", 1, f"tokens of a sequence, from 1 to {_LONGEST:,}", _LONGEST)
    named = value.get("size")
    return Trial(str(S if named is None else named), S, N, passed, trials, None if group is None else str(group), k)


def _passed(row: Row, value: Any, trials: int, counts: bool) -> int:
    text = str(value).strip().lower()
    if not counts and text in (*_YES, *_NO):
        return int(text in _YES)
    what = f"sequences that passed, 0 to {trials}" if counts else "true or false, 1 or 0, unless a column trials counts"
    passed = _whole(row, value, "passed", 0, what)
    if passed > trials:
        raise RbpxError(f"{row.place}: passed is {passed}; {what}")
    return passed


def _whole(row: Row, value: Any, field: str, least: int, meaning: str, most: float = _LARGEST) -> int:
    text = "" if value is None or isinstance(value, bool) else str(value).strip()
    number = float(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", text, re.ASCII) else None
    if number is None or number != int(number) or not least <= number <= most:
        raise RbpxError(
            f"{row.place}: {field} is {'empty' if value is None else value}; a whole number is meant, {meaning}"
        )
    return int(number)
