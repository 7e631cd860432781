"""Draws calibration: T* against S, the loss of each size against T, and the laws of cross-entropy at T = 1 and T*."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Origin,
    Scale,
    Undrawn,
    bars,
    drawn,
    line,
    points,
    rule,
    scale_of,
    spread,
)
from rbpx.display.chart.laws import law_figure
from rbpx.display.view import View, decimal, place, text, with_ends
from rbpx.laws.temperature import loss_at
from rbpx.questions.question import one_by_one
from rbpx.questions.temperature.analysis import RunTemperature, Temperatures
from rbpx.runs.group import labels_of
from rbpx.runs.origin import from_fits

TITLE: Final = "The temperature that the text prefers"
PREFERRED: Final = View[tuple[str, RunTemperature]](
    "temperature",
    text("size", "size", lambda row: row[0]),
    place(lambda row: row[1].run, spare=2),
    with_ends(
        "T*", "temperature", lambda row: row[1].temperature,
        means="where softmax(z / T) has the least mean cross-entropy; above 1 the model is overconfident here; "
        "intervals are over documents, with T* found anew for each resample",
    ),
)  # fmt: skip
COSTS: Final = View[tuple[str, float, float]](
    "loss",
    text("size", "size", lambda row: row[0]),
    decimal("T", "T", lambda row: row[1], 3),
    decimal("nats above the least", "nats", lambda row: row[2]),
)
_DRAWN_T: Final = np.geomspace(0.7, 1.6, 37)


def labelled(runs: Sequence[RunTemperature]) -> list[tuple[str, RunTemperature]]:
    """Runs with labels that tell their sizes apart."""
    return list(zip(labels_of([each.run for each in runs]), runs, strict=True))


@one_by_one
def figures(result: Temperatures, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Draw T* against S, what other temperatures cost, and both laws."""
    known = [(size, each) for size, each in labelled(result.runs) if each.temperature.value is not None]
    group, origin = result.group, from_fits(fit_ids, result.group)
    if not result.laws:
        command = f"python -m rbpx temperature family={group.first.family} dataset={group.first.dataset}"
        reason = f"A store holds no logits, so this needs another pass over the models: {command}"
        yield Undrawn("temperature", TITLE, reason)
        return
    if known:
        ends = " and ".join(f"{each.temperature.value:.3f} at {size}" for size, each in (known[0], known[-1]))
        marks = (rule(temperature=1.0), line(), bars("temperature_lo", "temperature_hi"), points())
        yield drawn(
            PREFERRED.table(TITLE, known),
            Chart(scale_of(group.axis), Scale("temperature", "T*", form=".2f"), marks),
            f"T* for {group.title}: {ends}.",
            "1 is a calibrated model. Bars: 95 % over documents.",
            origin,
        )
        yield _costs(result, known, origin)
    else:
        yield Undrawn("temperature", TITLE, "Every T* lies outside the temperatures that were measured.")
    laws = [(name, law.fit) for name, law in zip(("T = 1", "T*"), result.laws, strict=True)]
    title, y = "Cross-entropy at T = 1 and at T*", Scale("nats", "nats per token", log=True)
    words = (f"{title} against size for {group.title}.", "Bands: where 95 % of new models would lie.")
    yield law_figure("laws", title, laws, scale_of(group.axis), y, words, origin)


def _costs(result: Temperatures, known: Sequence[tuple[str, RunTemperature]], origin: Origin) -> Figure:
    chosen = spread(known, MOST_SERIES)
    rows = [
        (size, float(T), float(loss) - (each.at_best.value or 0.0))
        for size, each in chosen
        for T, loss in zip(_DRAWN_T, loss_at(1 / _DRAWN_T, each.loss_3J, each.beta_J), strict=True)
    ]
    x, y = Scale("T", "T", form=".1f"), Scale("nats", "nats above the least", form=".2f")
    title, valleys = "What another temperature costs", line(COSTS.table("", rows).records())
    part = f" {len(chosen)} of {len(known)} sizes are drawn." if len(chosen) < len(known) else ""
    return drawn(
        COSTS.table(title, [row for at, row in enumerate(rows) if at % len(_DRAWN_T) % 4 == 0]),
        Chart(x, y, (valleys,), "size", "size"),
        f"Cross-entropy above its least value against T for {result.group.title}, a valley for each size.",
        f"Cross-entropy at T minus that at T*, nats per token.{part}",
        origin,
    )
