"""Says in sentences when tokens are learned, what rebuilds the slope, who carries it, and in which order."""

from collections.abc import Iterator, Sequence

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import short
from rbpx.laws.names import Axis
from rbpx.questions.learning.tables import Found
from rbpx.store.store import Record


def sentences(found: Found, least: int) -> Iterator[str]:
    """What was found of one group, or of the orders on one text."""
    if found.of("tokens"):
        yield _improvements(found, least)
    if found.of("kind"):
        yield _losses(found)
    for slope in found.of("slope_now"):
        yield _carriers(found, slope)
    for forecast in found.of("forecast"):
        if forecast["best"] is not None:
            yield (
                f"Of {forecast['n_misses']:,} misses at {found.group.axis} = {short(forecast['judged_lo'])} "
                f"(k = {forecast['k']}), {forecast['became']:.1%} are hits at {short(forecast['judged_hi'])}, which "
                f"“{forecast['best']}” foretells best."
            )
    for relation in ("seeds", "sizes", "families"):
        if pairs := [row for row in found.of("pair", relation=relation) if row["rho"] is not None]:
            noise = [row["ceiling"] for row in pairs if row["ceiling"] is not None]
            allowed = f"; noise alone would allow {_span(noise)}" if noise else ""
            rho = _span([row["rho"] for row in pairs])
            yield f"Times of the same tokens correlate across {relation} by ρ = {rho}{allowed}."


def _said(row: Record, key: str, digits: int = 3) -> str:
    """A number of a row with its interval."""
    return interval_of(estimate_in(row, key), digits)


def _improvements(found: Found, least: int) -> str:
    """How many token ids improve, get worse or do neither, and what the rarer ones make up."""
    tokens, rarer = found.of("token"), found.of("rarer")
    better, worse, unclear = (len(found.of("token", trend=trend)) for trend in ("improves", "worsens", "unclear"))
    made_up = "the text as a whole is not predicted better, so nothing has a share"
    if all(row["share"] is not None for row in (*tokens, *rarer)):
        made_up = f"rarer ones make up {sum(row['share'] for row in rarer):.2%} of the improvement"
    first, last = (run.size if found.group.axis is Axis.S else short(run.x) for run in (found.runs[0], found.runs[-1]))
    return (
        f"{len(tokens):,} token ids are scored at least {least} times; {made_up}. From {first} to {last} {better:,} "
        f"improve, {worse:,} get worse, {unclear:,} show no measurable change."
    )


def _losses(found: Found) -> str:
    """Whether single tokens are learned in steps."""
    kinds = {row["name"]: row["share"] for row in found.of("kind")}
    measured, drawn = found.of("world")
    return (
        f"{kinds['learned']:.0%} of the tokens are learned between the first and the last point, the losses of "
        f"{kinds['turns']:.0%} are not monotone, and those of {kinds['never']:.0%} hardly change. At points left out "
        f"single sigmoids rebuild the slope with R² = {_said(measured, 'r2_sigmoid', 2)}, a line between neighbours "
        f"with {_said(measured, 'r2_line', 2)}; in a drawn world without a step sigmoids reach "
        f"{_said(drawn, 'r2_sigmoid', 2)}."
    )


def _carriers(found: Found, slope: Record) -> str:
    """Which history carries the slope."""
    fall = f"{_said(slope, 'slope')} nats per unit of ln {found.group.axis}"
    moved = f"From {short(slope['lo'])} to {short(slope['hi'])} cross-entropy"
    most = max(found.of("carrier", by="history"), key=lambda row: row["share"] or 0)
    if most["share"] is None:
        return f"{moved} does not fall for certain: {fall}, of which nothing has a share."
    return (
        f"{moved} falls by {fall}. Tokens whose hits before were “{most['name']}” carry {_said(most, 'share', 2)} of "
        f"that, {most['of_tokens']:.0%} of all tokens."
    )


def _span(values: Sequence[float]) -> str:
    """The least and the greatest, one number where they are equal in two digits."""
    lo, hi = f"{min(values):.2f}", f"{max(values):.2f}"
    return lo if lo == hi else f"{lo} to {hi}"
