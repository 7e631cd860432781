"""What the laws of one group predict, and how right they were, told."""

from rbpx.analyses.predict import figure as drawn
from rbpx.analyses.predict.analysis import FAR, Foresights
from rbpx.analyses.predict.figure import name_of
from rbpx.display.chart.sheet import Entry, Sheet, error, magnitude, state
from rbpx.display.section import Section, Sources, doubts_of
from rbpx.display.tables import short

__all__ = ["section"]


def section(found: Foresights, sources: Sources) -> Section:
    """Backtests and predictions."""
    return Section(
        "prediction",
        "Backtest and prediction",
        tuple(_sentences(found)),
        tuple(drawn.figures(found, sources.fit_ids)),
        (_predictions(found),),
        doubts_of((name_of(law), law.law.fit.status) for law in found.laws),
    )


def _sentences(found: Foresights) -> list[str]:
    said = []
    tested = [law for law in found.laws if law.mean_error is not None]
    if tested:
        first = tested[0]
        inside = [b.is_inside for law in tested for b in law.backtests if b.is_inside is not None]
        said.append(
            f"Fitted to the smallest sizes and held against the larger ones, {name_of(first)} was the best law, "
            f"{first.mean_error:.1%} off on average; intervals of all laws held {sum(inside)} of {len(inside)} values."
        )
    far = [p.S for law in found.laws[:1] for p in law.predictions if p.beyond > FAR]
    if far:
        sizes = ", ".join(f"{S:.3g}" for S in far)
        said.append(
            f"S = {sizes} is more than {FAR} times beyond what was fitted: an extrapolation that nothing tests."
        )
    return said


def _predictions(found: Foresights) -> Sheet:
    columns = [("law", "law k method"), ("mean |error|", "mean_error"), ("inside", "n_inside n_intervals")]
    columns += [(f"at S = {S:.3g}", f"at_{S:.6g} lo_{S:.6g} hi_{S:.6g}") for S in found.targets]
    rows = []
    for law in found.laws:
        inside = [b.is_inside for b in law.backtests if b.is_inside is not None]
        held = Entry(f"{sum(inside)}/{len(inside)}", (sum(inside), len(inside))) if inside else Entry("–", (None, None))
        said = [Entry(f"{short(p.y)} ({short(p.lo)} to {short(p.hi)})", (p.y, p.lo, p.hi)) for p in law.predictions]
        none = [Entry("–", (None, None, None)) for _ in found.targets]
        mean = error(law.mean_error) if law.mean_error is not None else magnitude(None)
        mean = Entry(mean.text.lstrip("+"), mean.values)
        which = Entry(name_of(law), (law.law.law, law.law.k, law.law.method.value), is_number=False)
        rows.append([which, mean, held, *(said or none), state(law.law.fit.status)])
    note = (
        "Laws in order of their backtests. Inside: how many 95 % intervals held what was measured. Intervals are for "
        "one new model."
    )
    return Sheet.of("predictions", "Predictions", [*columns, ("status", "status")], rows, note)
