"""Shows when tokens are learned: kinds, spectrum, slopes rebuilt, times from hits, and their tails."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rbpx.analyses.learning.analysis import Learning, analyse, keep
from rbpx.analyses.learning.hits import At, HitTimes, Tail
from rbpx.analyses.learning.losses import Bin, Gap, KindShare, World
from rbpx.analyses.learning.words import KINDS, sentences
from rbpx.analyses.question import Question
from rbpx.display.view import Column, Table, View, decimal, ends, error, magnitude, share, state, text, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, decimals, short
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.learning.curves import FEWEST
from rbpx.laws.trajectory import History

_Point = tuple[HitTimes, At]


def _part(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1%}"


KIND: Final = View[KindShare](
    "kinds",
    text("kind", "kind_of_token", lambda row: KINDS[row.kind]),
    whole("tokens", "n_tokens", lambda row: row.n_tokens),
    share("share", "share", lambda row: row.share),
    ends("first_nats last_nats", lambda row: (row.first_nats, row.last_nats), decimals(2), "nats", "means at the first and the last point", 1),
    with_ends("of the fall", "of_fall", lambda row: row.of_fall, _part, "share in the fall of cross-entropy from the first to the last point"),
)  # fmt: skip
SPECTRUM: Final = View[Bin](
    "spectrum",
    ends("lo hi", lambda row: (row.lo, row.hi), short, "time", "{x} between two points; an end that is missing lies outside of them"),
    whole("tokens", "n_tokens", lambda row: row.n_tokens, spare=1),
    with_ends("nats", "nats", lambda row: row.nats, decimals(4), "what these tokens fall in sum from the first to the last point, a token of the text"),
    decimal("width", "width", lambda row: row.width, 2, "median in ln {x}, weighted by falls"),
    share("sharpest", "sharp", lambda row: row.sharp, 0, "of these falls with the least width there is: a step within one gap", 2),
)  # fmt: skip
SLOPES: Final = View[Gap](
    "slopes",
    magnitude("left out", "out", lambda row: row.out, "the {x} that was left out of the fits"),
    ends("lo hi", lambda row: (row.lo, row.hi), short, "between"),
    with_ends("measured", "measured", lambda row: row.measured, decimals(3), "nats per unit of ln {x}, over documents", ends_spare=2),
    decimal("sigmoids", "rebuilt_sigmoid", lambda row: row.rebuilt["sigmoid"], 3, "the slope there of the sum of single sigmoids, fitted without that point"),
    ends("error_lo error_hi", lambda row: (row.error.lo, row.error.hi), decimals(3), "error 95 %", "sigmoids minus measured", 1),
    decimal("powers", "rebuilt_power", lambda row: row.rebuilt["power"], 3, "of the sum of single power laws"),
    decimal("line", "rebuilt_line", lambda row: row.rebuilt["line"], 3, "of a line from the point before to the point after", 3),
)  # fmt: skip


def _r2(curve: str, heading: str, means: str = "") -> Sequence[Column[World]]:
    return with_ends(heading, f"r2_{curve}", lambda row: row.r2[curve], decimals(3), means, ends_spare=2)


def _mse(curve: str, heading: str, means: str = "") -> Sequence[Column[World]]:
    return with_ends(heading, f"mse_{curve}", lambda row: row.mse[curve], decimals(3), means, ends_spare=3)


WORLDS: Final = View[World](
    "worlds",
    text("tokens", "name", lambda row: row.name, "drawn: a world in which every token falls as its own smooth power law, with noise as large as measured"),
    decimal("R² in the fits", "in_fit_r2", lambda row: row.in_fit_r2, 3, "an identity: sigmoids fitted to all points rebuild their own sum", 1),
    _r2("sigmoid", "R² sigmoids", "of the slopes beside points that were left out"),
    _r2("power", "powers"),
    _r2("line", "line"),
    _mse("sigmoid", "MSE sigmoids", "of single tokens at points that were left out, nats²"),
    _mse("power", "powers "),
    with_ends("sigmoid nearer", "beats", lambda row: row.beats, _part, "share of tokens that their sigmoid predicts better there than their power law", ends_spare=3),
)  # fmt: skip
POINTS: Final = View[_Point](
    "times",
    whole("k", "k", lambda row: row[0].k),
    magnitude("{x}", "x", lambda row: row[1].x),
    with_ends("learned", "learned", lambda row: row[1].learned, _part, "share of tokens that are hits from here on: their time lies before"),
    share("between", "between", lambda row: row[1].between, means="by Turnbull's estimator, if a token is only known to be learned between its first hit and its first lasting one", spare=1),
    share("RBP_k", "rbp", lambda row: row[1].rbp),
    share("passing", "passing", lambda row: row[1].passing, means="hits that are lost again: RBP_k less what is learned"),
)  # fmt: skip


def _tail(
    heading: str,
    key: str,
    of: Callable[[Tail], Estimate],
    means: str = "",
    how: Callable[[float | None], str] = decimals(3),
    spare: int = 0,
) -> Sequence[Column[HitTimes]]:
    return with_ends(heading, key, lambda row: of(row.tail), how, means, spare, max(spare, 2))


TAILS: Final = View[HitTimes](
    "tails",
    whole("k", "k", lambda row: row.k),
    magnitude("from {x}", "x", lambda row: row.tail.x, "where the tail begins", 3),
    _tail("c", "c", lambda tail: tail.c, "exponent of the times: what is not learned falls as {x}^-c if all is learned some day"),
    _tail("never", "never", lambda tail: tail.never, "share of tokens that are never learned, and the exponent of the others", _part),
    _tail("c of others", "c_with_never", lambda tail: tail.c_with_never),
    _tail("α", "alpha", lambda tail: tail.alpha, "of −ln RBP_k, through the same points"),
    _tail("α of the tail", "alpha_of_tail", lambda tail: tail.alpha_of_tail, "through −ln(1 − what the tail leaves)"),
    decimal("factor", "factor", lambda row: row.tail.factor, 2, "α over c where misses fall as a power law, in the middle", 3),
    decimal("bend of misses", "misses_rms", lambda row: row.tail.misses_rms, 3, "residuals of ln(1 − RBP_k) about a line, over its fall", 1),
    decimal("of the law", "law_rms", lambda row: row.tail.law_rms, 3, "the same of ln(−ln RBP_k): the less is the straighter", 1),
    error("misses", "misses_error", lambda row: row.tail.misses_error, "relative error of −ln RBP_k at the last point, by a power law of the misses through those before", 1),
    error("law", "law_error", lambda row: row.tail.law_error, "by the law of −ln RBP_k", 1),
    error("times", "tail_error", lambda row: row.tail.tail_error, "by the tail of the times before it", 1),
    state(lambda row: row.tail.status),
)  # fmt: skip
HISTORIES: Final = View[HitTimes](
    "histories",
    whole("k", "k", lambda row: row.k),
    *(share(each.name, each.name, lambda row, each=each: row.shares[each]) for each in History),  # type: ignore[misc]
)
GROUP: Final = View[Learning](
    "group",
    whole("points", "n_points", lambda row: len(row.runs)),
    whole("tokens", "n_tokens", lambda row: len(row.tokens.doc_M)),
    whole("left out", "n_left_out", lambda row: row.tokens.n_left_out, "tokens of the last run that another one did not score", 1),
    state(lambda row: row.status),
)  # fmt: skip


def tables(results: Sequence[Learning]) -> list[Table]:
    """The tables of each group."""
    return [table for result in results for table in _tables(result) if table.rows]


def _tables(result: Learning) -> Iterator[Table]:
    about, axis, losses = result.group.title, result.axis, result.losses
    note = f"Sigmoids need {FEWEST} points: four numbers are not identified by fewer."
    yield GROUP.table("Tokens and points", [result], about, axis, note if losses is None else "")
    if losses is not None:
        yield KIND.table("What becomes of each token's loss", losses.kinds, about, axis)
        yield SPECTRUM.table("Spectrum of times", losses.bins, about, axis)
        yield SLOPES.table("The slope rebuilt where a point was left out", losses.gaps, about, axis)
        yield WORLDS.table("Whether a good rebuild shows steps", losses.worlds, about, axis)
    yield HISTORIES.table("What becomes of hits", result.times, about, axis)
    yield POINTS.table("Times from hits", [(times, at) for times in result.times for at in times.points], about, axis)
    yield TAILS.table("The tail of times and the law of RBP_k", result.times, about, axis)


QUESTION = Question(analyse, keep, tables, sentences)
