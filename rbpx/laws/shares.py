"""The negative logarithm of a share of hits, in nats."""

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.arrays import Floats


def neg_ln(p: ArrayLike) -> Floats:
    """-ln p, nats: infinite at p = 0, 0 at p = 1, NaN at NaN.

    Raises:
        ValueError: if a p is below 0 or above 1.
    """
    share = np.asarray(p, dtype=np.float64)
    if np.any((share < 0) | (share > 1)):
        raise ValueError("shares of windows are from 0 to 1, or NaN without a window")
    with np.errstate(divide="ignore"):
        return np.asarray(0.0 - np.log(share))
