"""Which token ids are predicted better along the axis.

The slope of -logprob on ln x is taken at each occurrence, then averaged over those of a token id. Documents are the
sampling units, so standard errors are clustered by document.
"""

from collections.abc import Sequence

import duckdb

from rbpx.laws.intervals.estimate import Estimate, flat, from_stderr
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Run
from rbpx.store.sql import ask_once
from rbpx.store.store import Record
from rbpx.ties import Ties


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


def improvements(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[Run], x_T: Floats, ties: Ties, k: int, least: int
) -> tuple[list[Record], dict[int, str | None]]:
    """How far each token id improves along runs at ln x, one a point; and the text of each.

    A row for each id that is scored at least so often, those whose nats fall furthest first; one for all rarer ones.

    slope: mean over its occurrences of d nats / d ln x, below 0 where later ones are better; its interval is of
        Student's t over the documents that contain it.
    smallest_nats, largest_nats: means of -logprob at the first and the last point; smallest_rbp, largest_rbp: RBP_k.
    fall_nats: from the first to the last point, summed over its occurrences.
    share: of the fall of all token ids, which add up to 1, its interval normal, over all documents; None where the text
        as a whole has no fall.
    """
    run_ids = [run.run_id for run in runs]
    rows = ask_once(
        connection, "improvements", run_ids=run_ids, ln_sizes=x_T.tolist(), k=k, ties=ties.value
    ).to_pylist()
    found, texts = list[Record](), {row["token_id"]: row["text"] for row in rows}
    for row in rows:
        slope_stderr, share_stderr = row.pop("slope_stderr"), row.pop("share_stderr")
        if row["n_tokens"] >= least:
            row["slope"] = from_stderr(row["slope"], slope_stderr, row["n_documents"] - 1)
            trend, row["share"] = trend_of(row["slope"], row["fall_nats"]), from_stderr(row["share"], share_stderr)
            found.append({"kind": "token", "k": k, **flat(row), "trend": trend, "n_types": 1})
    rarer = [row["share"] for row in rows if row["n_tokens"] < least]
    if rarer:
        share = None if None in rarer else sum(rarer)
        found.append({"kind": "rarer", "k": k, "share": share, "n_types": len(rarer)})
    return found, texts
