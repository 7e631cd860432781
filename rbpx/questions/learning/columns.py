"""The tables of learning: which columns each has of rows of one kind, and what they mean."""

from collections.abc import Callable, Sequence
from typing import Final

from rbpx.display.view import Column, View, decimal, ends, error, magnitude, share, state, text, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, decimals, legible, number, short
from rbpx.laws.trajectory import History
from rbpx.questions.learning.forecast import BASELINE
from rbpx.store.store import Record

_KINDS: Final = {
    "known": "always known", "turns": "not monotone", "before": "learned before", "after": "learned after",
    "never": "never learned",
}  # fmt: skip
"""Of `rbpx.laws.learning.kinds.Kind`, those whose names do not say enough."""

OFTEN: Final = {
    "learned": "misses that became hits and stayed so",
    "forgotten": "hits that became misses and stayed so",
    "unstable": "changed more than once",
}
"""The histories of which tokens are named."""


def _percents(digits: int) -> Callable[[float | None], str]:
    """How shares with so many decimals are written."""
    return lambda value: UNKNOWN if value is None else f"{value:.{digits}%}"


def _name(row: Record) -> str:
    """What a class of tokens is called: a token by its text, a document by its number."""
    if row["by"] == "token":
        return legible(row["text"], row["number"])
    return f"document {row['number']}" if row["by"] == "document" else str(row["name"])


_three, _part = decimals(3), _percents(1)
_TEXT: Final[Column[Record]] = text("token", "text", lambda row: legible(row["text"], row["token_id"]))

