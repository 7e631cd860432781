"""The distribution of the ranks in the report: which form fits best, and the laws that it implies."""

from rbpx.analyses.ranks.analysis import PAPER, Closure, Ranks, RunRanks
from rbpx.analyses.ranks.figure import figures, form
from rbpx.counts import number_of
from rbpx.display.chart.sheet import Cell, Sheet, decimal, entry, named, sheet_of, span, state
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]

_QUANTITIES = {"cross_entropy": "cross-entropy", "error_entropy": "error-entropy"}


def section(result: Ranks, sources: Sources) -> Section:
    """Ranks with their fitted forms, and the laws that follow from them."""
    statuses = [
        (f"{form(rival.fit.distribution)} of {each.run.size}", rival.fit.status)
        for each in result.runs
        for rival in each.rivals
    ]
    sheets = [_rivals(result)] + ([_closures(result)] if result.closures else [])
    return Section(
        "ranks",
        "The distribution of the ranks",
        tuple(_sentences(result)),
        tuple(figures(sources.connection, result, sources.fit_ids)),
        tuple(sheets),
        doubts_of(statuses),
    )


def _sentences(result: Ranks) -> list[str]:
    sentences = []
    if result.favoured is not None:
        best = sum(each.best == result.favoured for each in result.runs)
        sentences.append(
            f"Of the distributions over all ranks, {form(result.favoured)} has the smallest AIC summed over all sizes "
            f"(and the smallest at {best} of {number_of(len(result.runs), 'size')})."
        )
    one = next((c for c in result.closures if c.distribution == PAPER and c.quantity == "rbp" and c.k == 1), None)
    if one is not None and one.level[0] is not None and one.derived.alpha is not None:
        difference = interval(one.ratio.alpha, one.ratio.alpha_lo, one.ratio.alpha_hi)
        sentences.append(
            f"From the published lognormal follows α = {one.derived.alpha:.3f} of −ln RBP_1, where "
            f"{one.measured.alpha or 0.0:.3f} is measured: a difference of {difference}. Its level is "
            f"{one.level[0]:.2f} times the measured one."
        )
    return sentences


def _rivals(result: Ranks) -> Sheet:
    columns = [("size", "size"), ("distribution", "distribution"), ("nats behind", "nats_behind")]
    columns += [("95 %", "nats_behind_lo nats_behind_hi"), ("AIC", "aic"), ("distance", "distance")]
    columns += [("mu", "mu"), ("sigma", "sigma"), ("status", "status")]
    rows = [row for each in result.runs for row in _of_run(each)]
    note = (
        "Nats behind: log-likelihood per token lost to the best distribution over the same ranks; the published fit "
        "leaves rank 1 out, so it has none. Distance: largest difference of the cumulative shares."
    )
    return sheet_of("rivals", "The lognormal and its rivals", columns, rows, note)


def _of_run(each: RunRanks) -> list[list[Cell]]:
    rows = []
    for rival in each.rivals:
        fit = rival.fit
        lost, ends = rival.behind if rival.behind is not None else (None, None)
        aic = entry("–" if fit.aic is None else f"{fit.aic:,.0f}", (fit.aic,))
        rows.append(
            [
                named(each.run.size),
                named(form(fit.distribution)),
                decimal(lost),
                span(*ends) if ends is not None else span(None, None),
                aic,
                decimal(fit.distance),
                decimal(fit.params.get("mu"), 2),
                decimal(fit.params.get("sigma"), 2),
                state(fit.status),
            ]
        )
    return rows


def _closures(result: Ranks) -> Sheet:
    columns = [("distribution", "distribution"), ("quantity", "quantity"), ("α measured", "alpha_measured")]
    columns += [("α derived", "alpha_derived"), ("derived − measured", "difference")]
    columns += [("95 %", "difference_lo difference_hi"), ("level", "level"), ("95 % of it", "level_lo level_hi")]
    rows = [_closure(closure) for closure in result.closures]
    note = (
        "Difference: below 0 where the derived law is flatter. Level: derived over measured at the geometric mean of "
        "the sizes. Exact closure would be 0 and 1."
    )
    return sheet_of("closures", "Derived laws beside measured laws", columns, rows, note)


def _closure(closure: Closure) -> list[Cell]:
    level, lo, hi = closure.level
    quantity = _QUANTITIES.get(closure.quantity, f"−ln RBP_{closure.k}")

    return [
        named(form(closure.distribution)),
        named(quantity),
        decimal(closure.measured.alpha),
        decimal(closure.derived.alpha),
        decimal(closure.ratio.alpha),
        span(closure.ratio.alpha_lo, closure.ratio.alpha_hi),
        decimal(level, 3),
        span(lo, hi, 3),
    ]
