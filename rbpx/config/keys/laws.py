"""Keys of laws along one axis."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from rbpx.config.keys.key import (
    LARGEST_COUNT,
    AnyOf,
    Choice,
    Keys,
    as_list,
    key,
    whole,
)
from rbpx.config.keys.runs import Seeded
from rbpx.config.options import Outliers, did_you_mean
from rbpx.errors import RbpxError
from rbpx.laws.names import IMPORTED, LAWS, Axis, Method, OnText, SizeBy
from rbpx.laws.priors import Prior, Priors
from rbpx.spelling import typed
from rbpx.ties import Ties

DEFAULT_K: Final = (1, 10, 100, 500, 1000, 2500, 10000)
USUAL_K: Final = (1, 10, 100)  # if neither laws nor k are named
USUAL: Final = ("rbp", "cross_entropy", *IMPORTED)
_MOST_REPLICATES: Final = 100_000  # their weights take 0.8 GB for 1,000 documents
_LONGEST_WINDOW: Final = 1_000_000  # tokens in a row


@dataclass(frozen=True)
class Numbers:
    """The ranks k, or the window lengths n, that were asked for; with `is_log` a log-spaced grid of them."""

    asked: tuple[int, ...] | None = None
    is_log: bool = False

    @property
    def by_number(self) -> bool:
        """Whether the user gave numbers."""
        return self.asked is not None

    def listed(self, default: Sequence[int] = ()) -> list[int]:
        """The numbers asked for, or the default, ascending."""
        return sorted(set(default if self.asked is None else self.asked))

    def beyond(self, vocab_size: int) -> list[int]:
        """The k asked for that are at least `vocab_size`, where every token is a hit."""
        return [k for k in self.listed() if k >= vocab_size]

    def grid(self, vocab_size: int, default: Sequence[int] | Literal["log"]) -> list[int]:
        """The k asked for that are below V, ascending; `log` spaces eight per decade from 1 to V."""
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


class K(Keys):
    """The ranks."""

    k: Numbers = key(
        None, "one rank, a list {example}, or log; default 1, 10, 100, with laws= to 10000, below V", _ranks, "K",
        example=[1, 10, 100],
    )  # fmt: skip


class N(Keys):
    """Lengths of sequences."""

    n: Numbers = key(None, "lengths of windows and sequences, in tokens: {example}", _lengths, "N", example=[1, 2, 5])


class TieRule(Keys):
    """The tie rule."""

    ties: Ties | None = key(
        None, "pessimistic (default), optimistic (default for protocol=official) or mid", shown="RULE"
    )


class Resampled(Seeded):
    """Intervals over documents."""

    resamples: int = key(
        1000, "bootstrap replicates of the documents, for intervals", whole(1, _MOST_REPLICATES), "1000"
    )
    k = Numbers()
    laws = Choice(USUAL, False)


class Counted(K, TieRule, Resampled):
    """How hits are counted."""


class Laws(Counted):
    """Which laws are fitted."""

    laws: Choice = key(
        None,
        "all, one law, or a list; default -ln RBP_k and cross-entropy",
        AnyOf((*LAWS, *IMPORTED), Choice(USUAL, False)),
        "all",
    )

    frontier = False

    @property
    def is_usual(self) -> bool:
        """Whether neither laws nor k were chosen."""
        return (self.laws, self.k) == (Choice(USUAL, False), Numbers())


class Methods(Keys):
    """How laws are fitted."""

    method: list[Method] = key(
        None,
        "how laws are fitted: ols (default), weighted, offset, robust, a list or all",
        AnyOf(tuple(Method), "ols", Method),
        "ols",
    )


class Irreducible(Laws):
    """The irreducible loss of one law."""

    E: Prior | None = key(
        None, "irreducible loss of one law (cross_entropy if laws= names none), or its prior, {example}", _pin, "1.7",
        example="1.7 +- .05",
    )  # fmt: skip
    pin = cast("dict[str, Prior]", {})

    def check(self) -> None:
        """Constants are of one law, cross-entropy where none is named."""
        super().check()
        self.pins: Priors = dict(self.pin) if self.E is None else {"E": self.E, **self.pin}
        if self.E is not None and "E" in self.pin:
            raise RbpxError(f"E={self.E} and pin.E={self.pin['E']} both give E; drop one")
        names = self.laws.names if self.laws.by_name else ()
        one_k = names != ("rbp",) or len(self.k.listed()) == 1
        if self.pins and (len(names) > 1 or not one_k):
            given = ", ".join(f"{name}={each}" for name, each in self.pins.items())
            several = f"laws={list(names)}" if len(names) > 1 else "k="
            how = typed(laws="rbp", k=1)
            raise RbpxError(f"{given} belongs to one law, and {several} asks for several; give {how}")
        if self.pins and not self.laws.by_name:
            self.laws, self.typed["laws"] = Choice(("cross_entropy",), True), ["cross_entropy"]


class Pinned(Irreducible):
    """Constants of one law that are fixed or have a prior."""

    pin: dict[str, Prior] = key(
        None, "any constants of the form, fixed or with a prior as E: {example}", _pins, "",
        example={"E": 1.7, "alpha": "0.34 +- 0.02"},
    )  # fmt: skip


class Along(Keys):
    """The axis of laws."""

    axis: Axis | OnText = key(
        Axis.S.value,
        "what laws are in: size; D (tokens) or step, a law a size; C (FLOPs), best a budget; of predict QUANTITY@TEXT",
        _axis,
        "S",
    )

    def check(self) -> None:
        """Refuses keys that predictions from another loss do not have."""
        super().check()
        if isinstance(self.axis, OnText):
            sizes_only: dict[str, Any] = dict.fromkeys(("S", "D", "register", "E", "pin"))
            sizes_only |= {"method": "ols", "joint": False, "frontier": False, "outliers": Outliers.drop}
            for name, default in sizes_only.items():
                if self.typed.get(name) not in (None, default):
                    raise RbpxError(
                        f"{name}= is of laws in size or tokens, and axis={self.axis.value} is of neither; drop it"
                    )


class Frontier(Keys):
    """The best runs of sweeps."""

    frontier: bool = key(
        False, "takes the best of runs of one size and tokens (sweeps, seeds), a quadratic's minimum", shown="true"
    )


class SizedBy(Keys):
    """What S counts."""

    size_by: SizeBy = key(
        SizeBy.total.value, "parameters that are S: active of a token, with_embeddings all", _size, "total"
    )


class Averaged(Keys):
    """How many of the last checkpoints stand for a training."""

    last: int | None = key(
        None, "the mean of its last N checkpoints stands for each training (downstream: 5)", whole(1), "N"
    )


class Fitting(Pinned, Methods, Along, SizedBy, Frontier):
    """Laws of one variable, as `fit` fits them."""
