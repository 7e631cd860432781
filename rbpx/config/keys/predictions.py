"""Keys of points to predict, surfaces, budgets and the choice of the next runs."""

import re
from typing import Any, Final

from rbpx.config.keys.key import (
    LARGEST_NUMBER,
    AnyOf,
    Keys,
    Reader,
    key,
    name_of,
    positive,
    positive_numbers,
    whole,
)
from rbpx.config.keys.laws import Averaged, Fitting, Frontier, Laws, SizedBy
from rbpx.config.options import Outliers
from rbpx.errors import RbpxError
from rbpx.laws.names import DELTA, FORM_NAMES, Objective, OnText, SizeBy
from rbpx.spelling import typed

_LARGEST_S: Final = 1e30


def _several(what: str, example: Any, most: float = LARGEST_NUMBER) -> Reader:
    return lambda key, value: positive_numbers(key, value, f"{what}, as in {typed(keys={key: example})}", most)


def _forecast(key: str, value: Any) -> str | None:
    name: str | None = name_of(key, value)
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", name):
        raise RbpxError(f"register={name!r} is not a name of a forecast; give up to 100 letters, digits and . _ -")
    return name


class Predicted(Keys):
    """Where to predict."""

    S: list[float] = key(
        None,
        "sizes to predict, in non-embedding parameters: {example}",
        _several("non-embedding parameters", ["1B", 1e10], _LARGEST_S),
        "SIZE",
        example=["1B", "10B"],
    )
    D: list[float] = key(
        None, "with S=: points of size and tokens; lists go pairwise, a single value with each of the other",
        _several("training tokens", [2e10, 2e11]),
        "TOKENS",
    )  # fmt: skip
    grid = False

    def check(self) -> None:
        """Refuses D without S, and lists that do not go pairwise."""
        super().check()
        self.points_to_predict()

    def points_to_predict(self) -> list[tuple[float, float]]:
        """The points (S, D) to predict; empty without D."""
        S, D = self.S, self.D
        if D and not S:
            raise RbpxError("D= needs S= beside it: a point has a size and tokens, as in S=1e9 D=2e10")
        if self.grid:
            return [(each, tokens) for each in S for tokens in D]
        if D and len(S) != len(D) and 1 not in (len(S), len(D)):
            raise RbpxError(
                f"S= has {len(S)} values and D= has {len(D)}; give as many of both, which go pairwise, one of either, "
                f"or to predict each with each {typed(grid=True)}"
            )
        n = max(len(S), len(D)) if D else 0
        return list(zip(S * (n // len(S)), D * (n // len(D)), strict=True)) if n else []


class Predicting(Predicted, Fitting):
    """How to predict."""

    grid: bool = key(False, "whether each S= goes with each D=, instead of pairwise", shown="true")
    x: list[float] = key(
        None, "with axis=QUANTITY@TEXT: what models show there, to predict what they show here: {example}",
        _several("values of the quantity that axis= names", [2.9, 2.7]),
        "LOSS", example=[2.9, 2.7],
    )  # fmt: skip
    joint: bool = key(
        False, "whether intervals hold for all S= (and D=) of a law at once in 95 %, not each by itself", shown="true"
    )
    register: str | None = key(
        None, "writes what is predicted into the store for good, before such a model is measured (see forecasts)",
        _forecast, "NAME", text=True,
    )  # fmt: skip

    def check(self) -> None:
        """Refuses x= for laws in size, and what a registered forecast does not have."""
        super().check()
        if self.x and not isinstance(self.axis, OnText):
            raise RbpxError(
                "x= is what models show on another text; say what and where, as in axis=cross_entropy@stdlib"
            )
        if self.register is not None and self.size_by is not SizeBy.total:
            raise RbpxError(
                f"register={self.register} predicts models by their S as stored; drop it, or size_by={self.size_by}"
            )
        if self.register is not None and self.joint:
            raise RbpxError(
                f"register={self.register} keeps intervals that forecasts scores one by one, and joint=true widens "
                "them for all at once; drop it"
            )


class Forms(Keys):
    """Equations of surfaces."""

    form: list[str] = key(
        None,
        "equation of a surface: chinchilla (default), kaplan, data_constrained, a list, or all, which compares them",
        AnyOf(FORM_NAMES, "chinchilla", str),
        "chinchilla",
    )


class Minimised(Keys):
    """What a surface minimises."""

    objective: Objective = key(
        Objective.log_huber, "what a surface minimises: log_huber, huber or least_squares", shown="log_huber"
    )
    delta: float = key(DELTA, "where Huber's loss of a surface turns linear", positive("a small number"), "0.001")


class Surfaces(Minimised, Averaged, Laws, SizedBy, Frontier):
    """Surfaces in size and tokens."""

    outliers: Outliers = key(
        Outliers.drop, "drop or keep: whether laws in size and tokens leave out outliers, which are named", shown="drop"
    )


class Repeated(Keys):
    """Tokens that are repeated."""

    unique_tokens: float | None = key(
        None, "tokens that there are, beyond which a run repeats them (surface: with form=data_constrained)",
        positive("tokens"), "U",
    )  # fmt: skip


class Budgets(Keys):
    """What training may cost."""

    flops: list[float] = key(
        None, "training FLOPs to spend on the best model, {example}; with next= on all runs together",
        _several("training FLOPs", [1e18, 1e20]), "C",
        example=[1e18, 1e20],
    )  # fmt: skip


class Deciding(Budgets):
    """What the next runs are for."""

    inference_tokens: float | None = key(
        None, "tokens that the model is to serve: the least of training and serving that reaches the same loss",
        positive("tokens"), "T",
    )  # fmt: skip
    inference_within: bool = key(
        False, "whether flops= pays for training and serving together: the least loss of both", shown="true"
    )
    next: int | None = key(None, "names N runs to train next", whole(1, 1_000), "N")

    def check(self) -> None:
        """Refuses several budgets for next runs, and one of serving without tokens to serve."""
        super().check()
        if self.next is not None and len(self.flops) > 1:
            raise RbpxError(f"next={self.next} spends one budget, and flops= names {len(self.flops)}; give one")
        if self.inference_within and not self.inference_tokens:
            raise RbpxError(
                "inference_within=true says what flops= pays for; add the tokens to serve: inference_tokens=1e13"
            )
