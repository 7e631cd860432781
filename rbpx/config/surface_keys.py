"""What a surface in size and tokens is asked for: values of keys in, checked lists out."""

from collections.abc import Sequence
from typing import Any, Final

from rbpx.config.known_names import checked_names
from rbpx.errors import RbpxError
from rbpx.laws.surface.names import FORM_NAMES

__all__ = ["checked_forms", "pairs", "positive_numbers"]

_LARGEST: Final = 1e60  # of tokens, or of FLOPs


def checked_forms(value: Any) -> list[str]:
    """The forms asked for, in order.

    Raises:
        RbpxError: one of them is unknown.
    """
    names = checked_names("form", value, FORM_NAMES)
    return list(FORM_NAMES) if "all" in names else list(dict.fromkeys(names))


def positive_numbers(key: str, value: Any, what: str) -> list[float]:
    """The numbers of a key that takes one or several, in order; none where it is not given.

    Args:
        key: its name.
        value: what was given.
        what: the rest of the advice, as in "training FLOPs, as in budgets='[1e18,1e20]'".

    Raises:
        RbpxError: one of them is not positive, or larger than anything that is trained.
    """
    numbers = []
    for each in [] if value is None else value if isinstance(value, list) else [value]:
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 < each <= _LARGEST:
            raise RbpxError(f"{key}={each} is not a positive number up to {_LARGEST:g}; give {what}")
        numbers.append(float(each))
    return numbers


def pairs(S: Sequence[float], D: Sequence[float]) -> list[tuple[float, float]]:
    """Points (S, D): two lists of one length pairwise, a single value with each of the other.

    Raises:
        RbpxError: the lists have different lengths, or one is empty.
    """
    if not S or not D:
        given, missing = ("D", "S") if D else ("S", "D")
        raise RbpxError(f"{given}= needs {missing}= beside it: a point has a size and tokens, as in S=1e9 D=2e10")
    if len(S) != len(D) and 1 not in (len(S), len(D)):
        raise RbpxError(
            f"S= has {len(S)} values and D= has {len(D)}; give as many of both, which go pairwise, or one of either"
        )
    n = max(len(S), len(D))
    return list(zip(list(S) * (n // len(S)), list(D) * (n // len(D)), strict=True))
