"""Regimes of k: the laws of one group at every k in, R2, alpha and the noise floor against k out.

Source: RBP paper (arXiv 2510.20387), section 3.3, figure 6.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rbpx.analyses.regimes.analysis import Regime, Regimes
from rbpx.display.chart.drawing import colour, dash, data, linear, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Cell, Sheet, decimal, magnitude, named, sheet_of, span, state, whole
from rbpx.groups.question import spelled

__all__ = ["figures"]

_HEIGHT = 300
_SIGNAL, _DOCUMENTS, _BINOMIAL = "change by the law", "noise of the documents", "noise of the count"


def figures(result: Regimes, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Alpha against k, R2 against k, and the change by the law beside the noise."""
    fitted = [regime for regime in result.regimes if regime.law.fit.r2 is not None]
    names = [("alpha", "Exponent against k"), ("r2", "R² against k"), ("noise", "Noise floor")]
    if not fitted:
        return [Undrawn(name, title, "No k has a law at these sizes.") for name, title in names]
    sql, run_ids = spelled("laws", fit_ids=fit_ids), tuple(result.group.run_ids)
    title = result.group.title
    reach = f"the law holds up to k = {result.supported:,}" if result.supported else "it does not hold at the first k"
    alphas = [(regime.k, regime.law.fit.alpha or 0.0) for regime in fitted]
    low, high = min(alphas, key=lambda at: at[1]), max(alphas, key=lambda at: at[1])
    alpha_range = f"from {low[1]:.3f} at k = {low[0]:,} to {high[1]:.3f} at k = {high[0]:,}"
    r2_low = min(fitted, key=lambda regime: regime.law.fit.r2 or 0.0)
    floor = [regime for regime in fitted if regime.document_sd is not None or regime.binomial_sd is not None]
    of_laws: list[Figure | Undrawn] = [
        Figure(
            "alpha",
            "Exponent against k",
            f"Alpha of the law in S for {title}, {alpha_range}; {reach}.",
            "Line: α of −ln RBP_k = C·S^−α. Band: 95 %, documents and models. Rule: the largest k at which the law "
            "holds.",
            _alpha(fitted, result.supported),
            _values("alpha", "Exponent against k: values", fitted),
            sql,
            run_ids,
        ),
        Figure(
            "r2",
            "R² against k",
            f"R2 of the law in S for {title} at each k; smallest at k = {r2_low.k:,}: {r2_low.law.fit.r2:.3f}.",
            "Points: R² of the regression of ln(−ln RBP_k) on ln S. Dashed line and band: what it would be if the law "
            "went on as where it holds, under the noise of so few misses; median and 95 %.",
            _r2(fitted, result.supported),
            _r2_values("R² against k: values", fitted),
            sql,
            run_ids,
        ),
    ]
    if not floor:
        return [
            *of_laws,
            Undrawn("noise", "Noise floor", "Noise is counted in tokens, which imported results do not have."),
        ]
    return [
        *of_laws,
        Figure(
            "noise",
            "Noise floor",
            f"Change of ln(−ln RBP_k) by the law for {title}, beside the noise at the largest size; {reach}.",
            "Above: the change of ln(−ln RBP_k) by the law from the smallest to the largest size. Below: standard "
            "deviations at the largest size, if its tokens were independent, and over documents. Where they meet, "
            "signal and noise cannot be distinguished.",
            _noise(floor, result.supported),
            _floor("Noise floor: values", floor),
            sql,
            run_ids,
        ),
    ]


def _end(supported: int | None) -> list[Any]:
    """A rule at the largest k at which the law holds."""
    if supported is None:
        return []
    base = alt.Chart(data([{"k": supported, "label": f"holds to k = {supported:,}"}])).encode(
        x=alt.X("k:Q", title="k", scale=alt.Scale(type="log"))
    )
    return [
        base.mark_rule(strokeDash=[2, 3], strokeWidth=1.5).encode(),
        base.mark_text(align="right", dx=-6, dy=-6, baseline="bottom", fontSize=12).encode(
            text="label:N", y=alt.value(_HEIGHT)
        ),
    ]


def _alpha(fitted: list[Regime], supported: int | None) -> dict[str, Any]:
    rows = [
        {"k": r.k, "alpha": r.law.fit.alpha, "lo": r.law.fit.alpha_lo, "hi": r.law.fit.alpha_hi, "r2": r.law.fit.r2}
        for r in fitted
    ]
    base = alt.Chart(data(rows)).encode(x=logarithmic(alt.X, "k", "k"))
    tooltip = tips(k="k|,", alpha="α|.4f", lo="95 % from|.4f", hi="to|.4f", r2="R²|.4f")
    return spec_of(
        alt.layer(
            base.mark_area().encode(y=alt.Y("lo:Q", title="α"), y2="hi:Q"),
            base.mark_line().encode(y=linear(alt.Y, "alpha", "α")),
            base.mark_point().encode(y=linear(alt.Y, "alpha", "α"), tooltip=tooltip),
            *_end(supported),
        ),
        _HEIGHT,
    )


