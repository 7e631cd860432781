"""CPU kernel: one pass over a tile of logits updates the counts, sums and target logits of its rows.

numba caches the loops next to this file (or in NUMBA_CACHE_DIR).

Shapes: n positions, v entries of the vocabulary in a tile.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

NEAR_KEPT = 256  # most logits kept per row that lie within the bounds of the target's; 1 KiB a row

f32, i32 = np.float32, np.int32


_ABSOLUTE = i32(0x7FFFFFFF)  # all bits of a float32 but its sign
INFINITE = i32(0x7F800000)  # bits of +inf; those of every NaN without its sign are larger
_SPREAD = f32(60.0)  # logits may exceed the shift of their exponentials by so much; e^60 does not overflow


@njit(inline="always")
def exponential(x: Any) -> Any:
    """exp(x) within a unit in the last place: 2^k by its exponent bits, the rest by a polynomial.

    Coefficients: S. L. Moshier, Cephes Mathematical Library, expf. It is clipped to x from -87 to 88.
    """
    x = min(max(x, f32(-87.0)), f32(88.0))
    k = np.rint(x * f32(1.44269504))
    r = x - k * f32(0.693359375) + k * f32(2.12194440e-4)
    p = f32(1.9875691500e-4) * r + f32(1.3981999507e-3)
    p = p * r + f32(8.3334519073e-3)
    p = p * r + f32(4.1665795894e-2)
    p = p * r + f32(1.6666665459e-1)
    p = p * r + f32(5.0000001201e-1)
    p = p * r + f32(1.0)
    p = p * r + f32(1.0)
    return i32(f32(p).view(i32) + (i32(k) << i32(23))).view(f32)


# Compilers vectorise the maximum of integers, but not of floats, because of NaN.
# They vectorise one reduction of a loop at a time.
@njit(nogil=True, cache=True)
def largest(z_v: Any) -> Any:
    """The largest value, and the bits of the largest absolute value, where NaN and infinities exceed all numbers."""
    top, absolute = -_ABSOLUTE, i32(0)
    for v in range(z_v.shape[0]):
        bits = f32(z_v[v]).view(i32)
        top = max(top, i32(bits ^ ((bits >> i32(31)) & _ABSOLUTE)))  # ordered as the floats are
        absolute = max(absolute, i32(bits & _ABSOLUTE))
    return i32(top ^ ((top >> i32(31)) & _ABSOLUTE)).view(f32), absolute


# Inlined, else a process that compiles would add in another order than later ones.
@njit(forceinline=True)
def _counts(z_v: Any, low: Any, high: Any) -> Any:
    """Entries at least `low`, entries above `high`, and the bits of the largest absolute value."""
    least, above, absolute = i32(0), i32(0), i32(0)
    for v in range(z_v.shape[0]):
        z = z_v[v]
        least += i32(z >= low)
        above += i32(z > high)
        absolute = max(absolute, i32(f32(z).view(i32) & _ABSOLUTE))
    return least, above, absolute


@njit(forceinline=True, fastmath={"reassoc", "nsz", "contract"})
def _sum_of_exponentials(z_v: Any, top: Any) -> Any:
    total = f32(0.0)
    for v in range(z_v.shape[0]):
        total += exponential(z_v[v] - top)
    return total


@njit(nogil=True, cache=True)
def add_tile(
    tile_nv: Any, start: int, target_n: Any, low_n: Any, high_n: Any,
    above_n: Any, near_nK: Any, n_near_n: Any, own_n: Any, top_n: Any, sum_n: Any, finite_n: Any,
) -> None:  # fmt: skip
    """Add a tile to the counts of its rows, in place.

    Args:
        tile_nv: float32, logits of the entries from `start` on.
        start: the vocabulary entry of the tile's first column.
        target_n: the targets' entries.
        low_n: lower bound of the target's logit.
        high_n: upper bound.
        above_n: entries greater than `high_n`.
        near_nK: the first K logits within the bounds.
        n_near_n: number of these logits.
        own_n: the target's logit, once its tile has been added.
        top_n: a logit that none so far exceeds by more than `_SPREAD`; -inf before the first tile.
        sum_n: float64, sum of exp(z - top).
        finite_n: false once a NaN or infinity was met; such a row is not counted any further.
    """
    width = tile_nv.shape[1]
    for i in range(tile_nv.shape[0]):
        z_v = tile_nv[i]
        least, above, absolute = _counts(z_v, low_n[i], high_n[i])
        if absolute >= INFINITE:
            finite_n[i] = False
        if not finite_n[i]:
            continue
        if i32(absolute).view(f32) > top_n[i] + _SPREAD:
            top, _ = largest(z_v)
            if top > top_n[i]:
                sum_n[i] *= np.exp(np.float64(top_n[i]) - np.float64(top))
                top_n[i] = top
        above_n[i] += above
        sum_n[i] += _sum_of_exponentials(z_v, top_n[i])
        if least > above:
            for v in range(width):
                if low_n[i] <= z_v[v] <= high_n[i]:
                    if n_near_n[i] < near_nK.shape[1]:
                        near_nK[i, n_near_n[i]] = z_v[v]
                    n_near_n[i] += 1
        if start <= target_n[i] < start + width:
            own_n[i] = z_v[target_n[i] - start]


class TileCounter:
    """Counts of n rows over the tiles added so far."""

    def __init__(
        self, target_n: npt.NDArray[np.int64], low_n: npt.NDArray[np.float32], high_n: npt.NDArray[np.float32]
    ) -> None:
        """Start without a tile; `low_n` and `high_n` enclose each target's logit."""
        n = len(target_n)
        self._targets = (target_n, low_n, high_n)
        self._above_n, self._n_near_n = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._near_nK = np.full((n, NEAR_KEPT), -np.inf, np.float32)
        self._own_n, self._top_n = np.full(n, np.nan, np.float32), np.full(n, -np.inf, np.float32)
        self._sum_n = np.zeros(n, np.float64)
        self.finite_n = np.ones(n, bool)

    def add(self, tile_nv: npt.NDArray[np.float32], start: int) -> None:
        """Count a tile whose first column is the entry `start` of the vocabulary."""
        add_tile(
            tile_nv, start, *self._targets, self._above_n, self._near_nK, self._n_near_n, self._own_n, self._top_n,
            self._sum_n, self.finite_n,
        )  # fmt: skip

    @property
    def exact_n(self) -> npt.NDArray[np.bool_]:
        """Whether the counts are exact: the target's logit is within its bounds, and all logits there were kept."""
        _, low_n, high_n = self._targets
        return (low_n <= self._own_n) & (self._own_n <= high_n) & (self._n_near_n <= NEAR_KEPT)

    @property
    def greater_n(self) -> npt.NDArray[np.int32]:
        """Entries whose logit exceeds the target's; valid where `exact_n`."""
        return np.asarray(self._above_n + (self._near_nK > self._own_n[:, None]).sum(1), np.int32)

    @property
    def ties_n(self) -> npt.NDArray[np.int32]:
        """Other entries whose logit equals the target's; valid where `exact_n`."""
        return np.asarray((self._near_nK == self._own_n[:, None]).sum(1) - 1, np.int32)

    @property
    def logprob_n(self) -> npt.NDArray[np.float32]:
        """Ln of the probability of the target, in nats."""
        return (self._own_n.astype(np.float64) - self._top_n - np.log(self._sum_n)).astype(np.float32)
