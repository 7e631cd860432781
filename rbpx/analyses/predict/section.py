"""Predictions in the report: what the laws of one group predict, and how good their backtests are."""

from rbpx.analyses.predict.analysis import Foreseen, Foresight, Foresights
from rbpx.analyses.predict.figure import figures, name_of
from rbpx.analyses.predict.table import inside_of, weights_of
from rbpx.display.chart.sheet import Cell, Sheet, entry, error, magnitude, sheet_of, state
from rbpx.display.numbers import UNKNOWN, short
from rbpx.display.section import Section, Sources, doubts_of
from rbpx.laws.over_forms import COMBINED
from rbpx.laws.verdict import FAR
from rbpx.status import Status

__all__ = ["section"]


def section(result: Foresights, sources: Sources) -> Section:
    """Backtests and predictions."""
    return Section(
        "prediction",
        "Backtest and prediction",
        tuple(_sentences(result)),
        tuple(figures(result, sources.fit_ids)),
        (_predictions(result),),
        doubts_of((name_of(law), status) for law in result.answers for status in _statuses(law)),
    )


def _statuses(law: Foresight) -> list[Status]:
    return [each.status for each in law.predictions] or [law.law.fit.status]


def _sentences(result: Foresights) -> list[str]:
    sentences = []
    tested = [law for law in result.answers if law.mean_error is not None]
    if tested:
        first = tested[0]
        inside = [b.is_inside for law in tested for b in law.backtests if b.is_inside is not None]
        sentences.append(
            f"Fitted to the smallest sizes and compared with the larger ones, {name_of(first)} was predicted best, "
            f"{first.mean_error:.1%} off on average; the 95 % intervals over forms contained {sum(inside)} of "
            f"{len(inside)} measured values."
        )
    standing = [name_of(law) for law in result.answers if law.predictions and Status.ok in _statuses(law)]
    if tested and not standing:
        sentences.append("No law here can be relied on for a prediction; the reasons stand beside each.")
    elif len(standing) < len(result.answers):
        sentences.append(
            f"Nothing speaks against the predictions of {', '.join(standing)}; against the others it does."
        )
    far = [p.prediction.S for law in result.answers[:1] for p in law.predictions if p.prediction.beyond > FAR]
    if far:
        sizes = ", ".join(f"{S:.3g}" for S in far)
        sentences.append(
            f"S = {sizes} is more than {FAR:.0f} times beyond the sizes: an extrapolation that no backtest covers."
        )
    return sentences


def _predictions(result: Foresights) -> Sheet:
    columns = [("law", "law k method"), ("mean |error|", "mean_error"), ("inside", "n_inside n_intervals")]
    columns += [("power/offset/bend, %", "weights")]
    columns += [(f"at S = {S:.3g}", f"at_{S:.6g} lo_{S:.6g} hi_{S:.6g}") for S in result.targets]
    rows = []
    for law in result.laws:
        if law.method != COMBINED and law.method != law.law.method.value:
            continue  # a form within the combined answer
        mean = error(law.mean_error) if law.mean_error is not None else magnitude(None)
        mean = entry(mean.text.lstrip("+"), mean.values)
        held = [b.is_inside for b in law.backtests if b.is_inside is not None]
        counts = (sum(held), len(held)) if held else (None, None)
        which = entry(name_of(law), (law.law.law, law.law.k, law.method), is_number=False)
        weights = entry(weights_of(law) if law.weights else UNKNOWN, (weights_of(law) if law.weights else None,))
        at_targets = [_value(each) for each in law.predictions] or [entry(UNKNOWN, (None, None, None))] * len(
            result.targets
        )
        status = next((each.status for each in law.predictions), law.law.fit.status)
        rows.append([which, mean, entry(inside_of(law), counts), weights, *at_targets, state(status)])
    note = (
        "Laws in order of their backtests; of each law first the answer to take, over forms, then the law by least "
        "squares (or the methods asked for). Inside: how many 95 % intervals of backtests contained the measured "
        "value. Intervals are for one new model."
    )
    return sheet_of("predictions", "Predictions", [*columns, ("status", "status")], rows, note)


def _value(each: Foreseen) -> Cell:
    p = each.prediction
    return entry(f"{short(p.y)} ({short(p.lo)} to {short(p.hi)})", (p.y, p.lo, p.hi))
