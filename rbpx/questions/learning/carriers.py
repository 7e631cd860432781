"""Which tokens carry the slope of cross-entropy between the last two points: by history, id, position, document.

The slopes of single tokens add up to that of their mean, so the shares of all classes of one kind sum to 1. Ids and
documents are listed by their own estimated shares, which chance raises: what those add up to that one half of the
tokens chooses is also told by the other half. Where the mean does not fall, nothing has a share.

Shapes: M tokens, T points.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.numeric import Floats
from rbpx.laws.trajectory import History, histories
from rbpx.questions.learning.losses import Over
from rbpx.questions.learning.tokens import Ints
from rbpx.store.store import Record

POSITIONS: Final = ((1, "1-15"), (16, "16-63"), (64, "64-255"), (256, "256+"))

_Class = tuple[str, str, int | None, NDArray[np.bool_]]
"""How tokens are told apart, the name of one class, its number, and which of them are in it."""


def carriers(over: Over, k: int, least: int, top: int) -> list[Record]:
    """Share the slope among the tokens: that of all between the two points, its classes, and what chance listed.

    Of a class: by, history (hits at the points before the last two), position, token or document; number, its token_id
    or doc_id; slope, the mean of -d nats / d ln x over its tokens; share, of the slope of all tokens; of_tokens, its
    share of all tokens. Of what is chosen: share and of_tokens of all that are listed together, and again, the share of
    as many that one half chooses, by the other half; the mean of both ways.

    Args:
        over: the tokens, at three points or more.
        k: rank that makes a hit, for histories.
        least: tokens that an id must have to be listed.
        top: ids and documents to list.
    """
    tokens = over.tokens
    x_T, nats_MT = tokens.x_T, tokens.nats_MT.astype(np.float64)
    slope_M = (nats_MT[:, -2] - nats_MT[:, -1]) / (x_T[-1] - x_T[-2])
    slope = over.mean(slope_M)
    falls = (slope.value or 0.0) > 0 and (slope.ends is None or slope.leaves_out_0)  # else nothing has parts
    history_M = histories((tokens.rank_MT[:, :-2] <= k).T)
    bucket_M = np.searchsorted([first for first, _ in POSITIONS], tokens.position_M, side="right") - 1
    classes: list[_Class] = [("history", each.name, None, history_M == each) for each in History]
    classes += [("position", name, None, np.maximum(bucket_M, 0) == at) for at, (_, name) in enumerate(POSITIONS)]
    classes = [each for each in classes if each[-1].any()]
    chosen = []
    # The halves are of documents for ids, and every other token for documents.
    for by, of_M, half_M, fewest in (
        ("token", tokens.token_id_M, tokens.doc_M % 2, least),
        ("document", tokens.doc_M, np.arange(len(slope_M)) % 2, 1),
    ):
        number_C, at_M = np.unique(of_M, return_inverse=True)
        is_kept_C = np.bincount(at_M) >= fewest
        places = _best(slope_M, at_M, is_kept_C, top)
        classes += [(by, str(number_C[at]), int(number_C[at]), at_M == at) for at in places]
        chosen += [_chosen(by, slope_M, at_M, is_kept_C, half_M, top)] if falls else []
    lo, hi = np.exp(x_T[-2:]).tolist()
    about = {"kind": "slope_now", "lo": lo, "hi": hi, **by_name(slope=slope)}
    return [about, *(_class(over, slope_M, falls, *each) for each in classes), *chosen]


def _class(
    over: Over, slope_M: Floats, falls: bool, by: str, name: str, number: int | None, is_M: NDArray[np.bool_]
) -> Record:
    share, _ = over.shares(np.stack([np.where(is_M, slope_M, 0), np.where(is_M, 0, slope_M)], axis=1))
    if by == "document":  # a sample of documents says nothing of one of them
        share = Estimate(share.value)
    row: Record = {"kind": "carrier", "by": by, "name": name, "number": number, "n_tokens": int(is_M.sum())}
    row |= {"of_tokens": float(is_M.mean()), "slope": float(slope_M[is_M].mean())}
    return row | by_name(share=share if falls else NO_ESTIMATE)


def _best(slope_M: Floats, at_M: NDArray[np.intp], is_kept_C: NDArray[np.bool_], top: int) -> Ints:
    sum_C = np.bincount(at_M, slope_M, minlength=len(is_kept_C))
    order = np.argsort(-np.where(is_kept_C, sum_C, -np.inf), kind="stable")
    return np.asarray(order[: min(top, int(is_kept_C.sum()))])


def _chosen(
    by: str, slope_M: Floats, at_M: NDArray[np.intp], is_kept_C: NDArray[np.bool_], half_M: Ints, top: int
) -> Record:
    listed = _best(slope_M, at_M, is_kept_C, top)
    again = []
    for here_M in (half_M == 0, half_M == 1):
        places = _best(slope_M[here_M], at_M[here_M], is_kept_C, top)
        total = float(slope_M[~here_M].sum())
        again.append(float(slope_M[~here_M & np.isin(at_M, places)].sum()) / total if total else float("nan"))
    is_M = np.isin(at_M, listed)
    share = float(slope_M[is_M].sum() / slope_M.sum())
    row = {"kind": "chosen", "by": by, "n": len(listed), "share": share, "again": float(np.mean(again))}
    return row | {"of_tokens": float(is_M.mean())}
