"""The tables of learning: which columns each has, and what they mean."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from rbpx.display.view import Column, View, decimal, ends, error, magnitude, share, state, text, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, decimals, legible, number, short
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.learning.kinds import Kind
from rbpx.laws.trajectory import History
from rbpx.questions.learning.carriers import Carrier, Chosen
from rbpx.questions.learning.forecast import BASELINE, Next, Reached, Scored
from rbpx.questions.learning.hits import At, HitTimes, Tail
from rbpx.questions.learning.improvements import TokenImprovement
from rbpx.questions.learning.losses import Bin, Gap, KindShare, World
from rbpx.questions.learning.orders import Pair
from rbpx.runs.group import Run
from rbpx.status import Status

KINDS: Final = {
    Kind.known: "always known",
    Kind.turns: "not monotone",
    Kind.learned: "learned",
    Kind.before: "learned before",
    Kind.after: "learned after",
    Kind.forgotten: "forgotten",
    Kind.never: "never learned",
}
"""Each kind of `Kind` in a word or two."""


OFTEN: Final = {
    History.learned: "misses that became hits and stayed so",
    History.forgotten: "hits that became misses and stayed so",
    History.unstable: "changed more than once",
}
"""The histories of which tokens are named."""


class Overview(NamedTuple):
    """A group: its runs, one for each point, and its tokens."""

    runs: tuple[Run, ...]
    n_tokens: int
    n_left_out: int
    status: Status


class Named(NamedTuple):
    """A class of tokens, a token of the future or a document, with its text or what it is called."""

    of: Carrier
    name: str


class Likely(NamedTuple):
    """A miss that is likely to become a hit, with its text."""

    of: Next
    name: str


class Often(NamedTuple):
    """The token ids that have each history as often as others at their place, in words."""

    k: int
    said: Mapping[History, str | None]


class Loading(NamedTuple):
    """A training and how its order goes with each factor."""

    title: str
    loadings: tuple[float, ...]


def _part(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1%}"


def _hundredths(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2%}"


_three = decimals(3)

GROUP: Final = View[Overview](
    "group",
    whole("points", "n_points", lambda row: len(row.runs)),
    ends("{x}_least {x}_greatest", lambda row: (row.runs[0].x, row.runs[-1].x), short, "{x}"),
    whole("tokens", "n_tokens", lambda row: row.n_tokens),
    whole("left out", "n_left_out", lambda row: row.n_left_out, "tokens of the last run that another one lacks", 1),
    state(lambda row: row.status),
)  # fmt: skip
BETTER: Final = View[TokenImprovement](
    "better",
    text("token", "text", lambda token: legible(token.text, token.token_id)),
    decimal("id", "token_id", lambda token: token.token_id, 0, spare=2),
    whole("times", "n_tokens", lambda token: token.n_tokens),
    whole("documents", "n_documents", lambda token: token.n_documents, spare=3),
    with_ends(
        "slope", "slope", lambda token: token.slope, decimals(3),
        "mean of d nats / d ln {x} over the occurrences of a token id; an id is listed where its 95 % interval does "
        "not contain 0 (chance alone lists 1 in 20 of those without a change) and the nats agree",
    ),
    ends(
        "smallest_nats largest_nats", lambda token: (token.smallest_nats, token.largest_nats), number, "nats",
        "means at the first and the last point",
    ),
    ends(
        "smallest_rbp largest_rbp", lambda token: (token.smallest_rbp, token.largest_rbp),
        decimals(2), "RBP_k", "at the first and the last point", 1,
    ),
    with_ends(
        "share", "share", lambda token: token.share, _hundredths,
        "of the total fall in nats from the first to the last point; --format json has all token ids",
        ends_spare=4,
    ),
)  # fmt: skip
WORSE: Final = View("worse", BETTER.columns)
KIND: Final = View[KindShare](
    "kinds",
    text("kind", "token_kind", lambda row: KINDS[row.kind]),
    whole("tokens", "n_tokens", lambda row: row.n_tokens),
    share("share", "share", lambda row: row.share),
    ends(
        "first_nats last_nats", lambda row: (row.first_nats, row.last_nats), decimals(2), "nats",
        "means at the first and the last point", 1,
    ),
    with_ends(
        "of the fall", "of_fall", lambda row: row.of_fall, _part,
        "share in the fall of cross-entropy from the first to the last point; by a kind's definition its sign",
    ),
)  # fmt: skip
SPECTRUM: Final = View[Bin](
    "spectrum",
    ends("lo hi", lambda row: (row.lo, row.hi), short, "time", "{x}; an open end is beyond the points"),
    whole("tokens", "n_tokens", lambda row: row.n_tokens, spare=1),
    with_ends(
        "nats", "nats", lambda row: row.nats, decimals(4),
        "what their sigmoids fall from the first to the last point, summed, a token of the text",
    ),
    decimal("width", "width", lambda row: row.width, 2, "median in ln {x}, weighted by falls"),
    share(
        "sharpest", "sharp", lambda row: row.sharp, 0,
        "of these falls with the least width there is: a step within one gap, whose width is hidden", 2,
    ),
)  # fmt: skip
SLOPES: Final = View[Gap](
    "slopes",
    magnitude("left out", "out", lambda row: row.out, "the {x} that the fits were made without"),
    ends("lo hi", lambda row: (row.lo, row.hi), short, "between"),
    with_ends(
        "measured", "measured", lambda row: row.measured, _three, "nats per unit of ln {x}, over documents",
        ends_spare=2,
    ),
    decimal("sigmoids", "rebuilt_sigmoid", lambda row: row.rebuilt["sigmoid"], 3, "of the sum of single sigmoids"),
    ends(
        "error_lo error_hi", lambda row: (row.error.lo, row.error.hi), _three, "error 95 %",
        "of the sigmoids, less what is measured", 1,
    ),
    decimal("powers", "rebuilt_power", lambda row: row.rebuilt["power"], 3, "of the sum of single power laws"),
    decimal("line", "rebuilt_line", lambda row: row.rebuilt["line"], 3, "of a line between neighbours", 3),
)  # fmt: skip


def _r2(curve: str, heading: str, means: str = "") -> Sequence[Column[World]]:
    return with_ends(heading, f"r2_{curve}", lambda row: row.r2[curve], _three, means, ends_spare=2)


def _mse(curve: str, heading: str, means: str = "") -> Sequence[Column[World]]:
    return with_ends(heading, f"mse_{curve}", lambda row: row.mse[curve], _three, means, ends_spare=3)


WORLDS: Final = View[World](
    "worlds",
    text(
        "world", "name", lambda row: row.name,
        "drawn: every token falls as its own smooth power law, with noise as large as measured",
    ),
    decimal(
        "identity", "in_fit_r2", lambda row: row.in_fit_r2, 3,
        "R² of slopes by sigmoids that are fitted to all points: high by construction, so it shows nothing", 1,
    ),
    _r2("sigmoid", "R² sigmoids", "of the slopes beside points that were left out"),
    _r2("power", "R² powers"),
    _r2("line", "R² line", "which knows no token"),
    _mse("sigmoid", "MSE sigmoids", "of single tokens at points that were left out, nats²"),
    _mse("power", "MSE powers"),
    with_ends(
        "nearer", "beats", lambda row: row.beats, _part,
        "share of tokens that their sigmoid predicts better there than their power law", ends_spare=3,
    ),
)  # fmt: skip


def _of_history(history: History) -> Column[HitTimes]:
    return share(history.name, history.name, lambda row: row.shares[history], means=OFTEN.get(history, ""))


def _id(history: History, spare: int = 0) -> Column[Often]:
    return text(history.name, history.name, lambda row: row.said[history], spare=spare)


HISTORIES: Final = View[HitTimes](
    "histories",
    whole("k", "k", lambda row: row.k),
    *map(_of_history, History),
    magnitude("half settled", "half_settled_at", lambda row: row.half_settled, "{x} from which half never change", 1),
)
IDS: Final = View[Often](
    "ids",
    whole("k", "k", lambda row: row.k),
    _id(History.learned),
    _id(History.forgotten),
    _id(History.unstable, spare=1),
)
POINTS: Final = View[tuple[HitTimes, At]](
    "times",
    whole("k", "k", lambda row: row[0].k),
    magnitude("{x}", "x", lambda row: row[1].x),
    with_ends(
        "learned", "learned", lambda row: row[1].learned, _part,
        "share of tokens that are hits from here on, so whose time lies before; at the last point all hits are",
    ),
    share(
        "between", "between", lambda row: row[1].between,
        means="by Turnbull's estimator, if a time is only known to lie between the first hit and the first lasting one",
        spare=1,
    ),
    share("RBP_k", "rbp", lambda row: row[1].rbp),
    share("settled", "settled", lambda row: row[1].settled, means="tokens that never change from here on", spare=1),
    share("passing", "passing", lambda row: row[1].passing, means="hits that are lost again: RBP_k less learned"),
)  # fmt: skip


def _tail(
    heading: str, key: str, of: Callable[[Tail], Estimate], means: str = "", in_percent: bool = False
) -> Sequence[Column[HitTimes]]:
    return with_ends(heading, key, lambda row: of(row.tail), _part if in_percent else _three, means, ends_spare=2)


TAILS: Final = View[HitTimes](
    "tails",
    whole("k", "k", lambda row: row.k),
    magnitude("from {x}", "x", lambda row: row.tail.x, "where the tail begins; it ends at the last point but one", 3),
    _tail("c", "c", lambda tail: tail.c, "what is not learned yet falls as {x}^-c, if all is some day"),
    _tail("never", "never", lambda tail: tail.never, "tokens that are never learned, if others are by a power", True),
    _tail("c of others", "c_with_never", lambda tail: tail.c_with_never),
    _tail("α", "alpha", lambda tail: tail.alpha, "of −ln RBP_k, through the same points"),
    _tail("α of times", "alpha_of_tail", lambda tail: tail.alpha_of_tail, "of −ln(1 − what the tail leaves)"),
    decimal("factor", "factor", lambda row: row.tail.factor, 2, "α over c if misses fall as a power", 3),
    decimal(
        "bend of misses", "misses_rms", lambda row: row.tail.misses_rms, 3,
        "residuals of ln(1 − RBP_k) about a line, over its fall", 1,
    ),
    decimal("of the law", "law_rms", lambda row: row.tail.law_rms, 3, "the same of ln(−ln RBP_k)", 1),
    error(
        "misses", "misses_error", lambda row: row.tail.misses_error,
        "relative error of −ln RBP_k at the last point, by a power law of the misses before it", 1,
    ),
    error("law", "law_error", lambda row: row.tail.law_error, "by the law of −ln RBP_k", 1),
    error("times", "tail_error", lambda row: row.tail.tail_error, "by the tail of the times", 1),
    state(lambda row: row.tail.status),
)  # fmt: skip
CARRIERS: Final = View[Named](
    "carriers",
    text("by", "by", lambda row: row.of.by, "history: of hits before these two points, so no value counts twice"),
    text("tokens", "name", lambda row: row.name),
    whole("times", "n_tokens", lambda row: row.of.n_tokens),
    share("of tokens", "of_tokens", lambda row: row.of.of_tokens),
    decimal("slope", "slope", lambda row: row.of.slope, 3, "mean of −d nats / d ln {x} over them", 1),
    with_ends("of the slope", "share", lambda row: row.of.share, _part, "those of a kind of class sum to 1"),
)  # fmt: skip
CHOSEN: Final = View[Chosen](
    "chosen",
    text("listed by", "by", lambda row: row.by),
    whole("listed", "n", lambda row: row.n),
    share("of tokens", "of_tokens", lambda row: row.of_tokens),
    share("of the slope", "share", lambda row: row.share),
    share(
        "chosen again", "again", lambda row: row.again,
        means="the share of as many that one half chooses, by the other half, which chance has not raised",
    ),
)  # fmt: skip
LEARNERS: Final = View[Scored](
    "learners",
    text("known of a token", "name", lambda row: row.name),
    with_ends("log loss", "log_loss_nats", lambda row: row.judgement["log_loss_nats"], decimals(4), ends_spare=3),
    with_ends(
        "gain", "gain", lambda row: row.gain, decimals(4),
        f"log loss that it saves beside {BASELINE} alone, nats a token, in pairs", ends_spare=1,
    ),
    with_ends("Brier", "brier", lambda row: row.brier, decimals(4), "mean squared error of chances", ends_spare=3),
    with_ends("AUC", "auc", lambda row: row.judgement["auc"], _three, ends_spare=3),
    with_ends("excess", "excess", lambda row: row.judgement["excess"], _three, "mean chance less hits", 2, 4),
    share("found", "found", lambda row: row.found, 0, "new hits among the tenth that it takes to be likeliest", 1),
    state(lambda row: row.status),
)  # fmt: skip
REACHED: Final = View[Reached](
    "reached",
    magnitude("{x}", "x", lambda row: row.x),
    share("expected", "expected", lambda row: row.expected, means="share of the misses that are hits by then"),
    with_ends("there are", "observed", lambda row: row.observed, _part),
)  # fmt: skip
NEXT: Final = View[Likely](
    "next",
    whole("document", "doc_id", lambda row: row.of.doc_id),
    whole("position", "position", lambda row: row.of.position),
    text("token", "text", lambda row: row.name),
    decimal("nats", "nats", lambda row: row.of.nats, 2),
    whole("rank", "rank", lambda row: row.of.rank),
    share("chance", "chance", lambda row: row.of.chance, means="of being a hit at ten times {x}"),
    with_ends("time", "time", lambda row: row.of.time, short, "{x} of half of such tokens, and of 95 %"),
)  # fmt: skip
PAIRS: Final = View[Pair](
    "pairs",
    text("one", "one", lambda row: row.one),
    text("other", "other", lambda row: row.other),
    text("apart by", "relation", lambda row: row.relation, spare=2),
    whole("tokens", "n_tokens", lambda row: row.n_tokens, spare=2),
    with_ends("ρ", "rho", lambda row: row.rho, _three, "Spearman's correlation of their times", ends_spare=1),
    decimal("noise", "ceiling", lambda row: row.ceiling, 3, "ρ of one order that is seen twice, by every other point"),
    decimal("ρ of that", "of_ceiling", lambda row: row.of_ceiling.value, 3, "1 where both learn in one order", 1),
    with_ends("within ids", "within", lambda row: row.within, _three, "ρ within each token id", ends_spare=3),
    ends(
        "frequency_one frequency_other", lambda row: row.frequency, decimals(2), "frequency",
        "correlation of both with how rare the token id is in this text", 1,
    ),
)  # fmt: skip


def _loading(at: int) -> Column[Loading]:
    heading = f"factor {at + 1}"
    return decimal(heading, f"factor_{at + 1}", lambda row: row.loadings[at] if at < len(row.loadings) else None, 2)


FACTORS: Final = View[Loading]("factors", text("training", "title", lambda row: row.title), *map(_loading, range(3)))