GROUP: Final = View[Record](
    "group",
    whole("points", "n_points"),
    ends("{x}_least {x}_greatest", lambda row: (row["first"], row["last"]), short, "{x}"),
    whole("tokens", "n_tokens"),
    whole("left out", "n_left_out", means="tokens of the last run that another one lacks", spare=1),
    state(),
)
BETTER: Final = View[Record](
    "better",
    _TEXT,
    decimal("id", "token_id", digits=0, spare=2),
    whole("times", "n_tokens"),
    whole("documents", "n_documents", spare=3),
    with_ends(
        "slope", "slope", None, _three,
        "mean of d nats / d ln {x} over the occurrences of a token id; an id is listed where its 95 % interval does "
        "not contain 0 (chance alone lists 1 in 20 of those without a change) and the nats agree",
    ),
    ends("smallest_nats largest_nats", None, number, "nats", "means at the first and the last point"),
    ends("smallest_rbp largest_rbp", None, decimals(2), "RBP_k", "at the first and the last point", 1),
    with_ends("share", "share", None, _percents(2), "of the fall in nats; format=json has all ids", ends_spare=4),
)  # fmt: skip
WORSE: Final = View("worse", BETTER.columns)
KIND: Final = View[Record](
    "kinds",
    text("kind", "token_kind", lambda row: _KINDS.get(row["name"], row["name"])),
    whole("tokens", "n_tokens"),
    share("share", "share"),
    ends("first_nats last_nats", None, decimals(2), "nats", "means at the first and the last point", 1),
    with_ends(
        "of the fall", "of_fall", None, _part, "share in the fall of cross-entropy; its sign follows from the kind"
    ),
)
NATS: Final[Sequence[Column[Record]]] = with_ends(
    "nats",
    "nats",
    None,
    decimals(4),
    "what their sigmoids fall from the first to the last point, summed, a token of the text",
)
SPECTRUM: Final = View[Record](
    "spectrum",
    ends("lo hi", None, short, "time", "{x}; an open end is beyond the points"),
    whole("tokens", "n_tokens", spare=1),
    NATS,
    decimal("width", "width", None, 2, "median in ln {x}, weighted by falls"),
    share("sharpest", "sharp", None, 0, "of these falls, steps within one gap, which hides their width", 2),
)
SLOPES: Final = View[Record](
    "slopes",
    magnitude("left out", "out", means="the {x} that the fits were made without"),
    ends("lo hi", None, short, "between"),
    with_ends("measured", "measured", None, _three, "nats per unit of ln {x}, over documents", ends_spare=2),
    decimal("sigmoids", "rebuilt_sigmoid", None, 3, "of the sum of single sigmoids"),
    ends("error_lo error_hi", None, _three, "error 95 %", "of the sigmoids, less what is measured", 1),
    decimal("powers", "rebuilt_power", None, 3, "of the sum of single power laws"),
    decimal("line", "rebuilt_line", None, 3, "of a line between neighbours", 3),
)
WORLDS: Final = View[Record](
    "worlds",
    text("world", "name", means="drawn: each token falls as its own smooth power law, with noise as large as measured"),
    decimal("identity", "in_fit_r2", None, 3, "R² by sigmoids of all points: high by construction, no evidence", 1),
    with_ends("R² sigmoids", "r2_sigmoid", None, _three, "of the slopes beside points that were left out", 0, 2),
    with_ends("R² powers", "r2_power", None, _three, ends_spare=2),
    with_ends("R² line", "r2_line", None, _three, "which knows no token", 0, 2),
    with_ends("MSE sigmoids", "mse_sigmoid", None, _three, "of single tokens at points left out, nats²", 0, 3),
    with_ends("MSE powers", "mse_power", None, _three, ends_spare=3),
    with_ends("nearer", "beats", None, _part, "tokens whose sigmoid is nearer there than their power law", 0, 3),
)
HISTORIES: Final = View[Record](
    "histories",
    whole("k", "k"),
    [share(each.name, each.name, means=OFTEN.get(each.name, "")) for each in History],
    magnitude("half settled", "half_settled_at", None, "{x} from which half never change", 1),
)
IDS: Final = View[Record]("ids", whole("k", "k"), [text(each, each, spare=int(each == "unstable")) for each in OFTEN])
POINTS: Final = View[Record](
    "times",
    whole("k", "k"),
    magnitude("{x}", "x"),
    with_ends("learned", "learned", None, _part, "tokens that are hits from here on; at the last point all hits are"),
    share("between", "between", means="by Turnbull's estimator, of times from first hit to first lasting one", spare=1),
    share("RBP_k", "rbp"),
    share("settled", "settled", means="tokens that never change from here on", spare=1),
    share("passing", "passing", means="hits that are lost again: RBP_k less learned"),
)  # fmt: skip


def _tail(heading: str, key: str, means: str = "") -> Sequence[Column[Record]]:
    return with_ends(heading, key, None, _part if key == "never" else _three, means, ends_spare=2)


