"""What every question answered of the frozen stores, and how far its answers now may be from that.

`asked.txt` says what is asked and how the answer begins, `stores/` holds the runs, STORE-VERB.json what was answered:
by line the rows, of which `same` has what all of them have in common. Nested values stand under their path, long lists
by four numbers. keys.json has the names that are promised: the keys of each answer in plain JSON, and the columns of
`fits`.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from rbpx.questions import render
from rbpx.questions.registry import asking
from rbpx.questions.render import rows_of
from rbpx.questions.result import Result
from tests.support.composed import here

FOLDER: Final = Path(__file__).parent
STORES: Final = FOLDER / "stores"
Row = Mapping[str, Any]

NOW: Final[Mapping[str, tuple[str, ...]]] = {
    "closure": ("ranks",),
    "design": ("surface", "decide"),
    "improve": ("learning",),
    "tokenwise": ("outcomes",),
}
"""The verb of a file -> what gives its rows now, in place of the verb; one that is not here is itself.

Each is asked with those keys that it takes.
"""

# ------------------------------------------------------------------------------------------------------- asking
_MOST_LISTED: Final = 6  # values of a list; of a longer one stand the first, the last, how many, and their sum
_PASSED_OVER: Final = re.compile(
    r"(^|\.)("
    r"created_at|registered_at|seen_at|versions|"  # of another time, by another version
    r"gradient|tolerances|starts|uncertainty|residuals_ln|residuals?|resamples|at_bound|"  # what a search leaves behind
    r"error_choice|"  # of what was chosen at another size among distributions that fit it alike
    r"params\.forms\[\d\]\.reach|"  # flat where three k are known: the likelihoods, which are held, do not depend on it
    r"sql|equation|notes|verdict|params\.source"  # prose, which may be said better
    r")\b"
)


@dataclass(frozen=True)
class Ask:
    """What is asked of a store, as it is typed; `daily` where `make test` asks it too; `said` begins the answer."""

    store: str
    line: str
    daily: bool
    said: str

    @property
    def verb(self) -> str:
        return self.line.partition(" ")[0]

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.store}-{self.verb}.json"

    def questions(self) -> list[list[str]]:
        """The words of what is asked now; once all laws were the default."""
        verb, *rest = shlex.split(self.line)
        if verb in ("fit", "predict") and not any(word.startswith("laws=") for word in rest):
            rest.append("laws=all")
        typed = [(shlex.split(each), asking(each.partition(" ")[0]).keys) for each in NOW.get(verb, (verb,))]
        return [[*now, *(w for w in rest if "=" not in w or w.partition("=")[0] in keys)] for now, keys in typed]

    def expected(self) -> list[Row]:
        """The rows of its file; of a verb that went without its name as their kind, and without what is null."""
        answer = json.loads(self.file.read_text(encoding="utf-8"))[self.line]
        rows = [answer["same"] | row for row in answer["rows"]]
        if self.verb not in NOW:
            return rows
        return [
            {key: each for key, each in row.items() if each is not None and (key, each) != ("kind", self.verb)}
            for row in rows
        ]

    def found(self, stores: Path) -> tuple[list[Row], list[Result]]:
        """The rows that it is answered now, in a copy of `STORES`; and the results that have them."""
        results: list[Result] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(render, "rows_of", lambda of: results.extend(of) or rows_of(of))
            answers = [
                here(*words, "--format", "json", "--details", "--store", stores / self.store, cwd=stores, check=0)
                for words in self.questions()
            ]
        return [flat(row) for answer in answers for row in json.loads(answer.stdout)], results


def asks() -> list[Ask]:
    """All lines of `asked.txt`."""
    found, store = [], ""
    for line in (FOLDER / "asked.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            store = line.strip("[]")
        elif line and not line.startswith("#"):
            typed, _, said = line.partition(" => ")
            found.append(Ask(store, typed.removeprefix("* "), line.startswith("* "), said))
    return found


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Nested values by their path, without those that are passed over."""
    if _PASSED_OVER.search(path):
        return {}
    if isinstance(value, dict):
        parts = [(f"{path}.{name}" if path else name, each) for name, each in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path}[{at}]", each) for at, each in enumerate(value)]
        if len(value) > _MOST_LISTED:
            numbers = [each for each in value if isinstance(each, int | float)]
            parts = [parts[0], (f"{path}[-1]", value[-1]), (f"{path}[n]", len(value)), (f"{path}[sum]", sum(numbers))]
    else:
        return {path: value}
    return {name: leaf for of, each in parts for name, leaf in flat(each, of).items()}


# ---------------------------------------------------------------------------------------------------- comparing
_IDENTITY: Final = frozenset(
    "kind law k n ties family source dataset dataset_b size revision variant dtype method form axis distribution "
    "quantity law objective_name model base a b text doc_id position token_id task feature learner correction slice "
    "along name by item run_id".split()
)


def differences(expected: Sequence[Row], found: Sequence[Row], verb: str) -> list[str]:
    """What is missing or differs: for each old row the new one of the same names that is most like it.

    Further rows and further keys are passed over.
    """
    free = dict(enumerate(found))
    told: list[str] = []
    for at, old in enumerate(expected):
        best: tuple[int, list[str]] | None = None
        for n in sorted((n for n in free if _are_alike(old, free[n])), key=lambda n: n != at):
            differing = list(_differing(old, free[n], verb))
            if best is None or len(differing) < len(best[1]):
                best = n, differing
            if not differing:
                break
        name = ", ".join(f"{key}={old[key]}" for key in old if key in _IDENTITY and isinstance(old[key], str | int))
        told += [f"no row of {name}"] if best is None else [f"{name}: {each}" for each in best[1]]
        if best is not None:
            del free[best[0]]
    return told


