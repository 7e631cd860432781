"""Calibration in sentences."""

from collections.abc import Sequence

from rbpx.analyses.temperature.analysis import Temperatures
from rbpx.display.numbers import number
from rbpx.display.section import interval_of


def sentences(results: Sequence[Temperatures]) -> list[str]:
    """What the largest size prefers and gains, and how much of the law is calibration."""
    return [sentence for result in results for sentence in (*_of_largest(result), *_of_laws(result))]


def _of_largest(result: Temperatures) -> list[str]:
    if not result.runs:
        return ["Nothing was measured at other temperatures."]
    last = result.runs[-1]
    if last.temperature.value is None:
        return [f"{last.run.size} prefers a temperature beyond those that were measured."]
    gain = -(last.cross_entropy_nats.difference.value or 0.0)
    return [
        f"{last.run.size} does best at T = {interval_of(last.temperature)}; its cross-entropy is {gain:.4f} nats lower "
        "there."
    ]


def _of_laws(result: Temperatures) -> list[str]:
    fit = result.difference
    if result.raw is None or result.tempered is None or fit is None or fit.alpha is None:
        return []
    raw, tempered = (number(law.fit.alpha) for law in (result.raw, result.tempered))
    return [
        f"The exponent of cross-entropy is {raw} as measured and {tempered} at the temperature of each size, a "
        f"difference of {interval_of(fit.exponent, 4)}: that much of the law is calibration. No rank moves."
    ]
