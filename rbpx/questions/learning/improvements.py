"""Which token ids are predicted better along the axis.

The slope of -logprob on ln x is taken at each occurrence, then averaged over those of a token id. Documents are the
sampling units, so standard errors are clustered by document.

Shapes: M tokens, T points, V token ids that occur, P pairs of one and a document that holds it.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, flat, from_stderr, student_t
from rbpx.laws.numeric import Floats
from rbpx.questions.learning.tokens import Tokens
from rbpx.store.store import Record


def trend_of(slope: Estimate, fall_nats: float) -> str:
    """What the slope of a token id with its interval says, and its fall from the first to the last point.

    `improves` and `worsens`: the interval does not contain 0, and the fall agrees. `turns`: it does not contain 0, but
    the fall has the other direction. `unclear`: it contains 0. `unknown`: only one document contains the token id, so
    there is no interval.
    """
    if not slope.leaves_out_0:
        return "unknown" if slope.ends is None else "unclear"
    if (slope.value or 0.0) * fall_nats >= 0:
        return "turns"
    return "worsens" if (slope.value or 0.0) > 0 else "improves"


def improvements(tokens: Tokens, texts: Mapping[int, str], k: int, least: int) -> list[Record]:
    """How far each token id improves along the points.

    A row for each id that is scored at least so often, those whose nats fall furthest first; one for all rarer ones.

    slope: mean over its occurrences of d nats / d ln x, below 0 where later ones are better; its interval is of
        Student's t over the documents that contain it.
    smallest_nats, largest_nats: means of -logprob at the first and the last point; smallest_rbp, largest_rbp: RBP_k.
    fall_nats: from the first to the last point, summed over its occurrences.
    share: of the fall of all token ids, which add up to 1, its interval normal, over all documents; None where the text
        as a whole has no fall.
    """
    found, rarer = list[Record](), list[float | None]()
    for row in by_token(tokens, k):
        slope_stderr, share_stderr = row.pop("slope_stderr"), row.pop("share_stderr")
        if row["n_tokens"] < least:
            rarer.append(row["share"])
            continue
        row["slope"] = from_stderr(row["slope"], slope_stderr, row["n_documents"] - 1)
        trend, row["share"] = trend_of(row["slope"], row["fall_nats"]), from_stderr(row["share"], share_stderr)
        text = texts.get(row["token_id"])
        found.append({"kind": "token", "k": k, "text": text, **flat(row), "trend": trend, "n_types": 1})
    if rarer:
        share = None if None in rarer else sum(filter(None, rarer))
        found.append({"kind": "rarer", "k": k, "share": share, "n_types": len(rarer)})
    return found


def improving(tokens: Tokens) -> tuple[list[int], int]:
    """The token ids whose slope has an interval below 0, and how many ids occur."""
    rows = by_token(tokens, 1)
    dof_of = {row["n_documents"]: student_t(row["n_documents"] - 1) for row in rows if row["n_documents"] > 1}
    named = [row for row in rows if row["slope_stderr"] is not None]
    falls = [row["token_id"] for row in named if row["slope"] + dof_of[row["n_documents"]] * row["slope_stderr"] < 0]
    return falls, len(rows)


def by_token(tokens: Tokens, k: int) -> list[Record]:
    """The numbers of `improvements` for each token id, with standard errors; None where there is no number.

    Squares about a ratio r = sum y / sum x over documents: sum (y - r x)^2 = Syy - 2 r Sxy + r^2 Sxx.
    """
    nats_MT, about_T = tokens.nats_MT.astype(np.float64), tokens.x_T - tokens.x_T.mean()
    id_V, of_M = np.unique(tokens.token_id_M, return_inverse=True)
    n_documents, doc_M = int(tokens.doc_M.max()) + 1, tokens.doc_M
    pair_P, pair_M = np.unique(of_M * n_documents + doc_M, return_inverse=True)
    of_P, doc_P = np.divmod(pair_P, n_documents)
    fall_M = nats_MT[:, 0] - nats_MT[:, -1]
    slope_M = nats_MT @ about_T / (about_T @ about_T)
    n_P, slope_P, fall_P = (np.bincount(pair_M, each).astype(np.float64) for each in (None, slope_M, fall_M))
    whole_D, n_V, documents_V = np.bincount(doc_M, fall_M).astype(np.float64), np.bincount(of_M), np.bincount(of_P)
    whole, scored_D = float(whole_D.sum()), np.bincount(doc_M) > 0

    def summed(value_P: Floats) -> Floats:
        return np.bincount(of_P, value_P).astype(np.float64)

    def error(y_P: Floats, x_P: Floats, r_V: Floats, xx: Floats | float, n: Any) -> Floats:
        square_V = summed(y_P * y_P) - 2 * r_V * summed(y_P * x_P) + r_V * r_V * xx
        return np.where(n > 1, np.sqrt(np.maximum(square_V, 0) * n / (n - 1)), np.nan)

    hit_MT = tokens.rank_MT[:, [0, -1]] <= k
    ends = [np.bincount(of_M, each) / n_V for each in (nats_MT[:, 0], nats_MT[:, -1], *hit_MT.T)]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope_V, fall_V = summed(slope_P) / n_V, summed(fall_P)
        slope_stderr_V = error(slope_P, n_P, slope_V, summed(n_P * n_P), documents_V) / n_V
        share_V = fall_V / (whole if whole > 0 else np.nan)
        share_stderr_V = error(fall_P, whole_D[doc_P], share_V, float(whole_D @ whole_D), scored_D.sum()) / whole
    columns = (id_V, n_V, documents_V, slope_V, slope_stderr_V, *ends, fall_V, share_V, share_stderr_V)
    order_V = np.lexsort((id_V, -fall_V))
    return [
        dict(zip(_COLUMNS, (None if each != each else each for each in row), strict=True))
        for row in zip(*(each[order_V].tolist() for each in columns), strict=True)
    ]


_COLUMNS: Final = (
    *("token_id", "n_tokens", "n_documents", "slope", "slope_stderr", "smallest_nats", "largest_nats"),
    *("smallest_rbp", "largest_rbp", "fall_nats", "share", "share_stderr"),
)
