"""The maximum of many functions of one number at once, by golden sections."""

from collections.abc import Callable
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats

_RATIO: Final = (5**0.5 - 1) / 2
_STEPS: Final = 60


def golden(of: Callable[[Floats], Floats], lo_B: Floats, hi_B: Floats) -> Floats:
    """Where each function is greatest between two ends, [B]; each has one maximum there, or rises to an end.

    Args:
        of: the values of all functions, each at an argument of its own, [B] in and out.
        lo_B: one end.
        hi_B: the other.
    """
    lo_B, hi_B = lo_B.copy(), hi_B.copy()
    left_B, right_B = hi_B - _RATIO * (hi_B - lo_B), lo_B + _RATIO * (hi_B - lo_B)
    of_left_B, of_right_B = of(left_B), of(right_B)
    for _ in range(_STEPS):
        is_left_B = of_left_B >= of_right_B
        hi_B, lo_B = np.where(is_left_B, right_B, hi_B), np.where(is_left_B, lo_B, left_B)
        left_B, right_B = (
            np.where(is_left_B, hi_B - _RATIO * (hi_B - lo_B), right_B),
            np.where(is_left_B, left_B, lo_B + _RATIO * (hi_B - lo_B)),
        )
        of_new_B = of(np.where(is_left_B, left_B, right_B))
        of_left_B, of_right_B = np.where(is_left_B, of_new_B, of_right_B), np.where(is_left_B, of_left_B, of_new_B)
    return (lo_B + hi_B) / 2
