"""Finds which token ids are predicted better along the axis.

The slope of -logprob on ln x is averaged over the occurrences of an id; documents are the sampling units.
"""

from collections.abc import Mapping

from rbpx.laws.intervals.estimate import Estimate, flat, from_half_width, from_stderr
from rbpx.runs.token_slopes import by_token
from rbpx.runs.tokens import Tokens
from rbpx.store.store import Record


def trend_of(slope: Estimate, fall_nats: float) -> str:
    """Classifies a token id by its slope with interval and by its fall from the first to the last point.

    `improves`, `worsens`: the interval excludes 0 as the fall does; `turns`: the fall has the other direction;
    `unclear`: it contains 0; `unknown`: only one document contains the id.
    """
    if not slope.leaves_out_0:
        return "unknown" if slope.ends is None else "unclear"
    if (slope.value or 0.0) * fall_nats >= 0:
        return "turns"
    return "worsens" if (slope.value or 0.0) > 0 else "improves"


def improvements(tokens: Tokens, texts: Mapping[int, str], k: int, least: int) -> list[Record]:
    """A row for each id scored at least `least` times, the largest fall first, and one for all rarer ids.

    slope: mean of d nats / d ln x, by Student's t over the documents that contain it. smallest_, largest_: at the first
    and the last point. fall_nats: summed over its occurrences. share: of the fall of all ids; None if none falls.
    """
    found, rarer = list[Record](), list[float | None]()
    for row in by_token(tokens, k):
        slope_half, share_stderr = row.pop("slope_half"), row.pop("share_stderr")
        if row["n_tokens"] < least:
            rarer.append(row["share"])
            continue
        row["slope"] = Estimate(row["slope"]) if slope_half is None else from_half_width(row["slope"], slope_half)
        trend, row["share"] = trend_of(row["slope"], row["fall_nats"]), from_stderr(row["share"], share_stderr)
        text = texts.get(row["token_id"])
        found.append({"kind": "token", "k": k, "text": text, **flat(row), "trend": trend, "n_types": 1})
    if rarer:
        share = None if None in rarer else sum(filter(None, rarer))
        found.append({"kind": "rarer", "k": k, "share": share, "n_types": len(rarer)})
    return found
