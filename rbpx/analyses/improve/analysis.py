"""Finds which token ids the larger models of a group predict better (verb improve).

The slope of -logprob on ln S is taken at each occurrence, then averaged over those of a token id. Documents are the
sampling units, so standard errors are clustered by document.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import duckdb

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.groups.fits import alike
from rbpx.groups.group import Group
from rbpx.laws.intervals.estimate import Estimate, flat, from_stderr
from rbpx.store.sql import ask
from rbpx.store.store import Record, Store


class Trend(StrEnum):
    """What the slope of a token id, and its fall from the smallest to the largest size, say.

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
        slope: mean over its occurrences of d nats / d ln S, below 0 where larger models are better; its interval is of
            Student's t over the documents that contain it.
        smallest_nats: mean of -logprob at the smallest size.
        largest_nats: at the largest.
        smallest_rbp: RBP_k at the smallest size.
        largest_rbp: at the largest.
        fall_nats: from the smallest to the largest size, summed over its occurrences.
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
        """Whether larger models predict it worse, by the sign of the slope; None where the fall disagrees."""
        slope = self.slope.value or 0.0
        return slope > 0 if slope * self.fall_nats < 0 else None

    @property
    def trend(self) -> Trend:
        """Whether larger models predict it better, as far as these documents show."""
        if self.slope.ends is None:
            return Trend.unknown
        if self.slope.ends[0] <= 0 <= self.slope.ends[1]:
            return Trend.unclear
        return {None: Trend.turns, True: Trend.worsens, False: Trend.improves}[self.rises]


@dataclass(frozen=True, eq=False)
class Improvement:
    """The token ids of one group, those whose nats fall furthest first.

    Attributes:
        k: of RBP_k.
        least: how often a token id is scored at least, to be in `tokens`.
        top: how many to print.
        tokens: those scored so often.
        n_rarer: token ids that are scored less often.
        rarer_share: theirs of the whole improvement.
        n_left_out: scored tokens of the largest size that were not scored at every size.
    """

    group: Group
    k: int
    least: int
    top: int
    tokens: tuple[TokenImprovement, ...]
    n_rarer: int
    rarer_share: float | None
    n_left_out: int

    def of_trend(self, trend: Trend) -> list[TokenImprovement]:
        """The token ids with a trend; by the sign of the slope alone where one document leaves no intervals."""
        if self.group.n_resampled > 1:
            return [token for token in self.tokens if token.trend is trend]
        rises = {Trend.improves: False, Trend.worsens: True}
        return [token for token in self.tokens if trend in rises and token.rises is rises[trend]]


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Improvement:
    """Find which token ids improve with size in a measured group.

    Raises:
        RbpxError: more than one k is requested, or the sizes share no token.
    """
    if request.k.is_log or len(request.k.listed((1,))) != 1:
        raise RbpxError(f"k={request.typed['k']} is not one k; improve counts hits at one, as in k=1")
    (k,) = request.k.grid(group.vocab_size, (1,))
    run_ids, sizes = [run.run_id for run in group.runs], [math.log(run.non_embedding_params) for run in group.runs]
    rows = ask(connection, "improvements", run_ids=run_ids, ln_sizes=sizes, k=k, ties=group.ties.value).to_pylist()
    if not rows:
        raise RbpxError(f"the sizes of {group.title} have no token in common; choose sizes of one tokenizer with size=")
    rarer = [row for row in rows if row["n_tokens"] < request.least]
    return Improvement(
        group=group,
        k=k,
        least=request.least,
        top=request.top,
        n_left_out=(group.runs[-1].n_tokens or 0) - sum(row["n_tokens"] for row in rows),
        n_rarer=len(rarer),
        rarer_share=None if rows[0]["share"] is None else sum(row["share"] for row in rarer),
        tokens=tuple(_token(row) for row in rows if row["n_tokens"] >= request.least),
    )


def _token(row: Record) -> TokenImprovement:
    row["slope"] = from_stderr(row["slope"], row.pop("slope_stderr"), row["n_documents"] - 1)
    row["share"] = from_stderr(row["share"], row.pop("share_stderr"))
    return TokenImprovement(**row)


def keep(store: Store, improvement: Improvement) -> list[Record]:
    """A row for each token id, and one for all rarer ones, so that shares add up to 1; no law is stored."""
    names: Record = {**improvement.group.names(), "k": improvement.k}
    rows = [
        {"kind": "token", **names, **flat(vars(token)), "trend": token.trend.value, "n_types": 1}
        for token in improvement.tokens
    ]
    if improvement.n_rarer:
        about = {"share": improvement.rarer_share, "trend": None, "n_types": improvement.n_rarer}
        rows.append({"kind": "rarer", **names, **about})
    return alike(rows)
