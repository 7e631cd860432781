"""Shows the regimes of k: a table of the law at every k, and in words up to which k it holds and what ends it."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from rbpx.display.law_columns import backtest, constant, determination, points_of
from rbpx.display.section import interval_of
from rbpx.display.view import Cell, Column, Table, View, magnitude, whole
from rbpx.display.vocabulary import AXES, number, rough, short
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.questions.regimes.analysis import Regime, Regimes, analyse, keep
from rbpx.questions.regimes.figures import ALPHA, BY_NOISE, K, figures
from rbpx.runs.select.ways import in_size
from rbpx.status import Status


@one_by_one
def tables(result: Regimes) -> Iterator[Table]:
    """The law at every k."""
    group, words = result.group, AXES[result.group.axis]
    title = f"−ln RBP_k = {words.constant} · {words.x}^−α over k"
    yield REGIMES.table(title, result.regimes, group.title, group.axis, f"Ties {group.ties.value}.")


def _law(regime: Regime) -> Cell:
    said, status = word(regime), regime.fit.status
    return Cell((said,), (said,), is_number=False, doubts=() if status is Status.ok else (status,))


def _fit(regime: Regime) -> PowerLawFit:
    return regime.fit


REGIMES: Final = View[Regime](
    "regimes",
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
        "law", ("law",), _law, "it holds where 0 < RBP_k < 1 at every {x}, in nearly all resamples too, the interval "
        "of α lies above 0, the points neither bend nor turn round, the backtest passes and α is determined",
    ),
)  # fmt: skip


def word(regime: Regime) -> str:
    """Whether the law holds at a k, or why it does not."""
    fit = regime.fit
    if regime.stands:
        return "holds"
    if fit.status is not Status.ok:
        return fit.status.label
    return "reversed" if fit.alpha is not None and fit.alpha < 0 else "noise"


@one_by_one
def sentences(regimes: Regimes) -> list[str]:
    """The largest k of the law, and why it is the largest."""
    return [*_reach(regimes), *_of_noise(regimes)]


def _reach(regimes: Regimes) -> list[str]:
    if not regimes.regimes:
        return ["RBP_k is not known at any k of the grid."]
    if regimes.supported is None:
        first = regimes.regimes[0]
        holds = ", ".join(f"{regime.k:,}" for regime in regimes.regimes if regime.stands)
        others = f"; it holds at k = {holds}" if holds else ", and at no other k of the grid"
        return [f"Already at k = {first.k:,} the law does not hold ({word(first)}){others}."]
    after = next((regime for regime in regimes.regimes if regime.k > regimes.supported), None)
    if after is None:
        return [f"The law holds at every k of the grid, up to {regimes.supported:,}."]
    why = f"At the next k, {after.k:,}, it does not ({word(after)})"
    if after.n_misses is not None:
        why += f"; {after.n_misses:,} tokens at the largest {AXES[regimes.group.axis].one} have a larger rank"
        if after.fit.alpha is not None:
            noise = max(filter(None, (after.binomial_sd, after.document_sd)), default=None)
            why += f", α is {interval_of(after.fit.exponent, 4)}, "
            why += f"and the noise is {short(noise)} against a signal of {short(after.signal)}"
    return [f"The law holds at every k of the grid up to {regimes.supported:,}.", f"{why}."]


def _of_noise(regimes: Regimes) -> list[str]:
    """Whether noise ends the law, at the first k beyond the largest one at which it holds."""
    last = max((regime.k for regime in regimes.regimes if regime.stands), default=0)
    beyond = [regime for regime in regimes.regimes if regime.k > last and regime.fit.r2 is not None]
    end = next((regime for regime in beyond if regime.predicted is not None), None)
    if regimes.noise is None or end is None or end.predicted is None:
        return []
    noise = end.predicted
    said = f"At k = {end.k:,} R² is {number(end.fit.r2, 3)}; with the noise of so few misses a law that goes on "
    said += f"would show {interval_of(noise.r2)}"
    if noise.is_noise:
        more = "" if noise.n_tokens is None else f"; about {rough(noise.n_tokens)} tokens would show its slope"
        return [f"{said}, so noise may be what ends it{more}."]
    part = "" if noise.explained is None else f", {max(noise.explained, 0.0):.0%} of the fall of R²"
    return [f"{said}{part}, so noise does not end it, and more tokens would not move the end."]


QUESTION = of_parts(each(analyse), keep, tables, sentences, figures, select=partial(in_size, sizes=3))
