"""Calibration as tables: T* of each size and what it saves, and the laws of cross-entropy at T = 1 and at T*."""

from collections.abc import Sequence
from typing import Final

from rbpx.analyses.question import Measured, Question, each
from rbpx.analyses.temperature.analysis import RunTemperature, Temperatures, analyse, keep
from rbpx.analyses.temperature.figures import PREFERRED, figures, labelled
from rbpx.analyses.temperature.words import sentences
from rbpx.config.request import Request
from rbpx.display.column import decimal, state, text, with_ends
from rbpx.display.law_columns import backtest, constant, determination, exponent
from rbpx.display.numbers import signed
from rbpx.display.view import Table, View
from rbpx.display.vocabulary import law_title
from rbpx.laws.power_fit import PowerLawFit

RUNS: Final = View[tuple[str, RunTemperature]](
    "temperatures",
    (
        *PREFERRED.columns,
        decimal("CE", "cross_entropy_nats", lambda row: row[1].at_one.value, means="nats a token"),
        with_ends("at T*", "cross_entropy_at_temperature_nats", lambda row: row[1].at_best, ends_spare=1),
        with_ends(
            "difference", "difference_nats", lambda row: row[1].cross_entropy_nats.difference, signed, ends_spare=3,
            means="CE at T* minus CE; no rank moves",
        ),
        state(lambda row: row[1].status),
    ),
)  # fmt: skip
LAWS: Final = View[tuple[str, PowerLawFit]](
    "laws",
    (
        text("law", "law", lambda row: row[0]),
        exponent(lambda row: row[1], means="over documents and models; α of their ratio is the difference"),
        constant(lambda row: row[1], spare=3),
        determination(lambda row: row[1], ends_spare=4),
        backtest(lambda row: row[1], spare=2),
        state(lambda row: row[1].status),
    ),
)


def tables(results: Sequence[Temperatures]) -> list[Table]:
    """The sizes of each group that was measured at other temperatures, then both laws and that of their ratio."""
    found = []
    for result in (result for result in results if result.runs):
        T = [1 / beta for beta in result.runs[0].beta_J]
        note = f"T is searched from {min(T):g} to {max(T):g}; where T* lies beyond, CE at T* is that at the nearer end."
        found.append(RUNS.table("Temperatures", labelled(result.runs), result.group.title, note=note))
        laws = [(law_title(law.law), law.fit) for law in (result.raw, result.tempered) if law is not None]
        laws += [] if result.difference is None else [("their ratio", result.difference)]
        found.append(LAWS.table("Laws of cross-entropy", laws, result.group.title))
    return found


def _measure(request: Request) -> Measured:
    from rbpx.analyses.temperature.measure import measure  # with torch, which a table does not need

    return measure(request)


QUESTION = Question(each(analyse), keep, tables, sentences, figures, measure=_measure)
