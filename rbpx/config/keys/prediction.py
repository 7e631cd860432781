"""Keys of surfaces in size and tokens, of what is predicted from laws, and of what to train next."""

import re
from collections.abc import Sequence
from typing import Any, Final

from rbpx.config.keys.key import Asked, Key, as_list, as_typed, name_of, one_of, positive, positive_numbers, whole
from rbpx.errors import RbpxError
from rbpx.laws.surface.names import DELTA, FORM_NAMES, Objective

__all__ = ["PredictionKeys", "points"]

_LARGEST_S: Final = 1e30


def _targets(key: str, value: Any) -> list[float]:
    targets = []
    for S in [] if value is None else as_list(value):
        if isinstance(S, bool) or not isinstance(S, int | float):
            raise RbpxError(f"S={S} is not a number; give non-embedding parameters, as in S='[1e9,1e10]'")
        if not 0 < S <= _LARGEST_S:
            raise RbpxError(
                f"S={S} is not a valid size; give non-embedding parameters up to 1e30, as in S='[1e9,1e10]'"
            )
        targets.append(float(S))
    return targets


def _tokens(key: str, value: Any) -> list[float]:
    return positive_numbers(key, value, "training tokens, as in D='[2e10,2e11]'")


def _budgets(key: str, value: Any) -> list[float]:
    return positive_numbers(key, value, "training FLOPs, as in budgets='[1e18,1e20]'")


def _forecast(key: str, value: Any) -> str | None:
    name: str | None = name_of(key, value)
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", name):
        raise RbpxError(
            f"register={name!r} is not a name of a forecast; give up to 100 letters, digits and . _ -, as in "
            "register=june"
        )
    return name


def points(S: Sequence[float], D: Sequence[float]) -> list[tuple[float, float]]:
    """Points (S, D): two lists of one length pairwise, a single value with each of the other; none where D is empty.

    Raises:
        RbpxError: the lists have different lengths, or there is no S.
    """
    if not D:
        return []
    if not S:
        raise RbpxError("D= needs S= beside it: a point has a size and tokens, as in S=1e9 D=2e10")
    if len(S) != len(D) and 1 not in (len(S), len(D)):
        raise RbpxError(
            f"S= has {len(S)} values and D= has {len(D)}; give as many of both, which go pairwise, or one of either"
        )
    n = max(len(S), len(D))
    return list(zip(list(S) * (n // len(S)), list(D) * (n // len(D)), strict=True))


class PredictionKeys(Asked):
    """Where to predict, by what form, and what the next runs may cost."""

    S: Key[list[float]] = Key(Any, None, _targets, "SIZE").says(
        "sizes to predict, in non-embedding parameters: S='[1e9,1e10]'"
    )
    D: Key[list[float]] = Key(Any, None, _tokens, "TOKENS").says(
        "with S=: points of size and tokens; lists go pairwise, a single value with each of the other"
    )
    register: Key[str | None] = Key(Any, None, _forecast, "NAME").says(
        "writes what is predicted into the store for good, before such a model is measured (see forecasts)"
    )
    form: Key[list[str]] = Key(Any, "chinchilla", one_of(FORM_NAMES), "chinchilla", values=("all", *FORM_NAMES)).says(
        "equation of a surface: chinchilla, kaplan, data_constrained, a list, or all, which compares them"
    )
    objective: Key[Objective] = Key(Objective, Objective.log_huber, as_typed, "log_huber").says(
        "or huber, least_squares: what a surface minimises"
    )
    delta: Key[float] = Key(float, DELTA, positive("where Huber's loss turns linear, as in delta=0.001"), "0.001").says(
        "where Huber's loss of a surface turns linear"
    )
    budgets: Key[list[float]] = Key(Any, None, _budgets, "C").says(
        "training FLOPs whose best S and D are asked for: budgets='[1e18,1e20]'"
    )
    unique_tokens: Key[float | None] = Key(
        float | None, None, positive("the tokens that there are, as in unique_tokens=1e9"), "U"
    ).says("tokens that there are, beyond which the best of a budget repeats them (form=data_constrained)")
    next: Key[int | None] = Key(int | None, None, whole(1, 1_000), "N").says("names N runs to train next")
    flops: Key[float | None] = Key(float | None, None, positive("training FLOPs, as in flops=1e20"), "C").says(
        "training FLOPs that these runs may cost in all"
    )