def _are_alike(old: Row, new: Row) -> bool:
    names = (key for key in _IDENTITY if key in old and key in new and not isinstance(old[key], float))
    return all(old[key] == new[key] for key in names)


def _differing(old: Row, new: Row, verb: str) -> Iterator[str]:
    for key, value in old.items():
        if key not in new:
            yield f"no {key}, which was {value}"
        elif value != new[key] and not _is_near(key, value, new[key], old, verb):
            yield f"{key} was {value}, is {new[key]}"


# --------------------------------------------------------------------------------------------------- intervals
def outside(row: Row) -> list[str]:
    """The numbers of a flat row outside their own intervals: X of X_lo and X_hi, or y or value of lo and hi.

    The ends of a number may stand in `params` below it. None is an end that is not known, or open.
    """
    told = []
    for key, lo in row.items():
        if (of := re.fullmatch(r"(.*[._])?lo", key)) is not None:
            stem = of[1] or ""
            names = [f"{stem}value", f"{stem}y"] if stem[-1:] in ("", ".") else [stem[:-1]]
            names += [name.removeprefix("params.") for name in names]
            value, hi = next((row[name] for name in names if name in row), None), row.get(f"{stem}hi")
            if all(isinstance(each, int | float) for each in (value, lo, hi)):
                slack = 1e-9 * max(abs(value), abs(lo), abs(hi))  # type: ignore[arg-type]
                told += [f"{key}: {value} is not in {lo} to {hi}"] * (not lo - slack <= value <= hi + slack)
    return told


# --------------------------------------------------------------------------------------------------- tolerances
# By the name of a key; what has no rule of its own is CLOSE: closed forms, counts, and what a searched fit predicts.
_CLOSE: Final = 1e-6  # relative
_ROUNDING: Final = 1e-12  # absolute: differences of logarithms that are 0 but for rounding, as a slope of equal values
_OBJECTIVE: Final = re.compile(r"(^|\.)(objective|squares|loglik)$")  # 1e-8 relative: a worse optimum is a mistake
# 1e-6 absolute: the error of a prediction, relative to it; the weight of a form in a mean of predictions
_ERROR: Final = re.compile(r"(^|\.|_)errors?(_own|_lo|_hi)?(\[|$)|^weights\.")
# Constants of a search and what follows from them: 1e-3 of a standard error, which is beside them or in an interval.
_CONSTANT: Final = re.compile(
    r"(^|\.)(E|A|B|C|K|D_c|N_c|R_[DN]|E_[abxy]|S_ref|S|D|a|b|c|h|x0|time|width|temperature|drift|curvature|"
    r"(alpha|beta|gamma|kappa|delta)\w*|C\.\d+|alphas\.\d+)(\[\d\])?(\.value|\.lo|\.hi|_lo|_hi|_stderr)?$"
)
_CLOSED: Final = frozenset("exponents units improve items compare view forecasts".split())  # without a search
# Constants of a search that have no standard error: 1e-3 relative, or absolute where they are near 0.
_WITHOUT_STDERR: Final = re.compile(
    r"^(E|alpha)_(base|variant)$|^coefficients\.|^params\.smaller\.|^laws\[\d\]\.|covariance|correlation\["
)


def _is_near(key: str, old: Any, new: Any, row: Row, verb: str) -> bool:
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in (old, new)):
        return False
    return abs(old - new) <= max(_ROUNDING, _allowed(key, old, row, verb))


def _allowed(key: str, value: float, row: Row, verb: str) -> float:
    if _OBJECTIVE.search(key):
        return 1e-8 * abs(value)
    if _ERROR.search(key):
        return _CLOSE
    if _WITHOUT_STDERR.search(key):
        return 1e-3 * max(abs(value), 1e-2)
    if row.get("kind") == "backtest" and key in ("lo", "hi"):  # of forms whose weights rest on a handful of runs
        return 1e-2 * float(row["hi"] - row["lo"])
    is_line = row.get("method") in ("ols", "weighted") and not re.search(r"(^|[._])E(_|$)|choice", key)
    if verb in _CLOSED or is_line or not _CONSTANT.search(key):
        return _CLOSE * abs(value)
    return max(_CLOSE * abs(value), 1e-3 * _stderr(key, row))


def _stderr(key: str, row: Row) -> float:
    """Of a constant, of an end of its interval; 0 where none is known."""
    stem = re.sub(r"(\.value|\.lo|\.hi|_lo|_hi|_stderr|\[\d\])$", "", key)
    for value, lo, hi in (("", "_lo", "_hi"), (".value", ".lo", ".hi"), ("[0]", "[1]", "[2]")):
        ends = [row.get(stem + end) for end in (lo, value, hi)]
        known = [end for end in ends if isinstance(end, int | float)]
        stderr = row.get(re.sub("_bias$", "_sd", key) if key.endswith("_bias") else f"{stem}_stderr")
        if stderr is not None or len(known) > 1:
            return float(stderr if stderr is not None else (max(known) - min(known)) / (2 * len(known) - 2))
    return 0.0
