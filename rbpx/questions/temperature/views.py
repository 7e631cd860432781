"""Shows calibration in tables and words: T* of each size, what it saves, and the laws at T = 1 and at T*."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from rbpx.display.law_columns import backtest, constant, determination, exponent
from rbpx.display.section import interval_of
from rbpx.display.view import Table, View, decimal, state, text, with_ends
from rbpx.display.vocabulary import law_title, number, signed
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.questions.temperature.analysis import RunTemperature, Temperatures, analyse, keep
from rbpx.questions.temperature.figures import PREFERRED, figures, labelled
from rbpx.questions.temperature.measure import measure
from rbpx.runs.select.ways import in_size

RUNS: Final = View[tuple[str, RunTemperature]](
    "temperatures",
    *PREFERRED.columns,
    decimal("CE", "cross_entropy_nats", lambda row: row[1].at_one.value, means="nats per token"),
    with_ends("at T*", "cross_entropy_at_temperature_nats", lambda row: row[1].at_best, ends_spare=1),
    with_ends(
        "difference", "difference_nats", lambda row: row[1].difference, signed, ends_spare=3,
        means="CE at T* minus CE; no rank moves",
    ),
    state(lambda row: row[1].status),
)  # fmt: skip
LAWS: Final = View[tuple[str, PowerLawFit]](
    "laws",
    text("law", "law", lambda row: row[0]),
    exponent(lambda row: row[1], means="over documents and models; α of their ratio is the difference"),
    constant(lambda row: row[1], spare=3),
    determination(lambda row: row[1], ends_spare=4),
    backtest(lambda row: row[1], spare=2),
    state(lambda row: row[1].status),
)


@one_by_one
def tables(result: Temperatures) -> Iterator[Table]:
    """The sizes that were measured at other temperatures, then both laws and that of their ratio."""
    if result.runs:
        T = [1 / beta for beta in result.runs[0].beta_J]
        note = (
            f"T is searched from {min(T):g} to {max(T):g}; where T* lies outside, CE at T* is that at the nearer end."
        )
        yield RUNS.table("Temperatures", labelled(result.runs), result.group.title, note=note)
        laws = [(law_title(law.law), law.fit) for law in result.laws]
        laws += [] if result.difference is None else [("their ratio", result.difference)]
        yield LAWS.table("Laws of cross-entropy", laws, result.group.title)


@one_by_one
def sentences(result: Temperatures) -> Iterator[str]:
    """What the largest size prefers and gains, and how much of the law is calibration."""
    if not result.runs:
        yield "Nothing was measured at other temperatures."
        return
    last, fit = result.runs[-1], result.difference
    if last.temperature.value is None:
        yield f"{last.run.size} prefers a temperature outside those that were measured."
    else:
        best, gain = interval_of(last.temperature), -(last.difference.value or 0.0)
        yield f"{last.run.size} does best at T = {best}; its cross-entropy is {gain:.4f} nats lower there."
    if fit is not None and fit.alpha is not None:
        raw, tempered = (number(law.fit.alpha) for law in result.laws)
        yield (
            f"The exponent of cross-entropy is {raw} as measured and {tempered} at the temperature of each size, a "
            f"difference of {interval_of(fit.exponent, 4)}: that much of the law is calibration. No rank moves."
        )


QUESTION = of_parts(
    each(analyse), keep, tables, sentences, figures, measure=measure, select=partial(in_size, along=False)
)
