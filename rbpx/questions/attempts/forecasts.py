"""What pass@k of these items is to be at more attempts than were made, and how such forecasts did with samples hidden.

Shapes: I items.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import betaln, expit, logit

from rbpx.laws.intervals.estimate import Estimate, document_t, from_half_width
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.questions.attempts.mixing import Shape, condensed, density, nodes_for
from rbpx.questions.attempts.passing import Counted, grid_to, slope_in_k
from rbpx.questions.attempts.tails import Kernel, Tail, fit_tail
from rbpx.store.store import Record

LINE: Final = "least_squares"
FARTHER: Final = 100  # times the samples
WAYS: Final = (LINE, *(shape.value for shape in Shape))
_FEWEST_LEFT: Final = 10  # samples of an item that may be left
_HIDINGS: Final = 5
_STEP: Final = 1e-4  # of ln a and ln b, for derivatives


def forecast(way: str, items: Counted, k: int, tail: Tail | None = None, is_measured: bool = False) -> Estimate:
    """Foretell pass@k of these items; its interval allows for what their counts leave open and for the constants.

    Given a distribution of p, each item has a chance of its own given its counts: E (1-p)^k over that posterior is what
    it fails. Least squares draws the line of ln(-ln pass@k) on ln k further, without an interval.

    Args:
        way: one of `WAYS`.
        items: as far as they were tried.
        k: attempts.
        tail: of that shape, where it was fitted.
        is_measured: whether the interval is that of k attempts at each item, which scatter too, not of their mean.
    """
    if way == LINE:
        grid = grid_to(items.most)
        passes_K = items.passes(grid).mean(axis=0)
        alpha = float(slope_in_k(grid, passes_K))
        if not math.isfinite(alpha):
            return Estimate()
        x_K = np.log(np.asarray(grid, np.float64))
        level = float(line(x_K, np.log(neg_ln(passes_K)))[0])
        return Estimate(math.exp(-math.exp(level - alpha * (math.log(k) - x_K.mean()))))
    tail = tail or fit_tail(Shape(way), items)
    if tail.theta is None:
        return Estimate()
    failing = _Posterior(tail.shape, items)
    theta, n_items = tail.theta, len(items.names)
    q_I, square_I = failing.at(theta, k), failing.at(theta, 2 * k)
    passes = float(1 - q_I.mean())
    steps = np.eye(2) * _STEP
    slope_2 = np.array(
        [(failing.at(theta + d, k).mean() - failing.at(theta - d, k).mean()) / (2 * _STEP) for d in steps]
    )
    own = float((q_I - q_I**2).sum() if is_measured else (square_I - q_I**2).sum()) / n_items**2
    sd = math.sqrt(max(own, 0.0) + float(slope_2 @ tail.covariance_22 @ slope_2))
    if not 0 < passes < 1:
        return Estimate(passes)
    half = document_t(n_items) * sd / (passes * (1 - passes))
    return from_half_width(float(logit(passes)), half).through(lambda each: float(expit(each)))


class _Posterior:
    """E (1 - p)^k of each item given its counts."""

    def __init__(self, shape: Shape, items: Counted) -> None:
        pairs, self.of_I = np.unique(np.stack([items.right_I, items.tried_I]), axis=1, return_inverse=True)
        self.shape, (self.c_U, self.n_U) = shape, pairs.astype(np.float64)
        nodes = nodes_for(int(self.n_U.max()))
        self.kernel = None if shape is Shape.beta else Kernel.of(*condensed(self.c_U, self.n_U), nodes)

    def at(self, theta: Floats, k: int) -> Floats:
        """Of each item."""
        if self.kernel is None:
            a, b = np.exp(theta)
            right, wrong = a + self.c_U, b + self.n_U - self.c_U
            return np.asarray(np.exp(betaln(right, wrong + k) - betaln(right, wrong)))[self.of_I]
        nodes = self.kernel.nodes
        ln_f_N = density(self.shape, theta, nodes.ln_p_N, nodes.ln_q_N).ln_f_N
        _, fails_U1 = self.kernel.summed(ln_f_N, np.exp(k * nodes.ln_q_N)[:, None])
        return np.asarray(fails_U1[self.of_I, 0])


def hide(models: Sequence[Counted], seed: int) -> list[Record]:
    """Foretell pass@n of each model from a hundredth of its n samples, drawn five times; how each way did.

    `n_samples` are the fewest that were left, `error` is the mean over models and draws of |predicted / measured - 1|
    of -ln pass@k, `bias` that of predicted / measured - 1, and `inside` the share of the intervals that hold what was
    measured, None of least squares.

    Models on the same items are one cluster: what makes items hard makes them hard for all, so they are fewer than they
    look, and nothing here says how far errors on other items would differ.
    """
    left = [(items, items.most // FARTHER) for items in models if items.most // FARTHER >= _FEWEST_LEFT]
    found = list[Record]()
    for way in WAYS:
        ratios, inside = list[float](), list[bool]()
        for items, m in left:
            k = m * FARTHER
            measured = float(items.passes([k]).mean())
            for at in range(_HIDINGS):
                foretold = forecast(way, items.hidden(m, seed + at), k, is_measured=True)
                if foretold.value is None or not 0 < foretold.value < 1 or not 0 < measured < 1:
                    continue
                ratios.append(math.log(foretold.value) / math.log(measured) - 1)
                if foretold.ends is not None:
                    inside.append(foretold.ends[0] <= measured <= foretold.ends[1])
        if ratios:
            row: Record = {"way": way, "n_models": len(left), "n_samples": min(m for _, m in left)}
            row |= {"error": float(np.abs(ratios).mean()), "bias": float(np.mean(ratios))}
            found.append(row | {"inside": float(np.mean(inside)) if inside else None})
    return found
