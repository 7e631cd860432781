"""Says in sentences when tokens are learned, what rebuilds the slope, who carries it, and in which order."""

from collections.abc import Iterator
from typing import Final

from rbpx.display.section import interval, interval_of
from rbpx.display.vocabulary import AXES, short
from rbpx.laws.learning.kinds import Kind
from rbpx.laws.names import Axis
from rbpx.laws.trajectory import History
from rbpx.questions.learning.analysis import Learning, Result
from rbpx.questions.learning.carriers import Carriers
from rbpx.questions.learning.forecast import BASELINE, Forecast
from rbpx.questions.learning.hits import HitTimes
from rbpx.questions.learning.improvements import Improvements, Trend
from rbpx.questions.learning.losses import Losses
from rbpx.questions.learning.orders import Orders
from rbpx.questions.question import one_by_one
from rbpx.status import Status


@one_by_one
def sentences(result: Result) -> Iterator[str]:
    """What was found of one group, or of the orders on one text."""
    if isinstance(result, Orders):
        yield from _orders(result)
        return
    if result.improvements is not None:
        yield _improvements(result, result.improvements)
    if result.losses is not None:
        yield from _losses(result, result.losses)
    for times in result.times:
        yield from _tail(result, times)
    if result.carriers is not None:
        yield _carriers(result.carriers, result.axis.value)
    if result.forecast is not None:
        yield from _forecast(result, result.forecast)


_OTHERS: Final = {
    Trend.unclear: "show no measurable change",
    Trend.turns: "have a slope that disagrees with their ends",
    Trend.unknown: "are in one document only, so they have no interval",
}


def _improvements(result: Learning, of: Improvements) -> str:
    """How many token ids improve, get worse or do neither, and what the rarer ones make up."""
    n_of = {trend: len(of.of_trend(trend)) for trend in Trend}
    others = "".join(f", {n_of[trend]:,} {words}" for trend, words in _OTHERS.items() if n_of[trend])
    rarer = "the text as a whole is not predicted better, so nothing has a share"
    if of.rarer_share is not None:
        rarer = f"those make up {of.rarer_share:.2%} of the improvement"
    first, last = (run.size if result.axis is Axis.S else short(run.x) for run in (result.runs[0], result.runs[-1]))
    return (
        f"{len(of.tokens):,} token ids are scored at least {of.least} times, {of.n_rarer:,} less often; {rarer}. "
        f"From {first} to {last} {n_of[Trend.improves]:,} improve, {n_of[Trend.worsens]:,} get worse{others}."
    )


def _losses(result: Learning, losses: Losses) -> Iterator[str]:
    shares = {each.kind: each for each in losses.kinds}
    learned, turns, never = (f"{shares[kind].share:.0%}" for kind in (Kind.learned, Kind.turns, Kind.never))
    of_fall = shares[Kind.learned].of_fall.value
    fall = "" if of_fall is None else f", which give {of_fall:.0%} of the fall of cross-entropy"
    yield (
        f"{learned} of the tokens are learned between the first and the last {AXES[result.axis].one.split()[-1]}{fall};"
        f" the losses of {turns} are not monotone, and those of {never} change too little to be told from a constant."
    )
    measured, drawn = losses.worlds
    gain = measured.r2["sigmoid"].value, measured.r2["line"].value
    better = gain[0] is not None and gain[1] is not None and gain[0] > gain[1]
    r2 = [interval_of(each, 2) for each in (measured.r2["sigmoid"], drawn.r2["sigmoid"])]
    yield (
        f"At points that were left out the sigmoids of single tokens rebuild the slope with R² = {r2[0]}, "
        f"{'more' if better else 'no more'} than a line between the neighbours "
        f"({interval_of(measured.r2['line'], 2)}); in a drawn world without a step, with R² = {r2[1]}."
    )
    beats = [world.beats.value for world in losses.worlds]
    if None not in beats:
        yield (
            f"There a sigmoid is nearer than a power law for {beats[0]:.0%} of the tokens, and for {beats[1]:.0%} in "
            "the drawn world, where every token does follow a power law."
        )


