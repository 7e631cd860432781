"""Draws calibration: T* against S, and the laws of cross-entropy at T = 1 and at T*."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, bars, drawn, line, points, rule, scale_of
from rbpx.display.chart.laws import law_figure
from rbpx.display.view import View, place, text, with_ends
from rbpx.laws.power.law import PowerLaw
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits
from rbpx.spelling import typed
from rbpx.store.store import Record

TITLE: Final = "The temperature that the text prefers"
PREFERRED: Final = View[Record](
    "temperature",
    text("size", "size"),
    place(spare=2),
    with_ends("T*", "temperature", means="of softmax(z / T); above 1 the model is overconfident on this text"),
)


def missing(group: Group) -> str:
    """Returns the command that measures the losses."""
    command = typed("temperature", family=group.first.family, dataset=group.first.dataset)
    return f"A store holds no logits, so this needs another pass over the models: {command}"


def unmeasured(group: Group) -> Sequence[Undrawn]:
    """Returns the figure that names this command."""
    return [Undrawn("temperature", TITLE, missing(group))]


def figures(
    group: Group, rows: Sequence[Record], laws: Sequence[tuple[str, PowerLaw]], fit_ids: Sequence[str]
) -> Iterator[Figure | Undrawn]:
    """Draws T* against S, and the laws of cross-entropy at T = 1 and at T*."""
    origin, x = from_fits(fit_ids, group), scale_of(group.axis)
    known = [row for row in rows if row["temperature"] is not None]
    if known:
        ends = " and ".join(f"{row['temperature']:.3f} at {row['size']}" for row in (known[0], known[-1]))
        marks = (rule(temperature=1.0), line(), bars("temperature_lo", "temperature_hi"), points())
        yield drawn(
            PREFERRED.table(TITLE, known),
            Chart(x, Scale("temperature", "T*", form=".2f"), marks),
            f"T* for {group.title}: {ends}.",
            "1 is a calibrated model. Bars: 95 % over documents.",
            origin,
        )
    else:
        yield Undrawn("temperature", TITLE, "Every T* lies outside the temperatures that were measured.")
    title, y = "Cross-entropy at T = 1 and at T*", Scale("nats", "nats per token", log=True)
    words = (f"{title} against size for {group.title}.", "Bands: where 95 % of new models would lie.")
    yield law_figure("laws", title, laws, x, y, words, origin)
