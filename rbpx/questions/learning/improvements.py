"""Which token ids are predicted better along the axis.

The slope of -logprob on ln x is taken at each occurrence, then averaged over those of a token id. Documents are the
sampling units, so standard errors are clustered by document.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import duckdb

from rbpx.laws.intervals.estimate import Estimate, from_stderr
from rbpx.laws.numeric import Floats
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


@dataclass(frozen=True)
class TokenImprovement:
    """One token id; intervals are at 95 % and None where only one document contains it.

    Attributes:
        token_id: in the tokenizer of the family.
        text: None where it is not in the store.
        n_tokens: how often it is scored.
        n_documents: documents in which it is.
        slope: mean over its occurrences of d nats / d ln x, below 0 where later ones are better; its interval is of
            Student's t over the documents that contain it.
        smallest_nats: mean of -logprob at the first point.
        largest_nats: at the last.
        smallest_rbp: RBP_k at the first point.
        largest_rbp: at the last.
        fall_nats: from the first to the last point, summed over its occurrences.
        share: of the fall of all token ids, which add up to 1, its interval normal, over all documents; None where the
            text as a whole has no fall.
    """

    token_id: int
    text: str | None
    n_tokens: int
    n_documents: int
    slope: Estimate
    smallest_nats: float
    largest_nats: float
    smallest_rbp: float
    largest_rbp: float
    fall_nats: float
    share: Estimate

    @property
    def rises(self) -> bool | None:
        """Whether later points predict it worse, by the sign of the slope; None where the fall disagrees."""
        slope = self.slope.value or 0.0
        return slope > 0 if slope * self.fall_nats < 0 else None

    @property
    def trend(self) -> Trend:
        """Whether later points predict it better, as far as these documents show."""
        if self.slope.ends is None:
            return Trend.unknown
        if self.slope.ends[0] <= 0 <= self.slope.ends[1]:
            return Trend.unclear
        return {None: Trend.turns, True: Trend.worsens, False: Trend.improves}[self.rises]


@dataclass(frozen=True, eq=False)
class Improvements:
    """The token ids of one group, those whose nats fall furthest first.

    Attributes:
        k: of RBP_k.
        least: how often a token id is scored at least, to be in `tokens`.
        top: how many to print.
        tokens: those scored so often.
        n_rarer: token ids that are scored less often.
        rarer_share: theirs of the whole improvement; None where the text as a whole has no fall.
        has_intervals: whether there are several documents.
    """

    k: int
    least: int
    top: int
    tokens: tuple[TokenImprovement, ...]
    n_rarer: int
    rarer_share: float | None
    has_intervals: bool

    def of_trend(self, trend: Trend) -> list[TokenImprovement]:
        """The token ids with a trend; by the sign of the slope alone where one document leaves no intervals."""
        if self.has_intervals:
            return [token for token in self.tokens if token.trend is trend]
        rises = {Trend.improves: False, Trend.worsens: True}
        return [token for token in self.tokens if trend in rises and token.rises is rises[trend]]


def improvements(
    connection: duckdb.DuckDBPyConnection, group: Group, runs: Sequence[Run], x_T: Floats, k: int, least: int, top: int
) -> Improvements:
    """Find which token ids improve along the runs, one a point, that have ln x there [T] and tokens in common."""
    asked = {"run_ids": [run.run_id for run in runs], "ln_sizes": x_T.tolist(), "k": k, "ties": group.ties.value}
    rows = ask(connection, "improvements", **asked).to_pylist()
    rarer = [row["share"] for row in rows if row["n_tokens"] < least]
    share = None if rows[0]["share"] is None else sum(rarer)
    tokens = tuple(_token(row) for row in rows if row["n_tokens"] >= least)
    return Improvements(k, least, top, tokens, len(rarer), share, group.n_resampled > 1)


def _token(row: Record) -> TokenImprovement:
    row["slope"] = from_stderr(row["slope"], row.pop("slope_stderr"), row["n_documents"] - 1)
    row["share"] = from_stderr(row["share"], row.pop("share_stderr"))
    return TokenImprovement(**row)
