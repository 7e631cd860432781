"""Regimes of k: the law at every k in; up to which k it holds, and the noise that ends it, out."""

from collections.abc import Sequence

from rbpx.analyses.regimes.analysis import Regime, Regimes
from rbpx.display.along import in_axis, print_group_notes
from rbpx.display.fit_cells import constant, sizes_of
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, percent, rough, short, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.status import Status


def show(results: Sequence[Regimes]) -> None:
    """Print R2 and alpha against k, the noise at each k, and the largest k at which the law still holds."""
    screen = console()
    columns = ["k", "R2", "95 % of R2", "alpha", "95 % interval", "C", "95 % of C", "sizes", "over S", "backtest"]
    columns += ["misses", "signal", "binomial", "text", "R2 by noise", "95 % of it", "tokens", "law"]
    spare = ("R2 by noise", "95 % of it", "tokens", "C", "95 % of C", "backtest", "95 % of R2", "sizes", "over S")
    for regimes in results:
        if not regimes.regimes:
            screen.print(f"{regimes.group.title}: RBP_k is not known at any k of this grid.", soft_wrap=True)
            continue
        axis = regimes.group.axis
        named, less = ([in_axis(column, axis) for column in each] for each in (columns, spare))
        heading = in_axis("-ln RBP_k = C · S^-alpha over k", axis)
        table = grid(f"{regimes.group.title}: {heading}", named, left=0, spare=less)
        for regime in regimes.regimes:
            table.add_row(*_row(regime))
        put(screen, table)
        screen.print(_verdict(regimes), soft_wrap=True)
        screen.print(_of_noise(regimes), soft_wrap=True, end="")
    print_notes(
        screen,
        f"ties {results[0].group.ties.value}. Misses: tokens of the largest model with rank above k. Signal: change of "
        "ln(-ln RBP_k) over the sizes, by the law; beside it the noise of the largest model in the same unit, from "
        "counting independent tokens (binomial) and from document sampling (text). R2 by noise: that of a law that "
        "goes on with the exponent that it has where it holds, under the noise of as many misses as there are, over "
        "documents; tokens: of a text that would show that slope. The law holds where "
        "0 < RBP_k < 1 at every size, also in nearly all resamples, the interval of alpha lies above 0, and the "
        "points neither bend nor turn round, defy the backtest or leave alpha open.",
        (regime.law.fit.status for regimes in results for regime in regimes.regimes),
    )
    print_group_notes(screen, [regimes.group for regimes in results])


def _row(regime: Regime) -> list[str]:
    fit = regime.law.fit
    return [
        f"{regime.k:,}",
        number(fit.r2, 3),
        span(fit.params.get("r2_lo"), fit.params.get("r2_hi"), 3),
        number(fit.alpha, 3),
        span(fit.alpha_lo, fit.alpha_hi, 3),
        *constant(fit),
        *sizes_of(fit),
        percent(fit.backtest_error),
        UNKNOWN if regime.n_misses is None else f"{regime.n_misses:,}",
        short(regime.signal),
        short(regime.binomial_sd),
        short(regime.document_sd),
        *_predicted(regime),
        _word(regime),
    ]


def _predicted(regime: Regime) -> list[str]:
    noise = regime.predicted
    if noise is None:
        return [UNKNOWN] * 3
    return [number(noise.r2, 3), span(noise.r2_lo, noise.r2_hi, 3), rough(noise.n_tokens)]


def _of_noise(regimes: Regimes) -> str:
    """Whether noise ends the law, at the first k beyond the largest one that stands."""
    noise = regimes.noise
    if noise is None:
        return ""
    last = max(regime.k for regime in regimes.regimes if regime.stands)
    end = next(
        (r for r in regimes.regimes if r.k > last and r.predicted is not None and r.law.fit.r2 is not None), None
    )
    if end is None or end.predicted is None:
        return ""
    r2, by_noise = number(end.law.fit.r2, 3), number(end.predicted.r2, 3)
    ends = span(end.predicted.r2_lo, end.predicted.r2_hi, 3)
    said = f"{regimes.group.title}: at k = {end.k:,} R2 is {r2}; with the noise of so few misses a law that goes on "
    said += f"would show {by_noise} ({ends})"
    if end.predicted.is_noise:
        needed = end.predicted.n_tokens
        more = "" if needed is None else f"; about {rough(needed)} tokens would show its slope"
        return f"{said}, so noise may be what ends it{more}.\n"
    share = end.predicted.explained
    part = "" if share is None else f", {max(share, 0.0):.0%} of its fall"
    return f"{said}{part}, so noise is not what ends it, and more tokens would not move the end.\n"


def _word(regime: Regime) -> str:
    fit = regime.law.fit
    if regime.stands:
        return "holds"
    if fit.status is not Status.ok:
        return status_name(fit.status)
    return "reversed" if fit.alpha is not None and fit.alpha < 0 else "noise"


def _reason(regime: Regime) -> str:
    status = regime.law.fit.status
    return _word(regime) if status is Status.ok else status.label


def _verdict(regimes: Regimes) -> str:
    title = regimes.group.title
    if regimes.supported is None:
        holds = ", ".join(f"{regime.k:,}" for regime in regimes.regimes if regime.stands)
        others = f"; it does at k = {holds}" if holds else " or any other"
        return f"{title}: the law does not hold at the smallest k of this grid ({_reason(regimes.regimes[0])}){others}."
    after = [r for r in regimes.regimes if r.k > regimes.supported]
    if not after:
        return f"{title}: the law holds at every k of this grid, up to k = {regimes.supported:,}."
    end = after[0]
    why = f"it does not: {_reason(end)}"
    if end.law.fit.alpha is not None and end.n_misses is not None:
        noise = max(filter(None, (end.binomial_sd, end.document_sd)), default=None)
        why += (
            f"; alpha is {span(end.law.fit.alpha_lo, end.law.fit.alpha_hi)}, with {end.n_misses:,} misses and a noise "
            f"of {short(noise)} against a signal of {short(end.signal)}"
        )
    return f"{title}: the law holds up to k = {regimes.supported:,}; at k = {end.k:,} {why}."
