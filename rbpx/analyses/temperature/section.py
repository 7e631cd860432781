"""The temperature that a text prefers in the report; what was not measured is not measured for it."""

from rbpx.analyses.temperature.analysis import Temperatures
from rbpx.analyses.temperature.figure import figures
from rbpx.display.chart.figure import Undrawn
from rbpx.display.chart.law_sheet import law_sheet
from rbpx.display.names import law_name
from rbpx.display.numbers import number
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]

_TITLE = "Temperature"


def section(result: Temperatures, sources: Sources) -> Section:
    """T* of each size, what other temperatures cost, and both laws."""
    if result.raw is None or result.tempered is None:
        first = result.group.first
        reason = (
            "A store holds no logits, so this needs another pass over the models: "
            f"python -m rbpx temperature family={first.family} dataset={first.dataset}"
        )
        return Section("temperature", _TITLE, (), (Undrawn("temperature", _TITLE, reason),))
    laws = (result.raw, result.tempered)
    sheet = law_sheet(
        "Laws of cross-entropy", ((law.law, law.fit) for law in laws), "As measured, and at T* of each size."
    )
    return Section(
        "temperature",
        _TITLE,
        tuple(_sentences(result)),
        tuple(figures(result, sources.fit_ids)),
        (sheet,),
        doubts_of((law_name(law.law), law.fit.status) for law in laws),
    )


def _sentences(result: Temperatures) -> list[str]:
    last, T = result.runs[-1], result.runs[-1].temperature
    if T.value is None:
        return [f"{last.run.size} prefers a temperature beyond those that were measured."]
    gain = -(last.cross_entropy_nats.difference.value or 0.0)
    sentences = [
        f"{last.run.size} does best at T = {interval(T.value, T.lo, T.hi)}; its cross-entropy is {gain:.4f} nats lower "
        "there."
    ]
    fit = result.difference
    if result.raw is not None and result.tempered is not None and fit is not None and fit.alpha is not None:
        alphas = [number(law.fit.alpha) for law in (result.raw, result.tempered)]
        sentences.append(
            f"The exponent of cross-entropy is {alphas[0]} as measured and {alphas[1]} at the temperature of each "
            f"size, a difference of {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi, 4)}: that much of the law is "
            "calibration. No rank moves."
        )
    return sentences