def _r2(fitted: list[Regime], supported: int | None) -> dict[str, Any]:
    rows = [{"k": r.k, "r2": r.law.fit.r2, "alpha": r.law.fit.alpha} for r in fitted]
    base = alt.Chart(data(rows)).encode(x=logarithmic(alt.X, "k", "k"), y=linear(alt.Y, "r2", "R²"))
    tooltip = tips(k="k|,", r2="R²|.4f", alpha="α|.4f")
    of_noise = [
        {"k": r.k, "by_noise": r.predicted.r2, "lo": r.predicted.r2_lo, "hi": r.predicted.r2_hi}
        for r in fitted
        if r.predicted is not None
    ]
    noise = alt.Chart(data(of_noise)).encode(x=logarithmic(alt.X, "k", "k"))
    drawn = [
        noise.mark_area(opacity=0.15).encode(y=alt.Y("lo:Q", title="R²"), y2="hi:Q"),
        noise.mark_line(strokeDash=[4, 3]).encode(y=linear(alt.Y, "by_noise", "R²")),
    ]
    layers = [*(drawn if of_noise else []), base.mark_line(), base.mark_point().encode(tooltip=tooltip)]
    return spec_of(alt.layer(*layers, *_end(supported)), _HEIGHT)


def _noise(floor: list[Regime], supported: int | None) -> dict[str, Any]:
    rows = []
    for regime in floor:
        named_values = {
            _SIGNAL: None if regime.signal is None else abs(regime.signal),
            _DOCUMENTS: regime.document_sd,
            _BINOMIAL: regime.binomial_sd,
        }
        rows += [
            {"k": regime.k, "what": what, "y": value}
            for what, value in named_values.items()
            if value is not None and value > 0
        ]
    order = [_SIGNAL, _DOCUMENTS, _BINOMIAL]
    base = alt.Chart(data(rows)).encode(
        x=logarithmic(alt.X, "k", "k"),
        y=logarithmic(alt.Y, "y", "in ln(−ln RBP_k)"),
        color=colour("what", "", order),
    )
    tooltip = tips(what="what", k="k|,", y="in ln y|.3~g")
    return spec_of(
        alt.layer(
            base.mark_line().encode(strokeDash=dash("what", order)),
            base.mark_point().encode(shape=shape("what", "", order), tooltip=tooltip),
            *_end(supported),
        ),
        _HEIGHT,
    )


def _values(name: str, title: str, fitted: list[Regime]) -> Sheet:
    rows = []
    for regime in fitted:
        fit = regime.law.fit
        stands = named("holds" if regime.stands else "does not hold")
        rows.append(
            [
                whole(regime.k),
                decimal(fit.alpha),
                span(fit.alpha_lo, fit.alpha_hi),
                decimal(fit.r2),
                stands,
                state(fit.status),
            ]
        )
    columns = [("k", "k"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi"), ("R²", "r2"), ("law", "law")]
    return sheet_of(name, title, [*columns, ("status", "status")], rows)


def _r2_values(title: str, fitted: list[Regime]) -> Sheet:
    rows = [[whole(regime.k), decimal(regime.law.fit.r2), *_by_noise(regime)] for regime in fitted]
    columns = [("k", "k"), ("R²", "r2"), ("by noise", "r2_by_noise"), ("95 % of it", "r2_by_noise_lo r2_by_noise_hi")]
    return sheet_of("r2", title, [*columns, ("tokens", "n_tokens_needed")], rows)


def _by_noise(regime: Regime) -> list[Cell]:
    noise = regime.predicted
    if noise is None:
        return [decimal(None), span(None, None), magnitude(None)]
    return [decimal(noise.r2), span(noise.r2_lo, noise.r2_hi), magnitude(noise.n_tokens)]


def _floor(title: str, floor: list[Regime]) -> Sheet:
    rows = [
        [whole(r.k), whole(r.n_misses), magnitude(r.signal), magnitude(r.document_sd), magnitude(r.binomial_sd)]
        for r in floor
    ]
    columns = [("k", "k"), ("misses of the largest", "n_misses"), (_SIGNAL, "signal_ln")]
    columns += [(_DOCUMENTS, "document_sd_ln"), (_BINOMIAL, "binomial_sd_ln")]
    return sheet_of("noise", title, columns, rows)
