"""Regimes of k as a table: the law at every k, and the noise there."""

from collections.abc import Iterator
from typing import Final

from rbpx.analyses.question import Question, each, one_by_one
from rbpx.analyses.regimes.analysis import Regime, Regimes, analyse, keep
from rbpx.analyses.regimes.figures import ALPHA, BY_NOISE, K, figures
from rbpx.analyses.regimes.words import sentences, word
from rbpx.display.column import Cell, Column, magnitude, whole
from rbpx.display.law_columns import backtest, constant, determination, points_of
from rbpx.display.view import Table, View
from rbpx.display.vocabulary import AXES
from rbpx.laws.power import PowerLawFit
from rbpx.status import Status


@one_by_one
def tables(result: Regimes) -> Iterator[Table]:
    """The law at every k."""
    group, words = result.group, AXES[result.group.axis]
    title = f"−ln RBP_k = {words.constant} · {words.x}^−α over k"
    yield REGIMES.table(title, result.regimes, group.title, group.axis, f"Ties {group.ties.value}.")


def _law(regime: Regime) -> Cell:
    status = regime.fit.status
    return Cell((word(regime),), (word(regime),), is_number=False, doubts=() if status is Status.ok else (status,))


def _fit(regime: Regime) -> PowerLawFit:
    return regime.fit


REGIMES: Final = View[Regime](
    "regimes",
    (
        K,
        determination(_fit, ends_spare=7),
        ALPHA,
        constant(_fit, spare=5),
        points_of(_fit, spare=8),
        backtest(_fit, spare=6),
        whole("misses", "n_misses", lambda regime: regime.n_misses, "tokens with a rank above k at the largest {x}"),
        magnitude("signal", "signal", lambda regime: regime.signal, "change of ln(−ln RBP_k) by the law, over all {x}"),
        magnitude(
            "binomial", "binomial_sd", lambda regime: regime.binomial_sd,
            "noise of ln(−ln RBP_k) at the largest {x}, from counting independent tokens", 2,
        ),
        magnitude(
            "text", "document_sd", lambda regime: regime.document_sd,
            "noise of ln(−ln RBP_k) at the largest {x}, from document sampling", 1,
        ),
        BY_NOISE,
        Column(
            "law", ("law",), _law, "it holds where 0 < RBP_k < 1 at every {x}, also in nearly all resamples, the "
            "interval of α lies above 0, and the points neither bend nor turn round, defy the backtest or leave α open",
        ),
    ),
)  # fmt: skip
QUESTION = Question(each(analyse), keep, tables, sentences, figures, says_all=True)