def _tail(result: Learning, times: HitTimes) -> Iterator[str]:
    tail, x, changed = times.tail, result.axis.value, (History.learned, History.forgotten, History.unstable)
    learned, forgotten, unstable = (f"{times.shares[history]:.1%}" for history in changed)
    yield (
        f"k = {times.k}: {learned} of {len(times.cell_M):,} tokens were learned, {forgotten} were forgotten and "
        f"{unstable} changed more than once; from {x} = {short(times.half_settled)} on half never change."
    )
    if tail.status is not Status.ok or tail.c.value is None or tail.alpha.value is None:
        return
    straighter = "1 − RBP" if (tail.misses_rms or 0.0) < (tail.law_rms or 0.0) else "−ln RBP"
    yield (
        f"k = {times.k}: what is not learned falls as {x}^−c, c = {interval_of(tail.c)}, and −ln RBP_{times.k} as "
        f"{x}^−α, α = {interval_of(tail.alpha)}; the times alone give α = {interval_of(tail.alpha_of_tail)}. "
        f"{straighter}_{times.k} is the straighter power law."
    )


def _carriers(carriers: Carriers, x: str) -> str:
    moved = f"From {short(carriers.lo)} to {short(carriers.hi)} cross-entropy "
    if not carriers.chosen:
        slope = interval_of(carriers.slope)
        return f"{moved}does not fall for certain: {slope} nats per unit of ln {x}, of which nothing has a share."
    histories = [each for each in carriers.classes if each.by == "history"]
    by_history = max(histories, key=lambda each: each.share.value or 0)
    tokens = next(each for each in carriers.chosen if each.by == "token")
    share = interval(by_history.share.value, by_history.share.lo, by_history.share.hi, 2)
    return (
        f"{moved}falls by {interval_of(carriers.slope)} nats per unit of ln {x}. Tokens whose hits before were "
        f"“{by_history.name}” carry {share} of that, {by_history.of_tokens:.0%} of all tokens. The "
        f"{tokens.n} token ids that carry most seem to carry {tokens.share:.0%}; chosen by one half of the documents, "
        f"{tokens.again:.0%} in the other."
    )


def _forecast(result: Learning, found: Forecast) -> Iterator[str]:
    best = next((each for each in found.learners if each.name == found.best), None)
    if best is None:
        return
    x, (lo, hi), (now, last) = result.axis.value, found.taught, found.judged
    gain = "" if best.name == BASELINE else f", {interval_of(best.gain, 4)} nats a token less than by loss alone"
    yield (
        f"Of {found.n_misses:,} misses at {x} = {short(now)} (k = {found.k}), {found.became:.1%} are hits at "
        f"{short(last)}. Taught by {short(lo)} to {short(hi)}, chances by “{best.name}” have the least log loss "
        f"there{gain}."
    )
    if found.expected is not None:
        yield f"At ten times {x} it expects {found.expected:.1%} of all tokens to be hits that are misses now."


def _orders(result: Orders) -> Iterator[str]:
    for relation in ("seeds", "sizes", "families"):
        pairs = [pair for pair in result.pairs if pair.relation == relation and pair.rho.value is not None]
        if not pairs:
            continue
        values = sorted(pair.rho.value or 0.0 for pair in pairs)
        ceilings = sorted(pair.ceiling for pair in pairs if pair.ceiling is not None)
        noise = f"; noise alone would allow {_span(ceilings)}" if ceilings else ""
        within = sorted(pair.within.value for pair in pairs if pair.within.value is not None)
        among = f"; among occurrences of one token id, {_span(within)}" if within else ""
        yield f"Times of the same tokens correlate across {relation} by ρ = {_span(values)}{noise}{among}."


def _span(values: list[float]) -> str:
    """The least and the greatest, one number where they are equal in two digits."""
    lo, hi = f"{values[0]:.2f}", f"{values[-1]:.2f}"
    return lo if lo == hi else f"{lo} to {hi}"
