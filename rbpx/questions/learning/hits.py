"""Times of tokens from hits at each k: the share learned by each point, and their tail with the law of RBP_k.

Shapes: M tokens, T points, C = T + 1 cells, N points of a tail, X all tokens and their B replicates.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.counts.times import History, fit_tails, local_slope, times_of, turnbull
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Recipe, by_name, flat
from rbpx.laws.numeric import Floats, line
from rbpx.runs.tokens import Ints, Tokens
from rbpx.status import Status
from rbpx.store.store import Record

_FROM: Final = 1 / 4  # of the points are before the tail
_FEWEST: Final = 4  # points of a tail
_OF_TAIL: Final = ("c", "c_with_never", "never", "alpha", "alpha_of_tail")  # with an interval
_ALONE: Final = ("gain", "factor", "misses_rms", "law_rms", "misses_error", "law_error", "tail_error")


def hit_times(tokens: Tokens, k: int, top: int, texts: Mapping[int, str]) -> Iterator[Record]:
    """The times at one k: rows of points, of all tokens, of the `top` ids of each history, and of the tail.

    A time is the cell between the last miss and the first lasting hit of a token. Shares of tokens at a point: learned,
    hits from here on; between, Turnbull's estimate where the learning of a token is only known to lie between its first
    hit and its first lasting one; rbp, RBP_k; passing, hits that are lost again; settled, no change from here on. Of
    all tokens: the histories, and the first x from which half never change.
    """
    hit_MT = tokens.rank_MT <= k
    times, (M, T) = times_of(hit_MT.T), hit_MT.shape
    cell_M = np.minimum(times.first_M, times.lasting_M) * (T + 1) + times.lasting_M
    n_CC = np.bincount(cell_M, minlength=(T + 1) ** 2).reshape(T + 1, T + 1).astype(np.float64)
    share_XC, rbp_XT = np.vstack(tokens.shares(times.lasting_M, T + 1)), np.vstack(tokens.means(hit_MT))
    by_XC, between_C, x = share_XC.cumsum(axis=1), turnbull(n_CC).cumsum(), np.exp(tokens.x_T).tolist()
    settled_T = np.cumsum(np.bincount(times.settled_M, minlength=T)) / M
    for at in range(T):
        learned = by_name(learned=tokens.estimate(by_XC[0, at], by_XC[1:, at]))
        row = {"kind": "point", "k": k, "x": x[at], **learned, "between": float(between_C[at])}
        rbp = float(rbp_XT[0, at])
        yield row | {"rbp": rbp, "passing": rbp - float(by_XC[0, at]), "settled": float(settled_T[at])}
    shares = {each.name: float((times.history_M == each).mean()) for each in History}
    half = x[int(np.argmax(settled_T >= 0.5))]
    yield {"kind": "tokens", "k": k, "n_tokens": M, **shares, "half_settled_at": half}
    yield from _most_often(times.history_M, tokens.token_id_M, k, top, texts)
    yield {"kind": "tail", "k": k, **shares, **flat(_tail(tokens, share_XC, rbp_XT))}


def _most_often(
    history_M: NDArray[np.int8], token_id_M: Ints, k: int, top: int, texts: Mapping[int, str]
) -> Iterator[Record]:
    """The ids with the most occurrences, n, of each history, of n_scored in all."""
    n_scored = np.bincount(token_id_M)
    for history in History:
        n_V = np.bincount(token_id_M[history_M == history], minlength=len(n_scored))
        for at in np.argsort(-n_V, kind="stable")[: min(top, np.count_nonzero(n_V))].tolist():
            row = {"kind": "history", "k": k, "history": history.name, "token_id": at}
            yield row | {"n": int(n_V[at]), "n_scored": int(n_scored[at]), "text": texts.get(at)}


def _tail(tokens: Tokens, share_XC: Floats, rbp_XT: Floats) -> Record:
    """Fits the tail of the times at one k and the law of RBP_k, both from the same point to the last but one.

    The last point, where every hit counts as lasting, is held out and predicted.

    c: exponent of the tail, 1 - learned ~ x^-c, if every token is learned some day; c_with_never: if a share `never` is
    not. gain: ln-likelihood that this share adds; above 1.92 it differs from 0 at 5 %. alpha: of -ln RBP_k, by least
    squares; alpha_of_tail: of -ln(1 - misses) by the tail. factor: alpha over c of a pure tail at the middle point, q /
    ((1 - q) (-ln(1 - q))). misses_rms: residuals of ln(1 - RBP_k) about a line, as a share of its fall; law_rms: of
    ln(-ln RBP_k). misses_error, law_error, tail_error: of -ln RBP_k at the last point, by these lines and by the tail.
    """
    x_T, M = tokens.x_T, len(tokens.key_M)
    T = len(x_T)
    first = min(int(_FROM * T), max(T - 1 - _FEWEST, 0))
    x_N, rbp_N = x_T[first:], rbp_XT[0, first:]
    tail: Record = dict.fromkeys(_OF_TAIL, NO_ESTIMATE) | dict.fromkeys(_ALONE)
    tail |= {"x": float(np.exp(x_N[0])), "n_points": len(x_N) - 1}
    if len(x_N) - 1 < _FEWEST:
        return tail | {"status": Status.too_few_sizes}
    left_X = share_XC[:, first + 1 :].sum(axis=1)
    n_XC = M * np.column_stack([share_XC[:, first + 1 : T - 1], share_XC[:, T - 1 :].sum(axis=1)])
    if not n_XC[0, :-1].sum() or not np.all((rbp_N > 0) & (rbp_N < 1)):
        return tail | {"status": Status.not_positive}
    pure, cured = (fit_tails(x_N[:-1], n_XC, with_never) for with_never in (False, True))
    misses_XN = left_X[:, None] * cured.left(x_N - x_N[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha_X = line(x_N[:-1], np.log(-np.log(rbp_XT[:, first:-1])))[:, 1]
        of_tail_X = line(x_N[:-1], np.log(-np.log1p(-misses_XN[:, :-1])))[:, 1]
    of_tail = pure.c_B, cured.c_B, cured.never_B * left_X, alpha_X, of_tail_X
    for name, value_X in zip(_OF_TAIL, of_tail, strict=True):
        tail[name] = tokens.estimate(value_X[0], value_X[1:], Recipe.percentile)
    passing = (1 - rbp_N[-2]) / (n_XC[0, -1] / M)  # misses over what is not learned, where both are known last
    ln_misses_N, ln_law_N = np.log1p(-rbp_N), np.log(-np.log(rbp_N))
    next_misses, next_law = (float(np.exp(_next(x_N, each_N))) for each_N in (ln_misses_N, ln_law_N))
    return tail | {
        "gain": float(cured.ln_likelihood_B[0] - pure.ln_likelihood_B[0]) if cured.never_B[0] else 0.0,
        "factor": float(local_slope(1.0, 1 - rbp_N[(len(x_N) - 1) // 2])),
        "misses_rms": _bend(x_N, ln_misses_N),
        "law_rms": _bend(x_N, ln_law_N),
        "misses_error": _error(rbp_N[-1], next_misses),
        "law_error": next_law / -math.log(rbp_N[-1]) - 1,
        "tail_error": _error(rbp_N[-1], float(misses_XN[0, -1]) * passing),
        "status": Status.ok,
    }


def _bend(x_N: Floats, z_N: Floats) -> float:
    level, alpha = line(x_N, z_N)
    return float((z_N - level + alpha * (x_N - x_N.mean())).std() / abs(z_N[0] - z_N[-1]))


def _next(x_N: Floats, z_N: Floats) -> float:
    level, alpha = line(x_N[:-1], z_N[:-1])
    return float(level - alpha * (x_N[-1] - x_N[:-1].mean()))


def _error(rbp: float, misses: float) -> float | None:
    return math.log1p(-misses) / math.log(rbp) - 1 if misses < 1 else None
