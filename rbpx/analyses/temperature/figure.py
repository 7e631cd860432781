"""Calibration: one group in, T* against S and the loss of each size against T out."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from rbpx.analyses.temperature.analysis import RunTemperature, Temperatures
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import S_TITLE, colour, dash, data, linear, logarithmic, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, decimal, named, sheet_of, span, state, whole
from rbpx.display.spread import spread
from rbpx.groups.labels import labels_of
from rbpx.groups.question import spelled
from rbpx.laws.temperature import loss_at

__all__ = ["figures"]

_DRAWN_T = np.geomspace(0.7, 1.6, 37)


def figures(result: Temperatures, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """T* against S, and what other temperatures cost."""
    known = [each for each in result.runs if each.temperature.value is not None]
    title = "The temperature that the text prefers"
    if not known:
        return [Undrawn("temperature", title, "Every T* lies beyond the temperatures that were measured.")]
    first, last = known[0], known[-1]
    group, question = result.group, spelled("laws", fit_ids=fit_ids)
    run_ids = tuple(sorted(each.run.run_id for each in result.runs))
    chosen = spread(known, MOST_SERIES)
    part = f" {len(chosen)} of {len(known)} sizes are drawn." if len(chosen) < len(known) else ""
    return [
        Figure(
            "temperature",
            title,
            f"T* for {group.title}: {first.temperature.value:.3f} at {first.run.size}, {last.temperature.value:.3f} at "
            f"{last.run.size}.",
            "T*: where softmax(z/T) has the least cross-entropy; 1 is a calibrated model, above it the model is "
            "overconfident. Bars: 95 % over documents.",
            _chart(known),
            _values(title, result),
            question,
            run_ids,
        ),
        Figure(
            "loss",
            "What another temperature costs",
            f"Cross-entropy above its least value against T for {group.title}, a valley for each size.",
            f"Cross-entropy at T minus that at T*, nats a token.{part}",
            _loss_chart(chosen),
            _losses(chosen),
            question,
            run_ids,
        ),
    ]


def _chart(runs: Sequence[RunTemperature]) -> dict[str, Any]:
    rows = [
        {
            "size": each.run.size,
            "S": each.run.non_embedding_params,
            "T": each.temperature.value,
            "lo": each.temperature.lo,
            "hi": each.temperature.hi,
        }
        for each in runs
    ]
    base = alt.Chart(data(rows)).encode(x=logarithmic(alt.X, "S", S_TITLE))
    y = linear(alt.Y, "T", "T*", form=".2f")
    tooltip = tips(size="size", S="S|,", T="T*|.4f", lo="95 % from|.4f", hi="to|.4f")
    one = alt.Chart(data([{"T": 1.0}])).mark_rule(strokeDash=[4, 4]).encode(y=alt.Y("T:Q", title="T*"))
    return spec_of(
        alt.layer(
            one,
            base.mark_line().encode(y=y),
            base.mark_rule().encode(y=alt.Y("lo:Q", title="T*"), y2="hi:Q"),
            base.mark_point().encode(y=y, tooltip=tooltip),
        )
    )


def _above(each: RunTemperature) -> list[tuple[float, float]]:
    """(T, nats above the least) of one run."""
    loss = loss_at(1 / _DRAWN_T, each.loss_3J, each.beta_J) - (each.at_best.value or 0.0)
    return list(zip(_DRAWN_T.tolist(), loss.tolist(), strict=True))


def _loss_chart(runs: Sequence[RunTemperature]) -> dict[str, Any]:
    order = labels_of([each.run for each in runs])
    rows = [
        {"size": size, "T": T, "nats": nats} for size, each in zip(order, runs, strict=True) for T, nats in _above(each)
    ]
    return spec_of(
        alt.Chart(data(rows))
        .mark_line()
        .encode(
            x=linear(alt.X, "T", "T", form=".1f"),
            y=linear(alt.Y, "nats", "nats above the least", form=".2f"),
            color=colour("size", "size", order),
            strokeDash=dash("size", order),
            tooltip=tips(size="size", T="T|.3f", nats="nats|.4f"),
        )
    )


def _values(title: str, result: Temperatures) -> Sheet:
    rows = [
        [
            named(each.run.size),
            whole(each.run.non_embedding_params),
            decimal(each.temperature.value),
            span(each.temperature.lo, each.temperature.hi),
            decimal(each.at_one.value),
            decimal(each.at_best.value),
            span(each.at_best.lo, each.at_best.hi),
            state(each.status),
        ]
        for each in result.runs
    ]
    columns = [("size", "size"), ("S", "non_embedding_params"), ("T*", "temperature")]
    columns += [("95 %", "temperature_lo temperature_hi"), ("CE", "cross_entropy_nats")]
    columns += [("at T*", "cross_entropy_at_temperature_nats")]
    columns += [("95 % of it", "cross_entropy_at_temperature_nats_lo cross_entropy_at_temperature_nats_hi")]
    return sheet_of("temperature", f"{title}: values", [*columns, ("status", "status")], rows)


def _losses(runs: Sequence[RunTemperature]) -> Sheet:
    labelled = zip(labels_of([each.run for each in runs]), runs, strict=True)
    rows = [[named(size), decimal(T), decimal(nats)] for size, each in labelled for T, nats in _above(each)[::4]]
    columns = [("size", "size"), ("T", "T"), ("nats above the least", "nats")]
    return sheet_of("loss", "What another temperature costs: values", columns, rows)
