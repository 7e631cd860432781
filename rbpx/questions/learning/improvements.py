"""Which token ids are predicted better along the axis.

The slope of -logprob on ln x is taken at each occurrence, then averaged over those of a token id. Documents are the
sampling units, so standard errors are clustered by document.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import duckdb

from rbpx.laws.intervals.estimate import Estimate, flat, from_stderr
from rbpx.laws.numeric import Floats
from rbpx.questions.learning.found import Found
from rbpx.runs.group import Group, Run
from rbpx.store.sql import ask
from rbpx.store.store import Record


class Trend(StrEnum):
    """What the slope of a token id, and its fall from the first to the last point, say.

    `improves` and `worsens`: the interval of the slope does not contain 0, and the fall agrees. `turns`: it does not
    contain 0, but the fall has the other direction. `unclear`: the interval contains 0. `unknown`: only one document
    contains the token id, so there is no interval.
    """

    improves = "improves"
    worsens = "worsens"
    turns = "turns"
    unclear = "unclear"
    unknown = "unknown"


def trend_of(slope: Estimate, fall_nats: float) -> Trend:
    """What the slope of a token id with its interval says, and the fall from the first to the last point."""
    if slope.ends is None:
        return Trend.unknown
    return _direction(slope.value or 0.0, fall_nats) if slope.leaves_out_0 else Trend.unclear


def _direction(slope: float, fall_nats: float) -> Trend:
    if slope * fall_nats >= 0:
        return Trend.turns
    return Trend.worsens if slope > 0 else Trend.improves


def of_trend(found: Found, trend: Trend) -> list[Record]:
    """The token ids with a trend; by the sign of the slope alone where one document leaves no intervals."""
    tokens = found.of("token")
    if found.group.n_resampled > 1:
        return [row for row in tokens if row["trend"] == trend]
    is_told = trend in (Trend.improves, Trend.worsens)
    return [row for row in tokens if is_told and _direction(row["slope"], row["fall_nats"]) is trend]


def improvements(
    connection: duckdb.DuckDBPyConnection, group: Group, runs: Sequence[Run], x_T: Floats, k: int, least: int
) -> Iterator[Record]:
    """How far each token id improves along the runs, one a point, that have ln x there [T] and tokens in common.

    A row for each id that is scored at least so often, those whose nats fall furthest first; one for all rarer ones.

    slope: mean over its occurrences of d nats / d ln x, below 0 where later ones are better; its interval is of
        Student's t over the documents that contain it.
    smallest_nats, largest_nats: means of -logprob at the first and the last point; smallest_rbp, largest_rbp: RBP_k.
    fall_nats: from the first to the last point, summed over its occurrences.
    share: of the fall of all token ids, which add up to 1, its interval normal, over all documents; None where the text
        as a whole has no fall.
    """
    asked = {"run_ids": [run.run_id for run in runs], "ln_sizes": x_T.tolist(), "k": k, "ties": group.ties.value}
    rows = ask(connection, "improvements", **asked).to_pylist()
    for row in rows:
        slope_stderr, share_stderr = row.pop("slope_stderr"), row.pop("share_stderr")
        if row["n_tokens"] >= least:
            row["slope"] = from_stderr(row["slope"], slope_stderr, row["n_documents"] - 1)
            trend = trend_of(row["slope"], row["fall_nats"])
            row["share"] = from_stderr(row["share"], share_stderr)
            yield {"kind": "token", "k": k, **flat(row), "trend": trend.value, "n_types": 1}
    rarer = [row["share"] for row in rows if row["n_tokens"] < least]
    if rarer:
        yield {"kind": "rarer", "k": k, "share": None if None in rarer else sum(rarer), "n_types": len(rarer)}
