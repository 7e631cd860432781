"""Tests the goodness of fit of a distribution of p.

Shapes: I items, D replicates, T thresholds, M cells between some of these.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import betaincc

from rbpx.laws.numeric import Floats
from rbpx.questions.attempts.mixing import Nodes, condensed, density
from rbpx.questions.attempts.passing import Counted, Items, Known
from rbpx.questions.attempts.tails import Likelihood, Tail

_FEWEST: Final = 20  # items of a test
_CELL: Final = 8  # items expected in a cell
_CELLS: Final = (4, 12)  # the fewest and the most
_THRESHOLDS: Final = 60
_DRAWN: Final = 199


def goodness_p(tail: Tail, items: Items, seed: int) -> float | None:
    """Returns the p value of chi squared over equally probable cells, by a parametric bootstrap.

    The constants are refitted to each replicate, to first order. None below 20 items, where items were not tried
    equally often, or where p = 0 or 1 fills nearly all cells.
    """
    n_items, likelihood, nodes = len(items.names), tail.likelihood, tail.likelihood.nodes
    if tail.theta is None or n_items < _FEWEST:
        return None
    if isinstance(items, Counted):
        n = int(items.tried_I[0])
        if not np.all(items.tried_I == n):
            return None
        ends_T: Floats = np.unique(np.geomspace(1, n, _THRESHOLDS).astype(np.int64)).astype(np.float64) - 1
        right_T, of_T = condensed(ends_T + 1, np.full(len(ends_T), n + 1.0))
        below_TN = np.asarray(betaincc(right_T[:, None], (of_T - right_T)[:, None], np.exp(nodes.ln_p_N)[None]))
    else:
        ends_T = nodes.ln_p_N[1:-1]
        steps_TN = np.tri(len(ends_T), len(nodes.ln_p_N), 1)
        below_TN = (steps_TN + np.tri(len(ends_T), len(nodes.ln_p_N))) / 2  # half of the end, as in the trapezoid rule
    ln_f_N, score_N2, _ = density(likelihood.shape, tail.theta, nodes.ln_p_N, nodes.ln_q_N)
    mass_N = np.exp(ln_f_N + nodes.ln_w_N)
    at = _cells(np.asarray(below_TN @ mass_N, np.float64), min(_CELLS[1], max(_CELLS[0], n_items // _CELL)))
    if len(at) < 3:
        return None
    cells_MN = np.diff(below_TN[at], axis=0, prepend=0.0, append=1.0) * mass_N
    pi_M = cells_MN.sum(axis=1)
    drawn = _drawn(items, nodes, mass_N, np.random.default_rng(seed))
    scores = Likelihood(likelihood.shape, drawn)
    score_D2 = scores.at(tail.theta)[1][scores.of_I].reshape(_DRAWN, n_items, 2).sum(axis=1)
    moved_D2 = -np.linalg.solve(tail.hessian_22, score_D2.T).T
    expected_DM = n_items * (pi_M + moved_D2 @ (cells_MN @ score_N2).T)
    chi_D = ((_counts(drawn, ends_T[at], n_items) - expected_DM) ** 2 / (n_items * pi_M)).sum(axis=1)
    chi = float(((_counts(items, ends_T[at], n_items)[0] - n_items * pi_M) ** 2 / (n_items * pi_M)).sum())
    return float((1 + np.count_nonzero(chi_D >= chi)) / (1 + _DRAWN))


def _cells(cdf_T: Floats, n_cells: int) -> list[int]:
    """Thresholds between cells of about equal probability."""
    chosen, last = list[int](), 0.0
    for at, share in enumerate(cdf_T.tolist()):
        if share - last >= 1 / n_cells and 1 - share >= 0.5 / n_cells:
            chosen.append(at)
            last = share
    return chosen


def _drawn(items: Items, nodes: Nodes, mass_N: Floats, rng: np.random.Generator) -> Items:
    """Items of all replicates, one replicate after another."""
    n = _DRAWN * len(items.names)
    x_N = nodes.ln_p_N - nodes.ln_q_N
    x = np.interp(rng.random(n), np.cumsum(mass_N) - mass_N / 2, x_N)
    names = items.names * _DRAWN
    if isinstance(items, Known):
        return Known(names, -np.logaddexp(0, -x))
    tried = np.tile(items.tried_I, _DRAWN)
    return Counted(names, rng.binomial(tried, 1 / (1 + np.exp(-x))), tried)


def _counts(items: Items, ends_M: Floats, n_items: int) -> npt.NDArray[np.int64]:
    """Number of items in each cell of each replicate, [D, M]."""
    values = items.right_I if isinstance(items, Counted) else items.ln_p_I
    cell_DI = np.searchsorted(ends_M, values, side="left").reshape(-1, n_items)
    return np.stack([np.count_nonzero(cell_DI == cell, axis=1) for cell in range(len(ends_M) + 1)], axis=1)
