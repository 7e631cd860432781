"""Predictions in the report: what the laws of one group predict, and how good their backtests are."""

from rbpx.analyses.predict.analysis import FAR, Foresights
from rbpx.analyses.predict.figure import figures, name_of
from rbpx.display.chart.sheet import Entry, Sheet, error, magnitude, state
from rbpx.display.numbers import UNKNOWN, short
from rbpx.display.section import Section, Sources, doubts_of

__all__ = ["section"]


def section(result: Foresights, sources: Sources) -> Section:
    """Backtests and predictions."""
    return Section(
        "prediction",
        "Backtest and prediction",
        tuple(_sentences(result)),
        tuple(figures(result, sources.fit_ids)),
        (_predictions(result),),
        doubts_of((name_of(law), law.law.fit.status) for law in result.laws),
    )


def _sentences(result: Foresights) -> list[str]:
    sentences = []
    tested = [law for law in result.laws if law.mean_error is not None]
    if tested:
        first = tested[0]
        inside = [b.is_inside for law in tested for b in law.backtests if b.is_inside is not None]
        sentences.append(
            f"Fitted to the smallest sizes and compared with the larger ones, {name_of(first)} was the best law, "
            f"{first.mean_error:.1%} off on average; the intervals of all laws contained {sum(inside)} of "
            f"{len(inside)} measured values."
        )
    far = [p.S for law in result.laws[:1] for p in law.predictions if p.beyond > FAR]
    if far:
        sizes = ", ".join(f"{S:.3g}" for S in far)
        sentences.append(
            f"S = {sizes} is more than {FAR} times beyond what was fitted: an extrapolation that no backtest covers."
        )
    return sentences


def _predictions(result: Foresights) -> Sheet:
    columns = [("law", "law k method"), ("mean |error|", "mean_error"), ("inside", "n_inside n_intervals")]
    columns += [(f"at S = {S:.3g}", f"at_{S:.6g} lo_{S:.6g} hi_{S:.6g}") for S in result.targets]
    rows = []
    for law in result.laws:
        inside = [b.is_inside for b in law.backtests if b.is_inside is not None]
        counts = (sum(inside), len(inside)) if inside else (None, None)
        covered = Entry(f"{sum(inside)}/{len(inside)}" if inside else UNKNOWN, counts)
        at_targets = [
            Entry(f"{short(p.y)} ({short(p.lo)} to {short(p.hi)})", (p.y, p.lo, p.hi)) for p in law.predictions
        ] or [Entry(UNKNOWN, (None, None, None)) for _ in result.targets]
        mean = error(law.mean_error) if law.mean_error is not None else magnitude(None)
        mean = Entry(mean.text.lstrip("+"), mean.values)
        which = Entry(name_of(law), (law.law.law, law.law.k, law.law.method.value), is_number=False)
        rows.append([which, mean, covered, *at_targets, state(law.law.fit.status)])
    note = (
        "Laws in order of their backtests. Inside: how many 95 % intervals contained the measured value. Intervals "
        "are for one new model."
    )
    return Sheet.of("predictions", "Predictions", [*columns, ("status", "status")], rows, note)
