"""Times of tokens from hits alone, at each k: who is learned by when, and the tail of times beside the law of RBP_k.

Shapes: M tokens, T points, C = T + 1 cells, D documents, B resamples.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe
from rbpx.laws.learning.times import first_hit, fit_tails, lasting, local_slope, turnbull
from rbpx.laws.numeric import Floats, line
from rbpx.laws.trajectory import History, histories, settled
from rbpx.questions.learning.losses import Over
from rbpx.status import Status

_FROM: Final = 1 / 4  # of the points are before the tail
_FEWEST: Final = 4  # points of a tail


@dataclass(frozen=True)
class At:
    """What is learned by one point.

    Attributes:
        x: the place of the point.
        learned: share of tokens that are hits from here on to the last point; by Turnbull's estimator the same.
        between: share by Turnbull's estimator where a token that changes more than once is only known to be learned
            between its first hit and its first lasting one.
        rbp: RBP_k here.
        passing: share of hits that are lost again later, RBP_k less `learned`.
        settled: share of tokens that stay a hit, or stay a miss, from here on.
    """

    x: float
    learned: Estimate
    between: float
    rbp: float
    passing: float
    settled: float


@dataclass(frozen=True)
class Tail:
    """The tail of the times at one k, beside the law of RBP_k, both from the same point to the last but one.

    At the last point every hit is a lasting one, as nothing comes after it, so it is left out and foretold.

    Attributes:
        x: the point from which on.
        n_points: of the tail.
        c: exponent of the tail if every token is learned some day: 1 - learned falls as x^-c.
        c_with_never: exponent where a share is never learned, as likely as these times make both.
        never: that share, of all tokens.
        gain: ln-likelihood that it adds; above 1.92 it is told from 0 at 5 %, were tokens independent.
        alpha: of -ln RBP_k, least squares through its points.
        alpha_of_tail: the same through -ln(1 - misses) with the misses of the tail with its share.
        factor: alpha over c that a pure tail has at the middle point: q / ((1 - q) (-ln(1 - q))).
        misses_rms: root mean square of the residuals of ln(1 - RBP_k) about a line, as a share of its fall.
        law_rms: of ln(-ln RBP_k), the same.
        misses_error: relative error of -ln RBP_k at the last point by the line through ln(1 - RBP_k) before it.
        law_error: by the line through ln(-ln RBP_k).
        tail_error: by the tail with its share, and as many misses over what is not learned as at the point before.
        status: too_few_sizes with fewer than 4 points of a tail; not_positive where nobody is learned in it.
    """

    x: float
    n_points: int
    c: Estimate = NO_ESTIMATE
    c_with_never: Estimate = NO_ESTIMATE
    never: Estimate = NO_ESTIMATE
    gain: float | None = None
    alpha: Estimate = NO_ESTIMATE
    alpha_of_tail: Estimate = NO_ESTIMATE
    factor: float | None = None
    misses_rms: float | None = None
    law_rms: float | None = None
    misses_error: float | None = None
    law_error: float | None = None
    tail_error: float | None = None
    status: Status = Status.ok


@dataclass(frozen=True)
class TokenCount:
    """One token id of one history.

    Attributes:
        history: what became of its occurrences.
        token_id: in the tokenizer of the runs.
        n: occurrences with this history.
        n_scored: all its occurrences.
    """

    history: History
    token_id: int
    n: int
    n_scored: int


@dataclass(frozen=True, eq=False)
class HitTimes:
    """The times of one k.

    Attributes:
        k: rank that makes a hit.
        cell_M: the cell of each token, between its last miss and its first lasting hit.
        shares: of the histories; they sum to 1.
        points: by point.
        ids: the token ids with the most occurrences of each history.
        tail: of the times.
    """

    k: int
    cell_M: NDArray[np.int64]
    shares: dict[History, float]
    points: tuple[At, ...]
    ids: tuple[TokenCount, ...]
    tail: Tail

    @property
    def half_settled(self) -> float:
        """The first x from which on half of the tokens never change."""
        return next(at.x for at in self.points if at.settled >= 0.5)


def hit_times(over: Over, k: int, top: int) -> HitTimes:
    """The times at one k, and the `top` ids of each history."""
    tokens = over.tokens
    hit_TM = (tokens.rank_MT <= k).T
    T, cell_M, first_M = len(hit_TM), lasting(hit_TM), first_hit(hit_TM)
    history_M = histories(hit_TM)
    n_CC = np.zeros((T + 1, T + 1))
    np.add.at(n_CC, (np.minimum(first_M, cell_M), cell_M), 1)
    between_C = np.cumsum(turnbull(n_CC))
    cells_MC = cell_M[:, None] == np.arange(T + 1)
    both_X, both_BX = over.means(np.concatenate([cells_MC, hit_TM.T], axis=1))
    share_C, rbp_T, share_BC, rbp_BT = both_X[: T + 1], both_X[T + 1 :], both_BX[:, : T + 1], both_BX[:, T + 1 :]
    points, by_T = [], np.cumsum(np.bincount(settled(hit_TM), minlength=T)) / len(cell_M)
    for at, x in enumerate(np.exp(tokens.x_T)):
        by, by_B = float(share_C[: at + 1].sum()), share_BC[:, : at + 1].sum(axis=1)
        learned = over.estimate(by, by_B, Recipe.uncentred)
        passing = float((hit_TM[at] & (cell_M > at)).mean())
        points.append(At(float(x), learned, float(between_C[at]), float(rbp_T[at]), passing, float(by_T[at])))
    shares = {each: float((history_M == each).mean()) for each in History}
    tail = _tail(over, (share_C, share_BC), (rbp_T, rbp_BT))
    return HitTimes(k, cell_M, shares, tuple(points), tuple(_most_often(history_M, tokens.token_id_M, top)), tail)


def _most_often(history_M: NDArray[np.int8], token_id_M: NDArray[np.int64], top: int) -> Iterator[TokenCount]:
    n_scored = np.bincount(token_id_M)
    for history in History:
        counts = np.bincount(token_id_M[history_M == history], minlength=len(n_scored))
        for at in np.argsort(-counts, kind="stable")[:top]:
            if counts[at]:
                yield TokenCount(history, int(at), int(counts[at]), int(n_scored[at]))


def _tail(over: Over, cells: tuple[Floats, Floats], rbp: tuple[Floats, Floats]) -> Tail:
    """The tail up to the last point but one: at the last, nothing confirms a hit."""
    x_T, n = over.tokens.x_T, len(over.tokens.doc_M)
    first = min(int(_FROM * len(x_T)), max(len(x_T) - 1 - _FEWEST, 0))
    x_N, at = x_T[first:-1], float(np.exp(x_T[first]))
    share_XC, rbp_XT = np.vstack([cells[0], cells[1]]), np.vstack([rbp[0], rbp[1]])
    rbp_XN = rbp_XT[:, first:-1]
    left_X = share_XC[:, first + 1 :].sum(axis=1)
    n_XC = n * np.column_stack([share_XC[:, first + 1 : len(x_T) - 1], share_XC[:, len(x_T) - 1 :].sum(axis=1)])
    if len(x_N) < _FEWEST:
        return Tail(at, len(x_N), status=Status.too_few_sizes)
    if not n_XC[0, :-1].sum() or not np.all((rbp_XT[0, first:] > 0) & (rbp_XT[0, first:] < 1)):
        return Tail(at, len(x_N), status=Status.not_positive)
    pure, cured = fit_tails(x_N, n_XC, False), fit_tails(x_N, n_XC, True)
    modelled_XN = left_X[:, None] * cured.left(x_N - x_N[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha_X = line(x_N, np.log(-np.log(rbp_XN)))[:, 1]
        of_tail_X = line(x_N, np.log(-np.log1p(-modelled_XN)))[:, 1]
        never_X = cured.never_B * left_X

    def interval(value_X: Floats) -> Estimate:
        return over.estimate(float(value_X[0]), value_X[1:], Recipe.percentile)

    passing = (1 - rbp_XN[0, -1]) / (n_XC[0, -1] / n)  # misses over what is not learned, where both are known last
    still = float(left_X[0] * cured.left(x_T[-1:] - x_N[0])[0, 0])
    return Tail(
        x=at,
        n_points=len(x_N),
        c=interval(pure.c_B),
        c_with_never=interval(cured.c_B),
        never=interval(never_X),
        gain=float(cured.ln_likelihood_B[0] - pure.ln_likelihood_B[0]),
        alpha=interval(alpha_X),
        alpha_of_tail=interval(of_tail_X),
        factor=float(local_slope(1.0, 1 - rbp_XN[0, len(x_N) // 2])),
        misses_rms=_bend(x_T[first:], np.log1p(-rbp_XT[0, first:])),
        law_rms=_bend(x_T[first:], np.log(-np.log(rbp_XT[0, first:]))),
        misses_error=_error(rbp_XT[0, -1], float(np.exp(_next(x_T[first:], np.log1p(-rbp_XT[0, first:]))))),
        law_error=float(np.exp(_next(x_T[first:], np.log(-np.log(rbp_XT[0, first:]))))) / -math.log(rbp_XT[0, -1]) - 1,
        tail_error=_error(rbp_XT[0, -1], still * passing),
    )


def _bend(x_N: Floats, z_N: Floats) -> float:
    """Root mean square of the residuals about the line of least squares, as a share of the fall."""
    level, alpha = line(x_N, z_N)
    left_N = z_N - level + alpha * (x_N - x_N.mean())
    return float(np.sqrt((left_N**2).mean()) / abs(z_N[0] - z_N[-1]))


def _next(x_N: Floats, z_N: Floats) -> float:
    """The line through all points but the last, at the last."""
    level, alpha = line(x_N[:-1], z_N[:-1])
    return float(level - alpha * (x_N[-1] - x_N[:-1].mean()))


def _error(rbp: float, misses: float) -> float | None:
    """The relative error of -ln RBP_k where so many misses are foretold; None where that is more than all."""
    return math.log1p(-misses) / math.log(rbp) - 1 if misses < 1 else None
