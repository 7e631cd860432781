"""Reads and checks the rows of a benchmark file: sequences of N tokens that each model passed."""

from dataclasses import dataclass
from typing import Final

from rbpx.errors import RbpxError
from rbpx.files.cells import whole_number
from rbpx.files.rows import Row, Rows
from rbpx.store.imports.columns import ALIASES, TRIAL_FIELDS, named_columns

_NEEDED: Final = ("non_embedding_params", "n", "passed")
_TRUTHS: Final = {"true": 1, "yes": 1, "false": 0, "no": 0}
_LARGEST: Final = 2**53
_LONGEST: Final = 1_000_000  # tokens of a sequence


@dataclass(frozen=True)
class Trial:
    """One row of a benchmark: how many of the sequences of N tokens passed.

    `size` names the model (S where it has no name), S counts non-embedding parameters, and `group` is the document or
    task of the sequences. A hit is a rank of at most k. `group` and `k` are None without such a column.
    """

    size: str
    S: int
    N: int
    passed: int
    trials: int
    group: str | None
    k: int | None


def read_trials(table: Rows) -> list[Trial]:
    """Returns the checked rows of a file.

    Raises:
        RbpxError: a column is missing, or a value is not a number, out of its range, or contradicts another row.
    """
    columns = named_columns(table.columns, TRIAL_FIELDS)
    missing = next((field for field in _NEEDED if field not in columns), None)
    if missing is not None:
        raise RbpxError(
            f"{table.path} has no column {' or '.join(ALIASES[missing])}; it has: {', '.join(table.columns)}; name the "
            "columns model, non_embedding_params, n, passed, and trials where passed is a count"
        )
    trials, models = [], dict[str | int, tuple[Trial, str]]()
    for row in table.rows:
        trial = _trial(row, columns)
        for known in (trial.size, trial.S):
            first, place = models.setdefault(known, (trial, row.place))
            if (trial.size, trial.S) != (first.size, first.S):
                raise RbpxError(
                    f"{row.place}: {trial.size} has S = {trial.S:,}, and in {place} {first.size} has S = {first.S:,}; "
                    "each model has an S of its own: fix it, or leave one of them out"
                )
        trials.append(trial)
    return trials


def _trial(row: Row, columns: dict[str, str]) -> Trial:
    value = {field: row.values.get(column) for field, column in columns.items()}

    def whole(field: str, meaning: str, least: int = 1, most: int = _LARGEST) -> int:
        return whole_number(row.place, field, value[field], meaning, least=least, most=most)

    S, trials = whole("non_embedding_params", "a whole number of parameters, not of millions, is expected"), 1
    said, passed = str(value["passed"]).strip().lower(), "true or false, 1 or 0, unless a column trials counts"
    if "trials" in columns:
        trials = whole("trials", "a count from 1 is expected")
        said, passed = "", f"sequences that passed, 0 to {trials}"
    n_passed = _TRUTHS[said] if said in _TRUTHS else whole("passed", passed, least=0, most=trials)
    group = value.get("group")
    if "group" in columns and group is None:
        raise RbpxError(f"{row.place}: {columns['group']} is empty; name the group of every row, or drop the column")
    k = None if value.get("k") is None else whole("k", "a rank from 1 is expected")
    N = whole("n", f"tokens of a sequence, from 1 to {_LONGEST:,}, are expected", most=_LONGEST)
    size = next((value[field] for field in ("size", "model") if value.get(field) is not None), S)
    return Trial(str(size), S, N, n_passed, trials, None if group is None else str(group), k)
