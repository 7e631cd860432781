"""Writes the sentences of learning: which tokens improve and carry the slope, forecasts, and orders."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import short, spoken
from rbpx.laws.names import Axis
from rbpx.questions.learning.tables import CARRYING, LearningRows
from rbpx.status import Status
from rbpx.store.store import Record

_MOST: Final = 3  # texts in the answer


def sentences(of_family: Sequence[LearningRows], least: int) -> Iterator[str]:
    """Yields how many token ids of each text improve and what carries the fall; then slopes, forecasts and orders."""
    if parts := [_improvements(found) for found in of_family if found.of("group")]:
        left = [f"and {len(parts) - _MOST} more"] if len(parts) > _MOST else []
        yield f"Of token ids that are scored {least} times or more, {'; '.join([*parts[:_MOST], *left])}."
    for found in of_family:
        of = f"{found.group.title_of_text}: " if len(parts) > 1 else ""
        yield from (f"{of}{said}" for said in _more(found))


def _more(found: LearningRows) -> Iterator[str]:
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
    return interval_of(estimate_in(row, key), digits)


def _improvements(found: LearningRows) -> str:
    (group,), tokens, text = found.of("group"), found.of("token"), found.group.title_of_text
    if not found.of("tokens"):
        return f"none can be followed on {text}: {Status(group['status']).remedy.rstrip('.')}"
    better, worse = found.of("token", trend="improves"), found.of("token", trend="worsens")
    made_up = "; the text as a whole is not predicted better, so nothing has a share"
    if all(row["share"] is not None for row in (*tokens, *found.of("rarer"))):
        carried = sum(row["share"] for row in better[:CARRYING])
        made_up = f", and the first {len(better[:CARRYING])} carry {carried:.0%} of the fall of cross-entropy"
    first, last = (run.size if found.group.axis is Axis.S else spoken(run.x) for run in (found.runs[0], found.runs[-1]))
    return (
        f"on {text} {len(better):,} of {len(tokens):,} improve from {first} to {last}, {len(worse):,} "
        f"get worse{made_up}"
    )


def _carriers(found: LearningRows, slope: Record) -> str:
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
    lo, hi = f"{min(values):.2f}", f"{max(values):.2f}"
    return lo if lo == hi else f"{lo} to {hi}"