TAILS: Final = View[Record](
    "tails",
    whole("k", "k"),
    magnitude("from {x}", "x", None, "where the tail begins; it ends at the last point but one", 3),
    _tail("c", "c", "what is not learned yet falls as {x}^-c, if all is some day"),
    _tail("never", "never", "tokens that are never learned, if others are by a power"),
    _tail("c of others", "c_with_never"),
    _tail("α", "alpha", "of −ln RBP_k, through the same points"),
    _tail("α of times", "alpha_of_tail", "of −ln(1 − what the tail leaves)"),
    decimal("factor", "factor", None, 2, "α over c if misses fall as a power", 3),
    decimal("bend of misses", "misses_rms", None, 3, "residuals of ln(1 − RBP_k) about a line, over its fall", 1),
    decimal("of the law", "law_rms", None, 3, "the same of ln(−ln RBP_k)", 1),
    error("misses", "misses_error", None, "error of −ln RBP_k at the last point, by a power law of misses before", 1),
    error("law", "law_error", None, "by the law of −ln RBP_k", 1),
    error("times", "tail_error", None, "by the tail of the times", 1),
    state(),
)  # fmt: skip
CARRIERS: Final = View[Record](
    "carriers",
    text("by", "by", None, "history: of hits before these two points, so no value counts twice"),
    text("tokens", "name", _name),
    whole("times", "n_tokens"),
    share("of tokens", "of_tokens"),
    decimal("slope", "slope", None, 3, "mean of −d nats / d ln {x} over them", 1),
    with_ends("of the slope", "share", None, _part, "those of a kind of class sum to 1"),
)
CHOSEN: Final = View[Record](
    "chosen",
    text("listed by", "by"),
    whole("listed", "n"),
    share("of tokens", "of_tokens"),
    share("of the slope", "share"),
    share("chosen again", "again", means="share of as many chosen by one half in the other: not raised by chance"),
)
LEARNERS: Final = View[Record](
    "learners",
    text("known of a token", "name"),
    with_ends("log loss", "log_loss_nats", None, decimals(4), ends_spare=3),
    with_ends("gain", "gain", None, number, f"log loss saved beside {BASELINE} alone, nats a token, in pairs", 0, 1),
    with_ends("Brier", "brier", None, decimals(4), "mean squared error of chances", ends_spare=3),
    with_ends("AUC", "auc", None, _three, ends_spare=3),
    with_ends("excess", "excess", None, _three, "mean chance less hits", 2, 4),
    share("found", "found", None, 0, "new hits among the tenth that it takes to be likeliest", 1),
    state(),
)  # fmt: skip
REACHED: Final = View[Record](
    "reached",
    magnitude("{x}", "x"),
    share("expected", "expected", means="share of the misses that are hits by then"),
    with_ends("there are", "observed", None, _part),
)
NEXT: Final = View[Record](
    "next",
    whole("document", "doc_id"),
    whole("position", "position"),
    _TEXT,
    decimal("nats", "nats", digits=2),
    whole("rank", "rank"),
    share("chance", "chance", means="of being a hit at ten times {x}"),
    with_ends("time", "time", None, short, "{x} of half of such tokens, and of 95 %"),
)
PAIRS: Final = View[Record](
    "pairs",
    text("one", "one"),
    text("other", "other"),
    text("apart by", "relation", spare=2),
    whole("tokens", "n_tokens", spare=2),
    with_ends("ρ", "rho", None, _three, "Spearman's correlation of their times", ends_spare=1),
    decimal("noise", "ceiling", None, 3, "ρ of one order that is seen twice, by every other point"),
    decimal("ρ of that", "of_ceiling", None, 3, "1 where both learn in one order", 1),
    with_ends("within ids", "within", None, _three, "ρ within each token id", ends_spare=3),
    ends("frequency_one frequency_other", None, decimals(2), "frequency", "ρ of both with how rare an id is here", 1),
)
FACTORS: Final = View[Record](
    "factors", text("training", "one"), [decimal(f"factor {n}", f"factor_{n}", None, 2) for n in (1, 2, 3)]
)

OF_KIND: Final = (
    (KIND, "What becomes of the losses of tokens", "kind"),
    (SPECTRUM, "Spectrum of times", "bin"),
    (SLOPES, "The slope rebuilt where points were left out", "slope"),
    (WORLDS, "Whether a good rebuild shows steps", "world"),
    (HISTORIES, "What becomes of hits", "tokens"),
    (IDS, "Token ids by how often (of how many)", "history"),
    (POINTS, "Times from hits", "point"),
    (TAILS, "The tail of the times and the law of RBP_k", "tail"),
    (CARRIERS, "Who carries the slope between the last two points", "carrier"),
    (CHOSEN, "What those listed owe to chance", "chosen"),
    (LEARNERS, "Which misses at k = {k} become hits", "learner"),
    (REACHED, "Misses that became hits", "reached"),
    (NEXT, "The likeliest to be learned next", "next"),
    (PAIRS, "Whether trainings learn in the same order", "pair"),
    (FACTORS, "What their orders have in common", "loading"),
)
"""The tables in order, each of rows of one kind."""
