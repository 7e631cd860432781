"""Shows improvement by token: tables of the token ids that improve and that get worse, and in words how many do."""

from collections.abc import Iterator
from typing import Final

from rbpx.analyses.improve.analysis import Improvement, TokenImprovement, Trend, analyse, keep
from rbpx.analyses.question import Question, each, one_by_one
from rbpx.display.view import Table, View, decimal, ends, text, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, decimals, legible, number

_OTHERS: Final = {
    Trend.unclear: "show no measurable change",
    Trend.turns: "have a slope that disagrees with their ends",
    Trend.unknown: "are in one document only, so they have no interval",
}


@one_by_one
def tables(result: Improvement) -> Iterator[Table]:
    """The token ids with the largest share of the improvement, then those that got worse."""
    group, n, note = result.group, result.top, f"k = {result.k}; ties {result.group.ties.value}."
    better, worse = result.of_trend(Trend.improves)[:n], result.of_trend(Trend.worsens)[: -n - 1 : -1]
    yield BETTER.table("What improves, by share", better, group.title, note=note)
    yield WORSE.table("What gets worse, the worst first", worse, group.title, note=note)


@one_by_one
def sentences(result: Improvement) -> Iterator[str]:
    """How many token ids improve, get worse or do neither, and what the rarer ones make up."""
    n_of = {trend: len(result.of_trend(trend)) for trend in Trend}
    others = "".join(f", {n_of[trend]:,} {words}" for trend, words in _OTHERS.items() if n_of[trend])
    left = f" {result.n_left_out:,} tokens were not scored at every size and are left out." if result.n_left_out else ""
    rarer = f"those make up {_share(result.rarer_share)} of the improvement"
    if result.rarer_share is None:
        rarer = "the text as a whole is not predicted better, so nothing has a share"
    yield (
        f"{len(result.tokens):,} token ids are scored at least {result.least} times, {result.n_rarer:,} less often; "
        f"{rarer}. From {result.group.runs[0].size} to {result.group.runs[-1].size} {n_of[Trend.improves]:,} improve, "
        f"{n_of[Trend.worsens]:,} get worse{others}.{left}"
    )


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2%}"


BETTER: Final = View[TokenImprovement](
    "better",
    text("token", "text", lambda token: legible(token.text, token.token_id)),
    decimal("id", "token_id", lambda token: token.token_id, 0, spare=2),
    whole("times", "n_tokens", lambda token: token.n_tokens),
    whole("documents", "n_documents", lambda token: token.n_documents, spare=3),
    with_ends(
        "slope", "slope", lambda token: token.slope, decimals(3),
        "mean of d nats / d ln S over the occurrences of a token id; an id is listed where its 95 % interval does "
        "not contain 0 (chance alone lists 1 in 20 of those without a change) and the nats agree",
    ),
    ends(
        "smallest_nats largest_nats", lambda token: (token.smallest_nats, token.largest_nats), number, "nats",
        "means at the smallest and the largest size",
    ),
    ends(
        "smallest_rbp largest_rbp", lambda token: (token.smallest_rbp, token.largest_rbp),
        decimals(2), "RBP_k", "at the smallest and the largest size", 1,
    ),
    with_ends(
        "share", "share", lambda token: token.share, _share,
        "of the total fall in nats from the smallest to the largest size; --format json has all token ids",
        ends_spare=4,
    ),
)  # fmt: skip
WORSE: Final = View("worse", BETTER.columns)
QUESTION = Question(each(analyse), keep, tables, sentences, says_all=True)
