"""Keys of laws, surfaces, predictions and the choice of the next runs."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from rbpx.config.keys.key import (
    LARGEST_COUNT,
    as_list,
    checked_names,
    key,
    name_of,
    one_of,
    positive,
    positive_numbers,
    whole,
)
from rbpx.config.options import Checkpoints, Outliers, did_you_mean
from rbpx.errors import RbpxError
from rbpx.laws.names import DELTA, FORM_NAMES, IMPORTED, LAWS, Axis, Method, Objective, OnText, SizeBy
from rbpx.laws.priors import Prior, Priors
from rbpx.spelling import typed
from rbpx.ties import Ties

DEFAULT_K: Final = (1, 10, 100, 500, 1000, 2500, 10000)
USUAL_K: Final = (1, 10, 100)  # if neither laws nor k are named
USUAL: Final = ("rbp", "cross_entropy", *IMPORTED)
_MOST_REPLICATES: Final = 100_000  # their weights take 0.8 GB for 1,000 documents
_LONGEST_WINDOW: Final = 1_000_000  # tokens in a row


@dataclass(frozen=True)
class Choice:
    """Names that were chosen.

    Attributes:
        by_name: whether the user named them, rather than taking the default or `all`.
    """

    names: tuple[str, ...]
    by_name: bool


@dataclass(frozen=True)
class Numbers:
    """The ranks k, or the window lengths n, that were asked for.

    Attributes:
        asked: the numbers; None for the default.
        is_log: whether a log-spaced grid was asked for.
    """

    asked: tuple[int, ...] | None = None
    is_log: bool = False

    @property
    def by_number(self) -> bool:
        """Whether the user gave numbers."""
        return self.asked is not None

    def listed(self, default: Sequence[int] = ()) -> list[int]:
        """Returns the numbers asked for, or the default, ascending."""
        return sorted(set(default if self.asked is None else self.asked))

    def beyond(self, vocab_size: int) -> list[int]:
        """Returns the k asked for that are at least `vocab_size`, where every token is a hit."""
        return [k for k in self.listed() if k >= vocab_size]

    def grid(self, vocab_size: int, default: Sequence[int] | Literal["log"]) -> list[int]:
        """Returns the k asked for that are below V, ascending; `log` spaces eight per decade from 1 to V.

        Raises:
            RbpxError: no k is below `vocab_size`.
        """
        if self.is_log or (self.asked is None and default == "log"):
            steps = round(8 * math.log10(vocab_size))
            return sorted(k for k in {round(10 ** (i / 8)) for i in range(steps + 1)} if k < vocab_size)
        numbers = self.listed([k for k in default if isinstance(k, int)])
        below = [k for k in numbers if k < vocab_size]
        if not below:
            raise RbpxError(f"k={min(numbers)} is not below the vocabulary of {vocab_size:,}; give a smaller k")
        return below


def _ranks(key: str, value: Any) -> Numbers:
    if value == "log":
        return Numbers(is_log=True)
    return _numbers(key, value, LARGEST_COUNT, f"rank; give log, or {{}}, as in {typed(k=[1, 10, 100])}")


def _lengths(key: str, value: Any) -> Numbers:
    return _numbers(key, value, _LONGEST_WINDOW, f"window length; give {{}}, as in {typed(n=[1, 5])}")


def _numbers(key: str, value: Any, most: int, what: str) -> Numbers:
    numbers = None if value is None else tuple(as_list(value))
    for number in numbers or ():
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
            raise RbpxError(f"{key}={number} is not a valid {what.format(f'whole numbers from 1 to {most:,}')}")
    return Numbers(numbers)


def _laws(key: str, value: Any) -> Choice:
    if value is None:
        return Choice(USUAL, False)
    names = checked_names(key, value, (*LAWS, *IMPORTED))
    return Choice((*LAWS, *IMPORTED), False) if "all" in names else Choice(tuple(dict.fromkeys(names)), True)


def _axis(key: str, value: Any) -> Axis | OnText:
    law, at, dataset = str(getattr(value, "value", value)).partition("@")
    if at and dataset and law in (*LAWS, *IMPORTED):
        return OnText(law, dataset)
    if not at and law in tuple(Axis):
        return Axis(law)
    known = (*LAWS, *IMPORTED) if at else tuple(Axis)
    raise RbpxError(
        f"{key}={value} is unknown; {did_you_mean(law, known)}known: {', '.join(Axis)}, and QUANTITY@TEXT, as "
        f"cross_entropy@stdlib, of: {', '.join((*LAWS, *IMPORTED))}"
    )


"""Active and all parameters, which are compared."""


def _size(key: str, value: Any) -> SizeBy:
    names = [str(name) for name in as_list(value)]
    if sorted(names) == [SizeBy.active, SizeBy.total]:
        raise RbpxError(
            "size_by=[active,total] is not asked any more; in its place: size_by=active, then size_by=total, whose "
            "backtests say which predicts larger models better"
        )
    if len(names) != 1 or names[0] not in tuple(SizeBy):
        raise RbpxError(f"{key}={value} is unknown; {did_you_mean(names[0], tuple(SizeBy))}known: {', '.join(SizeBy)}")
    return SizeBy(names[0])


def _methods(key: str, value: Any) -> list[Method]:
    return [Method(name) for name in one_of(tuple(Method))(key, "ols" if value is None else value)]


def _forms(key: str, value: Any) -> list[str]:
    names: list[str] = one_of(FORM_NAMES)(key, "chinchilla" if value is None else value)
    return names


_NUMBER: Final = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_PIN: Final = re.compile(rf"{_NUMBER}(?:\s*(?:\+-|\+/-|±)\s*{_NUMBER})?")


def _pin(key: str, value: Any) -> Prior | None:
    """Reads a fixed parameter, E=1.7, or a prior, E='1.7 +- .05'."""
    if value is None:
        return None
    found = None if isinstance(value, bool) else _PIN.fullmatch(str(value).strip())
    if found is None or (found[2] is not None and float(found[2]) <= 0):
        raise RbpxError(f"{key}={value} is not a constant; give a number, or a prior, as in {typed(E='1.7 +- .05')}")
    return Prior(float(found[1]), float(found[2] or 0.0))


def _pins(key: str, value: Any) -> dict[str, Prior]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise RbpxError(f"{key}={value} is not a mapping of constants; give {typed(pin={'E': 1.7, 'alpha': 0.34})}")
    return {str(name): pin for name, each in value.items() if (pin := _pin(f"{key}.{name}", each)) is not None}


@dataclass(kw_only=True)
class LawKeys:
    """Keys that choose laws and how they are fitted."""

    k: Numbers = key(
        None, "one rank, a list {example}, or log; default 1, 10, 100, with laws= to 10000, below V", _ranks, "K",
        example=[1, 10, 100],
    )  # fmt: skip
    n: Numbers = key(None, "lengths of windows and sequences, in tokens: {example}", _lengths, "N", example=[1, 2, 5])
    ties: Ties | None = key(
        None, "pessimistic (default), optimistic (default for protocol=official) or mid", shown="RULE"
    )
    resamples: int = key(
        1000, "bootstrap replicates of the documents, for intervals", whole(1, _MOST_REPLICATES), "1000"
    )
    laws: Choice = key(
        None,
        "all, one law, or a list; default -ln RBP_k and cross-entropy",
        _laws,
        "all",
        values=("all", *LAWS, *IMPORTED),
    )
    method: list[Method] = key(
        None,
        "how laws are fitted: ols (default), weighted, offset, robust, a list or all",
        _methods,
        "ols",
        values=("all", *Method),
    )
    E: Prior | None = key(
        None, "irreducible loss of one law (cross_entropy if laws= names none), or its prior, {example}", _pin, "1.7",
        example="1.7 +- .05",
    )  # fmt: skip
    pin: dict[str, Prior] = key(
        None, "any constants of the form, fixed or with a prior as E: {example}", _pins, "",
        example={"E": 1.7, "alpha": "0.34 +- 0.02"},
    )  # fmt: skip
    axis: Axis | OnText = key(
        Axis.S.value,
        "what laws are in: size; D (tokens) or step, a law a size; C (FLOPs), best a budget; of predict QUANTITY@TEXT",
        _axis,
        "S",
        values=tuple(Axis),
    )
    frontier: bool = key(
        False, "takes the best of runs of one size and tokens (sweeps, seeds), a quadratic's minimum", shown="true"
    )
    outliers: Outliers = key(
        Outliers.drop,
        "drop or keep: whether laws in size and tokens leave out outliers, which are named",
        shown="drop",
    )
    size_by: SizeBy = key(
        SizeBy.total.value,
        "parameters that are S: active of a token, with_embeddings all",
        _size,
        "total",
        values=tuple(SizeBy),
    )
    checkpoints: Checkpoints = key(
        Checkpoints.all, "all, or last: of each training only its last checkpoint counts", shown="all"
    )
    last: int | None = key(
        None, "the mean of its last N checkpoints stands for each training (downstream: 5)", whole(1), "N"
    )


_LARGEST_S: Final = 1e30


def _targets(key: str, value: Any) -> list[float]:
    return positive_numbers(key, value, f"non-embedding parameters, as in {typed(S=['1B', 1e10])}", _LARGEST_S)


def _tokens(key: str, value: Any) -> list[float]:
    return positive_numbers(key, value, f"training tokens, as in {typed(D=[2e10, 2e11])}")


def _places(key: str, value: Any) -> list[float]:
    return positive_numbers(key, value, f"values of the quantity that axis= names, as in {typed(x=[2.9, 2.7])}")


def _budgets(key: str, value: Any) -> list[float]:
    return positive_numbers(key, value, f"training FLOPs, as in {typed(flops=[1e18, 1e20])}")


def _forecast(key: str, value: Any) -> str | None:
    name: str | None = name_of(key, value)
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", name):
        raise RbpxError(f"register={name!r} is not a name of a forecast; give up to 100 letters, digits and . _ -")
    return name


def points(S: Sequence[float], D: Sequence[float], grid: bool = False) -> list[tuple[float, float]]:
    """Returns points (S, D): lists of one length pairwise, a single value or all (`grid`) with each; empty without D.

    Raises:
        RbpxError: the lists differ in length, or S is missing.
    """
    if not D:
        return []
    if not S:
        raise RbpxError("D= needs S= beside it: a point has a size and tokens, as in S=1e9 D=2e10")
    if grid:
        return [(each, tokens) for each in S for tokens in D]
    if len(S) != len(D) and 1 not in (len(S), len(D)):
        raise RbpxError(
            f"S= has {len(S)} values and D= has {len(D)}; give as many of both, which go pairwise, one of either, or "
            f"to predict each with each {typed(grid=True)}"
        )
    n = max(len(S), len(D))
    return list(zip(list(S) * (n // len(S)), list(D) * (n // len(D)), strict=True))


def pinned(E: Prior | None, pin: Priors, laws: Choice, k: Numbers) -> Priors:
    """Returns the fixed parameters and priors of one law.

    Raises:
        RbpxError: E is given twice, or several laws are asked for.
    """
    pins = dict(pin) if E is None else {"E": E, **pin}
    if E is not None and "E" in pin:
        raise RbpxError(f"E={E} and pin.E={pin['E']} both give E; drop one")
    names = laws.names if laws.by_name else ()
    several = f"laws={list(names)}" if len(names) > 1 else "k=" if names == ("rbp",) and len(k.listed()) != 1 else None
    if pins and several:
        given = ", ".join(f"{name}={each}" for name, each in pins.items())
        raise RbpxError(f"{given} belongs to one law, and {several} asks for several; give {typed(laws='rbp', k=1)}")
    return pins


@dataclass(kw_only=True)
class PredictionKeys:
    """Keys that choose where and how to predict, and what the next runs may cost."""

    S: list[float] = key(
        None, "sizes to predict, in non-embedding parameters: {example}", _targets, "SIZE", example=["1B", "10B"]
    )
    D: list[float] = key(
        None, "with S=: points of size and tokens; lists go pairwise, a single value with each of the other", _tokens,
        "TOKENS",
    )  # fmt: skip
    grid: bool = key(False, "whether each S= goes with each D=, instead of pairwise", shown="true")
    x: list[float] = key(
        None, "with axis=QUANTITY@TEXT: what models show there, to predict what they show here: {example}", _places,
        "LOSS", example=[2.9, 2.7],
    )  # fmt: skip
    joint: bool = key(
        False, "whether intervals hold for all S= (and D=) of a law at once in 95 %, not each by itself", shown="true"
    )
    register: str | None = key(
        None, "writes what is predicted into the store for good, before such a model is measured (see forecasts)",
        _forecast, "NAME", text=True,
    )  # fmt: skip
    form: list[str] = key(
        None,
        "equation of a surface: chinchilla (default), kaplan, data_constrained, a list, or all, which compares them",
        _forms,
        "chinchilla",
        values=("all", *FORM_NAMES),
    )
    objective: Objective = key(
        Objective.log_huber, "what a surface minimises: log_huber, huber or least_squares", shown="log_huber"
    )
    delta: float = key(DELTA, "where Huber's loss of a surface turns linear", positive("a small number"), "0.001")
    unique_tokens: float | None = key(
        None, "tokens that there are, beyond which a run repeats them (surface: with form=data_constrained)",
        positive("tokens"), "U",
    )  # fmt: skip
    inference_tokens: float | None = key(
        None, "tokens that the model is to serve: the least of training and serving that reaches the same loss",
        positive("tokens"), "T",
    )  # fmt: skip
    inference_within: bool = key(
        False, "whether flops= pays for training and serving together: the least loss of both", shown="true"
    )
    next: int | None = key(None, "names N runs to train next", whole(1, 1_000), "N")
    flops: list[float] = key(
        None, "training FLOPs to spend on the best model, {example}; with next= on all runs together", _budgets, "C",
        example=[1e18, 1e20],
    )  # fmt: skip
