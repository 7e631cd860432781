"""Shares the slope of cross-entropy between the last two points among tokens, by history, id, position and document.

The slopes of single tokens add up to that of their mean, so the shares of all classes of one kind sum to 1. Selecting
the listed ids and documents biases their shares upwards; the rows `chosen` measure that by cross-validation. If the
mean does not fall, there are no shares.

Shapes: M tokens, T points, C classes.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.learning.times import History, times_of
from rbpx.laws.numeric import Floats
from rbpx.runs.tokens import Ints, Tokens
from rbpx.store.store import Record

POSITIONS: Final = {"1-15": 1, "16-63": 16, "64-255": 64, "256+": 256}


def carriers(tokens: Tokens, k: int, least: int, top: int) -> Iterator[Record]:
    """Yields the slope between the last two points, its shares by class, and the bias of the listed classes.

    Keys of a class: by (history at the points before the last two, position, token or document); number, its token_id
    or doc_id; slope, the mean of -d nats / d ln x; share, of the slope of all tokens; of_tokens, its share of all
    tokens. Keys
    of `chosen`: share and of_tokens of all listed classes; again, the share of those chosen on one half and scored on
    the other, the mean of both ways.

    Args:
        tokens: at three points or more.
        k: largest rank of a hit, for histories.
        least: tokens that an id must have to be listed.
        top: ids and documents to list.
    """
    x_T, doc_M = tokens.x_T, tokens.doc_M
    slope_M = -np.diff(tokens.nats_MT[:, -2:].astype(np.float64))[:, 0] / (x_T[-1] - x_T[-2])
    slope, (lo, hi) = tokens.mean(slope_M), np.exp(x_T[-2:]).tolist()
    falls = (slope.value or 0.0) > 0 and (slope.ends is None or slope.leaves_out_0)  # else there are no shares
    yield {"kind": "slope_now", "lo": lo, "hi": hi, **by_name(slope=slope)}
    place_M = np.searchsorted([*POSITIONS.values()], np.maximum(tokens.position_M, 1), side="right") - 1
    groups: dict[str, tuple[NDArray[Any], list[str]]] = {
        "history": (times_of((tokens.rank_MT[:, :-2] <= k).T).history_M, [each.name for each in History]),
        "position": (place_M, [*POSITIONS]),
    }
    for by, (of_M, names) in groups.items():
        for at in np.unique(of_M).tolist():
            yield _class(tokens, slope_M, falls, of_M == at, {"by": by, "name": names[at], "number": None})
    chosen: list[Record] = []
    # Halves are of documents for ids, and of alternate tokens for documents.
    halves = (("token", tokens.token_id_M, doc_M % 2), ("document", doc_M, np.arange(len(doc_M)) % 2))
    for by, of_M, half_M in halves:
        is_kept_C = np.bincount(of_M) >= (least if by == "token" else 1)
        best = _best(slope_M, of_M, is_kept_C, top)
        for number in best.tolist():
            yield _class(tokens, slope_M, falls, of_M == number, {"by": by, "name": str(number), "number": number})
        is_M, again = np.isin(of_M, best), []
        for is_here_M in (half_M == 0, half_M == 1):
            chosen_here = np.isin(of_M, _best(slope_M * is_here_M, of_M, is_kept_C, top))
            total = slope_M[~is_here_M].sum()
            again.append(slope_M[~is_here_M & chosen_here].sum() / total if total else np.nan)
        row: Record = {"kind": "chosen", "by": by, "n": len(best), "share": float(slope_M[is_M].sum() / slope_M.sum())}
        chosen.append(row | {"again": float(np.mean(again)), "of_tokens": float(is_M.mean())})
    yield from chosen if falls else []


def _class(tokens: Tokens, slope_M: Floats, falls: bool, is_M: NDArray[np.bool_], names: Record) -> Record:
    share = tokens.part(slope_M, is_M) if falls else NO_ESTIMATE
    if names["by"] == "document":  # a sample of documents says nothing of one of them
        share = Estimate(share.value)
    row: Record = {"kind": "carrier", **names, "n_tokens": int(is_M.sum()), "of_tokens": float(is_M.mean())}
    return row | {"slope": float(slope_M[is_M].mean()), **by_name(share=share)}


def _best(slope_M: Floats, of_M: Ints, is_kept_C: NDArray[np.bool_], top: int) -> Ints:
    sum_C = np.bincount(of_M, slope_M, len(is_kept_C))
    order_C = np.argsort(-np.where(is_kept_C, sum_C, -np.inf), kind="stable")
    return np.asarray(order_C[: min(top, np.count_nonzero(is_kept_C))])
