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
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.temperature import loss_at
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record
from rbpx.typed import typed

TITLE: Final = "The temperature that the text prefers"
PREFERRED: Final = View[Record](
    "temperature",
    text("size", "size"),
    place(spare=2),
    with_ends(
        "T*", "temperature",
        means="where softmax(z / T) has the least mean cross-entropy; above 1 the model is overconfident here; "
        "intervals are over documents, with T* found anew for each resample",
    ),
)  # fmt: skip
COSTS: Final = View[Record](
    "loss", text("size", "size"), decimal("T", "T", digits=3), decimal("nats above the least", "nats")
)
Curve = tuple[Floats, Floats]
"""Nodes of beta = 1 / T, [J], and mean loss (nats per token) there, its slope and its curvature in beta, [3, J]."""
_DRAWN_T: Final = np.geomspace(0.7, 1.6, 37)


def unmeasured(group: Group) -> Sequence[Undrawn]:
    """Say what measures the losses."""
    command = typed("temperature", family=group.first.family, dataset=group.first.dataset)
    reason = f"A store holds no logits, so this needs another pass over the models: {command}"
    return [Undrawn("temperature", TITLE, reason)]


def figures(
    group: Group, runs: Sequence[tuple[Record, Curve]], laws: Sequence[tuple[str, PowerLaw]], fit_ids: Sequence[str]
) -> Iterator[Figure | Undrawn]:
    """Draw T* against S, what other temperatures cost, and both laws.

    Args:
        group: what they are of.
        runs: the row of each, and what its loss is at other temperatures.
        laws: of cross-entropy at T = 1 and at T*, by name.
        fit_ids: of these.
    """
    origin, x = from_fits(fit_ids, group), scale_of(group.axis)
    known = [each for each in runs if each[0]["temperature"] is not None]
    if known:
        rows = [row for row, *_ in known]
        ends = " and ".join(f"{row['temperature']:.3f} at {row['size']}" for row in (rows[0], rows[-1]))
        marks = (rule(temperature=1.0), line(), bars("temperature_lo", "temperature_hi"), points())
        yield drawn(
            PREFERRED.table(TITLE, rows),
            Chart(x, Scale("temperature", "T*", form=".2f"), marks),
            f"T* for {group.title}: {ends}.",
            "1 is a calibrated model. Bars: 95 % over documents.",
            origin,
        )
        yield _costs(group.title, known, origin)
    else:
        yield Undrawn("temperature", TITLE, "Every T* lies outside the temperatures that were measured.")
    title, y = "Cross-entropy at T = 1 and at T*", Scale("nats", "nats per token", log=True)
    words = (f"{title} against size for {group.title}.", "Bands: where 95 % of new models would lie.")
    yield law_figure("laws", title, laws, x, y, words, origin)


def _costs(title: str, known: Sequence[tuple[Record, Curve]], origin: Origin) -> Figure:
    chosen = spread(known, MOST_SERIES)
    rows = [
        {"size": row["size"], "T": float(T), "nats": float(loss) - row["cross_entropy_at_temperature_nats"]}
        for row, (beta_J, loss_3J) in chosen
        for T, loss in zip(_DRAWN_T, loss_at(1 / _DRAWN_T, loss_3J, beta_J), strict=True)
    ]
    part = f" {len(chosen)} of {len(known)} sizes are drawn." if len(chosen) < len(known) else ""
    listed = [row for at, row in enumerate(rows) if at % len(_DRAWN_T) % 4 == 0]
    x, y = Scale("T", "T", form=".1f"), Scale("nats", "nats above the least", form=".2f")
    return drawn(
        COSTS.table("What another temperature costs", listed),
        Chart(x, y, (line(rows),), "size", "size"),
        f"Cross-entropy above its least value against T for {title}, a valley for each size.",
        f"Cross-entropy at T minus that at T*, nats per token.{part}",
        origin,
    )
