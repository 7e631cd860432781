"""Times of tokens from hits alone, at each k: who is learned by when, and the tail of times beside the law of RBP_k.

Shapes: M tokens, T points, C = T + 1 cells, D documents, B resamples.
"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Recipe, by_name, flat
from rbpx.laws.learning.times import first_hit, fit_tails, lasting, local_slope, turnbull
from rbpx.laws.numeric import Floats, line
from rbpx.laws.trajectory import History, histories, settled
from rbpx.questions.learning.losses import Over
from rbpx.status import Status
from rbpx.store.store import Record

_FROM: Final = 1 / 4  # of the points are before the tail
_FEWEST: Final = 4  # points of a tail
_OF_TAIL: Final = ("c", "c_with_never", "never", "alpha", "alpha_of_tail")  # with an interval
_ALONE: Final = ("gain", "factor", "misses_rms", "law_rms", "misses_error", "law_error", "tail_error")


def hit_times(over: Over, k: int, top: int) -> Iterator[Record]:
    """The times at one k: by point, of all tokens, of the `top` ids of each history, and their tail.

    A time is the cell between the last miss and the first lasting hit of a token. Of a point:

    learned: share of tokens that are hits from here on to the last point; by Turnbull's estimator the same.
    between: share by Turnbull's estimator where a token that changes more than once is only known to be learned between
        its first hit and its first lasting one.
    rbp: RBP_k here.
    passing: share of hits that are lost again later, RBP_k less `learned`.
    settled: share of tokens that stay a hit, or stay a miss, from here on.

    Of all tokens: the shares of the histories, which sum to 1, and the first x from which on half of them never change.
    """
    tokens = over.tokens
    hit_TM = (tokens.rank_MT <= k).T
    T, cell_M, first_M, history_M = len(hit_TM), lasting(hit_TM), first_hit(hit_TM), histories(hit_TM)
    n_CC = np.zeros((T + 1, T + 1))
    np.add.at(n_CC, (np.minimum(first_M, cell_M), cell_M), 1)
    between_C = np.cumsum(turnbull(n_CC))
    cells_MC = cell_M[:, None] == np.arange(T + 1)
    both_X, both_BX = over.means(np.concatenate([cells_MC, hit_TM.T], axis=1))
    share_C, rbp_T, share_BC, rbp_BT = both_X[: T + 1], both_X[T + 1 :], both_BX[:, : T + 1], both_BX[:, T + 1 :]
    x_T, settled_T = np.exp(tokens.x_T), np.cumsum(np.bincount(settled(hit_TM), minlength=T)) / len(cell_M)
    for at in range(T):
        by, by_B = float(share_C[: at + 1].sum()), share_BC[:, : at + 1].sum(axis=1)
        learned = by_name(learned=over.estimate(by, by_B, Recipe.uncentred))
        passing = float((hit_TM[at] & (cell_M > at)).mean())
        row = {"kind": "point", "k": k, "x": float(x_T[at]), **learned, "between": float(between_C[at])}
        yield row | {"rbp": float(rbp_T[at]), "passing": passing, "settled": float(settled_T[at])}
    shares = {each.name: float((history_M == each).mean()) for each in History}
    of_all = {"half_settled_at": float(x_T[np.argmax(settled_T >= 0.5)])}
    yield {"kind": "tokens", "k": k, "n_tokens": len(cell_M), **shares, **of_all}
    yield from _most_often(history_M, tokens.token_id_M, k, top)
    yield {"kind": "tail", "k": k, **shares, **flat(_tail(over, (share_C, share_BC), (rbp_T, rbp_BT)))}


def _most_often(history_M: NDArray[np.int8], token_id_M: NDArray[np.int64], k: int, top: int) -> Iterator[Record]:
    """The token ids with the most occurrences, n, of each history; n_scored are all their occurrences."""
    n_scored = np.bincount(token_id_M)
    for history in History:
        counts = np.bincount(token_id_M[history_M == history], minlength=len(n_scored))
        for at in np.argsort(-counts, kind="stable")[:top]:
            if counts[at]:
                row = {"kind": "history", "k": k, "history": history.name, "token_id": int(at), "n": int(counts[at])}
                yield row | {"n_scored": int(n_scored[at])}


def _tail(over: Over, cells: tuple[Floats, Floats], rbp: tuple[Floats, Floats]) -> Record:
    """The tail of the times at one k, beside the law of RBP_k, both from the same point to the last but one.

    At the last point every hit is a lasting one, as nothing comes after it, so it is left out and foretold.

    x: the point from which on; n_points: of the tail.
    c: exponent of the tail if every token is learned some day: 1 - learned falls as x^-c.
    c_with_never: exponent where a share is never learned, as likely as these times make both; never: it, of all tokens.
    gain: ln-likelihood that this share adds; above 1.92 it is told from 0 at 5 %, were tokens independent.
    alpha: of -ln RBP_k, least squares through its points.
    alpha_of_tail: the same through -ln(1 - misses) with the misses of the tail with its share.
    factor: alpha over c that a pure tail has at the middle point: q / ((1 - q) (-ln(1 - q))).
    misses_rms: root mean square of the residuals of ln(1 - RBP_k) about a line, as a share of its fall.
    law_rms: of ln(-ln RBP_k), the same.
    misses_error: relative error of -ln RBP_k at the last point by the line through ln(1 - RBP_k) before it.
    law_error: by the line through ln(-ln RBP_k).
    tail_error: by the tail with its share, and as many misses over what is not learned as at the point before.
    """
    x_T, n = over.tokens.x_T, len(over.tokens.doc_M)
    first = min(int(_FROM * len(x_T)), max(len(x_T) - 1 - _FEWEST, 0))
    x_N = x_T[first:-1]
    share_XC, rbp_XT = np.vstack(cells), np.vstack(rbp)
    rbp_XN, rbp_N = rbp_XT[:, first:-1], rbp_XT[0, first:]
    left_X = share_XC[:, first + 1 :].sum(axis=1)
    n_XC = n * np.column_stack([share_XC[:, first + 1 : len(x_T) - 1], share_XC[:, len(x_T) - 1 :].sum(axis=1)])
    tail: Record = dict.fromkeys(_OF_TAIL, NO_ESTIMATE) | dict.fromkeys(_ALONE)
    tail |= {"x": float(np.exp(x_T[first])), "n_points": len(x_N)}
    if len(x_N) < _FEWEST:
        return tail | {"status": Status.too_few_sizes}
    if not n_XC[0, :-1].sum() or not np.all((rbp_N > 0) & (rbp_N < 1)):
        return tail | {"status": Status.not_positive}
    pure, cured = fit_tails(x_N, n_XC, False), fit_tails(x_N, n_XC, True)
    modelled_XN = left_X[:, None] * cured.left(x_N - x_N[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha_X = line(x_N, np.log(-np.log(rbp_XN)))[:, 1]
        of_tail_X = line(x_N, np.log(-np.log1p(-modelled_XN)))[:, 1]
    of_tail = pure.c_B, cured.c_B, cured.never_B * left_X, alpha_X, of_tail_X
    for name, value_X in zip(_OF_TAIL, of_tail, strict=True):
        tail[name] = over.estimate(float(value_X[0]), value_X[1:], Recipe.percentile)
    passing = (1 - rbp_XN[0, -1]) / (n_XC[0, -1] / n)  # misses over what is not learned, where both are known last
    still = float(left_X[0] * cured.left(x_T[-1:] - x_N[0])[0, 0])
    ln_misses_N, ln_law_N = np.log1p(-rbp_N), np.log(-np.log(rbp_N))
    return tail | {
        "gain": float(cured.ln_likelihood_B[0] - pure.ln_likelihood_B[0]),
        "factor": float(local_slope(1.0, 1 - rbp_XN[0, len(x_N) // 2])),
        "misses_rms": _bend(x_T[first:], ln_misses_N),
        "law_rms": _bend(x_T[first:], ln_law_N),
        "misses_error": _error(rbp_N[-1], float(np.exp(_next(x_T[first:], ln_misses_N)))),
        "law_error": float(np.exp(_next(x_T[first:], ln_law_N))) / -math.log(rbp_N[-1]) - 1,
        "tail_error": _error(rbp_N[-1], still * passing),
        "status": Status.ok,
    }


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
