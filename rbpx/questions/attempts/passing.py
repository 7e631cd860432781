"""Computes pass@k of items given by counts or by probabilities, its sampling error and its slopes in k.

Shapes: I items, K numbers of attempts, B replicates over items.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.store.store import Record

GRID: Final = 50  # values of k of a least-squares fit, before duplicates are dropped (arXiv 2502.17578)
_HALF_DECADE: Final = math.sqrt(10)
_DRAWN_APART: Final = 10**9  # NumPy's limit for the hypergeometric
_ROUNDS: Final = 1e6  # samples above which differences of ln n! lose digits


@dataclass(frozen=True, eq=False)
class CountedItems:
    """Items with counts of correct and of all attempts."""

    names: tuple[str, ...]
    right_I: npt.NDArray[np.int64]
    tried_I: npt.NDArray[np.int64]

    @property
    def most(self) -> int:
        """Largest measured k: the fewest attempts at an item."""
        return int(self.tried_I.min())

    def passes(self, k_K: Sequence[int]) -> Floats:
        """Pass@k of each item, 1 - C(n - c, k) / C(n, k), [I, K], for k up to `most`."""
        n, right, k = self.tried_I[:, None], self.right_I[:, None], np.asarray(k_K)[None]
        wrong, left = n - right, gammaln(np.maximum(n - k, 0) + 1.0)
        ln_fails = gammaln(wrong + 1.0) - gammaln(np.maximum(wrong - k, 0) + 1.0) - gammaln(n + 1.0) + left
        # For large n: ln(1 - c / (n - i)) at the middle of i < k stands for its mean; c and k are interchangeable.
        few, many = np.minimum(right, k), np.maximum(right, k)
        with np.errstate(divide="ignore", invalid="ignore"):  # k above the number of wrong attempts, which passes
            ln_fails = np.where(n > _ROUNDS, few * np.log1p(-many / (n - (few - 1) / 2)), ln_fails)
        return np.where(k > wrong, 1.0, -np.expm1(np.where(right == 0, 0.0, ln_fails)))

    def stderr_of_samples(self, k_K: Sequence[int]) -> Floats:
        """Standard error of pass@k over new samples of these very items, [K]; NaN at k = n.

        Jackknife over the samples of each item, which leaves (n - 1, c - 1) or (n - 1, c).
        """
        n, c, k = (np.asarray(each, np.float64) for each in (self.tried_I[:, None], self.right_I[:, None], [k_K]))
        fails = 1 - self.passes(k_K)
        with np.errstate(divide="ignore", invalid="ignore"):
            # c w / n times the squared difference, which is fails n k / ((n - k) w), with w wrong attempts
            squares = np.where(fails > 0, c * n * (k * fails / (n - k)) ** 2 / (n - c), 0.0)
        variance_K = ((n - 1) / n * squares).sum(axis=0) / len(self.names) ** 2
        return np.where(np.asarray(k_K) < self.most, np.sqrt(variance_K), math.nan)

    def hidden(self, m: int, seed: int) -> "CountedItems":
        """The same items with m of their samples, drawn without replacement."""
        rng, wrong_I = np.random.default_rng(seed), self.tried_I - self.right_I
        if self.tried_I.max() < _DRAWN_APART:
            right_I = rng.hypergeometric(self.right_I, wrong_I, m)
        else:  # NumPy's limit; at a hundredth of the samples, draws with replacement are as good
            right_I = np.minimum(rng.binomial(m, self.right_I / self.tried_I), self.right_I)
        return CountedItems(self.names, right_I, np.full(len(right_I), m))


@dataclass(frozen=True, eq=False)
class KnownChances:
    """Items whose probability p that an attempt is right is known; `most` is the largest k of a fit."""

    names: tuple[str, ...]
    ln_p_I: Floats
    most: ClassVar[int] = 10_000

    def passes(self, k_K: Sequence[int]) -> Floats:
        """Pass@k of each item, 1 - (1 - p)^k, [I, K]."""
        with np.errstate(divide="ignore"):  # p = 1 in single precision
            ln_fails_I = np.log1p(-np.exp(self.ln_p_I))
        return np.asarray(-np.expm1(np.asarray(k_K) * ln_fails_I[:, None]))


Items = CountedItems | KnownChances


def grid_to(most: int) -> list[int]:
    """Up to 50 log-spaced numbers of attempts from 1."""
    return [int(k) for k in np.unique(np.geomspace(1, most, GRID).astype(np.int64))]


def slope_in_k(k_K: Sequence[int], passes_K: Floats) -> Floats:
    """Alpha of -ln pass@k = C k^-alpha by least squares in logarithms, for pass@k [K] or [B, K].

    NaN where pass@k is 0 or 1, and for a single k.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ln_y = np.log(neg_ln(passes_K))
        ln_y = np.where(np.isfinite(ln_y).all(axis=-1, keepdims=True), ln_y, math.nan)
        return np.asarray(line(np.log(np.asarray(k_K, np.float64)), ln_y)[..., 1])


def slopes_at(items: Items, k: int) -> Record:
    """Local exponents -d ln y / d ln k from k / sqrt(10) to k sqrt(10), or up to the samples; None if undefined.

    `slope_neg_ln` is of -ln pass@k; `slope_failures` of 1 - pass@k, which tends to that of the tail.
    """
    lo, hi = max(1, round(k / _HALF_DECADE)), round(k * _HALF_DECADE)
    hi = min(hi, items.most) if isinstance(items, CountedItems) else hi
    f_2 = items.passes([lo, hi]).mean(axis=0)
    if not lo < hi or not 0 < f_2[0] <= f_2[1] < 1:
        return {"slope_neg_ln": None, "slope_failures": None}
    falls = np.log([neg_ln(f_2), 1 - f_2]) @ [1, -1] / math.log(hi / lo)
    return dict(zip(("slope_neg_ln", "slope_failures"), falls.tolist(), strict=True))
