"""Which tokens carry the slope of cross-entropy between the last two points: by history, id, position, document.

The slopes of single tokens add up to that of their mean, so the shares of all classes of one kind sum to 1. Ids and
documents are listed by their own estimated shares, which chance raises: what those add up to that one half of the
tokens chooses is also told by the other half. Where the mean does not fall, nothing has a share.

Shapes: M tokens, T points.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate
from rbpx.laws.trajectory import History, histories
from rbpx.questions.learning.losses import Over
from rbpx.questions.learning.tokens import Ints

POSITIONS: Final = ((1, "1-15"), (16, "16-63"), (64, "64-255"), (256, "256+"))


@dataclass(frozen=True)
class Carrier:
    """The tokens of one class.

    Attributes:
        by: history (hits at the points before the last two), position, token or document.
        name: of the class; the text of a token is told beside it.
        number: token_id or doc_id; None otherwise.
        n_tokens: how many there are.
        of_tokens: their share of all tokens.
        slope: the mean of -d nats / d ln x over them.
        share: of the slope of all tokens.
    """

    by: str
    name: str
    number: int | None
    n_tokens: int
    of_tokens: float
    slope: float
    share: Estimate


@dataclass(frozen=True)
class Chosen:
    """What the classes that are listed by their shares add up to.

    Attributes:
        by: token or document.
        n: classes that are listed.
        share: of the slope, of those that are listed.
        again: the same of as many that one half chooses, by the other half; the mean of both ways.
        of_tokens: their share of all tokens.
    """

    by: str
    n: int
    share: float
    again: float
    of_tokens: float


@dataclass(frozen=True, eq=False)
class Carriers:
    """Who carries the slope.

    Attributes:
        lo: x of the last point but one.
        hi: x of the last.
        slope: of all tokens, nats per unit of ln x.
        classes: by kind of class.
        chosen: how far the listed ones owe their place to chance.
    """

    lo: float
    hi: float
    slope: Estimate
    classes: tuple[Carrier, ...]
    chosen: tuple[Chosen, ...]


def carriers(over: Over, k: int, least: int, top: int) -> Carriers:
    """Share the slope among the tokens.

    Args:
        over: the tokens, at three points or more.
        k: rank that makes a hit, for histories.
        least: tokens that an id must have to be listed.
        top: ids and documents to list.
    """
    tokens = over.tokens
    x_T, nats_MT = tokens.x_T, tokens.nats_MT.astype(np.float64)
    slope_M = (nats_MT[:, -2] - nats_MT[:, -1]) / (x_T[-1] - x_T[-2])
    history_M = histories((tokens.rank_MT[:, :-2] <= k).T).astype(np.int64)
    bucket_M = np.searchsorted([first for first, _ in POSITIONS], tokens.position_M, side="right") - 1
    found = _classes(over, slope_M, "history", history_M, [each.name for each in History])
    found += _classes(over, slope_M, "position", np.maximum(bucket_M, 0), [name for _, name in POSITIONS])
    chosen = []
    # The halves are of documents for ids, and every other token for documents.
    nth_M = np.arange(len(slope_M))
    for by, of_M, half_M, fewest in (
        ("token", tokens.token_id_M, tokens.doc_M % 2, least),
        ("document", tokens.doc_M, nth_M % 2, 1),
    ):
        number_C, at_M = np.unique(of_M, return_inverse=True)
        is_kept_C = np.bincount(at_M) >= fewest
        places = _best(slope_M, at_M, is_kept_C, top)
        found += [_class(over, slope_M, by, at_M == at, str(number_C[at]), int(number_C[at])) for at in places]
        chosen.append(_chosen(by, slope_M, at_M, is_kept_C, half_M, top))
    slope = over.mean(slope_M)
    if (slope.value or 0.0) <= 0 or not (slope.ends is None or slope.leaves_out_0):  # nothing falls that has parts
        found = [replace(each, share=NO_ESTIMATE) for each in found]
        chosen = []
    return Carriers(float(np.exp(x_T[-2])), float(np.exp(x_T[-1])), slope, tuple(found), tuple(chosen))


def _classes(over: Over, slope_M: NDArray[np.float64], by: str, at_M: Ints, names: list[str]) -> list[Carrier]:
    return [_class(over, slope_M, by, is_M, name, None) for at, name in enumerate(names) if (is_M := at_M == at).any()]


def _class(
    over: Over, slope_M: NDArray[np.float64], by: str, is_M: NDArray[np.bool_], name: str, number: int | None
) -> Carrier:
    share, _ = over.shares(np.stack([np.where(is_M, slope_M, 0), np.where(is_M, 0, slope_M)], axis=1))
    if by == "document":  # a sample of documents says nothing of one of them
        share = Estimate(share.value)
    return Carrier(by, name, number, int(is_M.sum()), float(is_M.mean()), float(slope_M[is_M].mean()), share)


def _best(slope_M: NDArray[np.float64], at_M: NDArray[np.intp], is_kept_C: NDArray[np.bool_], top: int) -> Ints:
    sum_C = np.bincount(at_M, slope_M, minlength=len(is_kept_C))
    order = np.argsort(-np.where(is_kept_C, sum_C, -np.inf), kind="stable")
    return np.asarray(order[: min(top, int(is_kept_C.sum()))])


def _chosen(
    by: str,
    slope_M: NDArray[np.float64],
    at_M: NDArray[np.intp],
    is_kept_C: NDArray[np.bool_],
    half_M: Ints,
    top: int,
) -> Chosen:
    listed = _best(slope_M, at_M, is_kept_C, top)
    again = []
    for half in (0, 1):
        here = half_M == half
        places = _best(slope_M[here], at_M[here], is_kept_C, top)
        other_M = ~here
        total = float(slope_M[other_M].sum())
        again.append(float(slope_M[other_M & np.isin(at_M, places)].sum()) / total if total else float("nan"))
    is_M = np.isin(at_M, listed)
    share = float(slope_M[is_M].sum() / slope_M.sum())
    return Chosen(by, len(listed), share, float(np.mean(again)), float(is_M.mean()))
