"""Says in sentences when tokens are learned, what rebuilds the slope, who carries it, and in which order."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.config.request import Request
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AXES, short
from rbpx.laws.names import Axis
from rbpx.questions.learning.forecast import BASELINE
from rbpx.questions.learning.found import Found
from rbpx.questions.learning.improvements import Trend, of_trend
from rbpx.status import Status
from rbpx.store.store import Record


def sentences(found: Found, request: Request) -> Iterator[str]:
    """What was found of one group, or of the orders on one text."""
    if found.of("tokens"):
        yield _improvements(found, request.least)
    if found.of("kind"):
        yield from _losses(found)
    for of_all, tail in zip(found.of("tokens"), found.of("tail"), strict=True):
        yield from _tail(of_all, tail, found.group.axis.value)
    for slope in found.of("slope_now"):
        yield _carriers(found, slope)
    for forecast in found.of("forecast"):
        yield from _forecast(found, forecast)
    yield from _orders(found)


def _said(row: Record, key: str, digits: int = 3) -> str:
    """A number of a row with its interval."""
    return interval_of(estimate_in(row, key), digits)


_OTHERS: Final = {
    Trend.unclear: "show no measurable change",
    Trend.turns: "have a slope that disagrees with their ends",
    Trend.unknown: "are in one document only, so they have no interval",
}


def _improvements(found: Found, least: int) -> str:
    """How many token ids improve, get worse or do neither, and what the rarer ones make up."""
    n_of = {trend: len(of_trend(found, trend)) for trend in Trend}
    others = "".join(f", {n_of[trend]:,} {words}" for trend, words in _OTHERS.items() if n_of[trend])
    tokens, rarer = found.of("token"), found.of("rarer")
    made_up = "the text as a whole is not predicted better, so nothing has a share"
    if all(row["share"] is not None for row in (*tokens, *rarer)):
        made_up = f"those make up {sum(row['share'] for row in rarer):.2%} of the improvement"
    ends = (found.runs[0], found.runs[-1])
    first, last = (run.size if found.group.axis is Axis.S else short(run.x) for run in ends)
    return (
        f"{len(tokens):,} token ids are scored at least {least} times, {sum(row['n_types'] for row in rarer):,} less "
        f"often; {made_up}. From {first} to {last} {n_of[Trend.improves]:,} improve, {n_of[Trend.worsens]:,} get "
        f"worse{others}."
    )


def _losses(found: Found) -> Iterator[str]:
    kinds = {row["name"]: row for row in found.of("kind")}
    learned, turns, never = (f"{kinds[name]['share']:.0%}" for name in ("learned", "turns", "never"))
    of_fall = kinds["learned"]["of_fall"]
    fall = "" if of_fall is None else f", which give {of_fall:.0%} of the fall of cross-entropy"
    yield (
        f"{learned} of the tokens are learned between the first and the last "
        f"{AXES[found.group.axis].one.split()[-1]}{fall}; the losses of {turns} are not monotone, and those of {never} "
        "change too little to be told from a constant."
    )
    measured, drawn = found.of("world")
    of_sigmoids, of_line = (_said(measured, f"r2_{curve}", 2) for curve in ("sigmoid", "line"))
    gain = measured["r2_sigmoid"], measured["r2_line"]
    yield (
        f"At points that were left out the sigmoids of single tokens rebuild the slope with R² = {of_sigmoids}, "
        f"{'more' if None not in gain and gain[0] > gain[1] else 'no more'} than a line between the neighbours "
        f"({of_line}); in a drawn world without a step, with R² = {_said(drawn, 'r2_sigmoid', 2)}."
    )
    if measured["beats"] is not None and drawn["beats"] is not None:
        yield (
            f"There a sigmoid is nearer than a power law for {measured['beats']:.0%} of the tokens, and for "
            f"{drawn['beats']:.0%} in the drawn world, where every token does follow a power law."
        )


def _tail(of_all: Record, tail: Record, x: str) -> Iterator[str]:
    k = tail["k"]
    learned, forgotten, unstable = (f"{of_all[history]:.1%}" for history in ("learned", "forgotten", "unstable"))
    yield (
        f"k = {k}: {learned} of {of_all['n_tokens']:,} tokens were learned, {forgotten} were forgotten and "
        f"{unstable} changed more than once; from {x} = {short(of_all['half_settled_at'])} on half never change."
    )
    if tail["status"] == Status.ok and None not in (tail["c"], tail["alpha"]):
        straighter = "1 − RBP" if (tail["misses_rms"] or 0.0) < (tail["law_rms"] or 0.0) else "−ln RBP"
        yield (
            f"k = {k}: what is not learned falls as {x}^−c, c = {_said(tail, 'c')}, and −ln RBP_{k} as {x}^−α, "
            f"α = {_said(tail, 'alpha')}; the times alone give α = {_said(tail, 'alpha_of_tail')}. "
            f"{straighter}_{k} is the straighter power law."
        )


def _carriers(found: Found, slope: Record) -> str:
    chosen = found.of("chosen", by="token")
    fall = f"{_said(slope, 'slope')} nats per unit of ln {found.group.axis.value}"
    moved = f"From {short(slope['lo'])} to {short(slope['hi'])} cross-entropy "
    if not chosen:
        return f"{moved}does not fall for certain: {fall}, of which nothing has a share."
    most = max(found.of("carrier", by="history"), key=lambda row: row["share"] or 0)
    return (
        f"{moved}falls by {fall}. Tokens whose hits before were “{most['name']}” carry {_said(most, 'share', 2)} of "
        f"that, {most['of_tokens']:.0%} of all tokens. The {chosen[0]['n']} token ids that carry most seem to carry "
        f"{chosen[0]['share']:.0%}; chosen by one half of the documents, {chosen[0]['again']:.0%} in the other."
    )


def _forecast(found: Found, forecast: Record) -> Iterator[str]:
    x = found.group.axis.value
    lo, hi, now, last = (short(forecast[key]) for key in ("taught_lo", "taught_hi", "judged_lo", "judged_hi"))
    for best in found.of("learner", name=forecast["best"]):
        gain = "" if best["name"] == BASELINE else f", {_said(best, 'gain', 4)} nats a token less than by loss alone"
        yield (
            f"Of {forecast['n_misses']:,} misses at {x} = {now} (k = {forecast['k']}), {forecast['became']:.1%} are "
            f"hits at {last}. Taught by {lo} to {hi}, chances by “{best['name']}” have the least log "
            f"loss there{gain}."
        )
    if forecast["expected"] is not None:
        yield f"At ten times {x} it expects {forecast['expected']:.1%} of all tokens to be hits that are misses now."


def _orders(found: Found) -> Iterator[str]:
    for relation in ("seeds", "sizes", "families"):
        pairs = [row for row in found.of("pair", relation=relation) if row["rho"] is not None]
        rho, ceiling, within = (
            [row[name] for row in pairs if row[name] is not None] for name in ("rho", "ceiling", "within")
        )
        if pairs:
            noise = f"; noise alone would allow {_span(ceiling)}" if ceiling else ""
            among = f"; among occurrences of one token id, {_span(within)}" if within else ""
            yield f"Times of the same tokens correlate across {relation} by ρ = {_span(rho)}{noise}{among}."


def _span(values: Sequence[float]) -> str:
    """The least and the greatest, one number where they are equal in two digits."""
    lo, hi = f"{min(values):.2f}", f"{max(values):.2f}"
    return lo if lo == hi else f"{lo} to {hi}"
