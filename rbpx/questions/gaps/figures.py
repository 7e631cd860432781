"""Draws gaps: the exponent of each pair of texts, and its ratio of losses against S. Source: arXiv 2510.24626."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, bars, drawn, points, rule, scale_of
from rbpx.display.chart.laws import law_figure
from rbpx.display.view import View, text, with_ends
from rbpx.display.vocabulary import AXES
from rbpx.questions.gaps.pairs import Pair
from rbpx.questions.gaps.words import MOST_PAIRS
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record

EXPONENTS: Final = View[Record](
    "delta",
    text("texts", "texts"),
    text("A / B", "pair"),
    text("loss", "loss"),
    with_ends("δ", "delta"),
    text("gap", "verdict"),
)


def figures(pairs: Sequence[Pair], rows: Sequence[Record]) -> Iterator[Figure | Undrawn]:
    """Draw the exponents of all pairs, of which the rows are, then the ratios of each of the first six."""
    fit_ids = [row["fit_id"] for row in rows]
    yield _exponents(pairs, [row for row in rows if row["delta"] is not None], fit_ids)
    for at, pair in enumerate(pairs[:MOST_PAIRS], 1):
        yield _ratios(pair, f"ratio{at}", fit_ids)


def _exponents(pairs: Sequence[Pair], rows: Sequence[Record], fit_ids: Sequence[str]) -> Figure | Undrawn:
    title, group = "Do the gaps close?", pairs[0].one.group
    if not rows:
        return Undrawn("delta", title, "No pair has a ratio of losses at three sizes.")
    texts, losses = (tuple(dict.fromkeys(row[key] for row in rows)) for key in ("texts", "loss"))
    said = "; ".join(f"{row['loss']} of {row['pair']} {row['verdict'] or 'unknown'}" for row in rows[:12])
    x, y, words = Scale("delta", "δ", zero=True, form="+.3~f"), Scale("texts", "", names=texts), AXES[group.axis]
    marks = (rule(delta=0.0), bars("delta_lo", "delta_hi"), points())
    return drawn(
        EXPONENTS.table(title, rows),
        Chart(x, y, marks, "loss", "loss", height=max(140, 14 * len(losses) * len(texts))),
        f"Exponents of the ratio of losses for {group.title_of_family}: {said}.",
        f"L_A / L_B = G·({words.x} / {words.x}_ref)^δ, A the harder. Left of 0 the gap closes {words.grows}, right of "
        "0 it opens. Bars: 95 % over documents and models, each gap by itself; verdicts are adjusted for all (Holm).",
        from_fits(fit_ids, *(side.group for pair in pairs for side in (pair.one, pair.other))),
    )


def _ratios(pair: Pair, name: str, fit_ids: Sequence[str]) -> Figure | Undrawn:
    losses, group = [loss for loss in pair.losses if loss.gap.fit.alpha.value is not None], pair.one.group
    if not losses:
        return Undrawn(name, "The gap between two texts", "The ratio of losses is not known at three sizes.")
    said = ", ".join(f"{loss.name} {loss.gap.ratio.value:.3f}" for loss in losses if loss.gap.ratio.value is not None)
    words = (
        f"Losses of {group.title_of_family}, their ratio against {AXES[group.axis].one}; at the geometric mean {said}.",
        "Ratio of the losses of each model, the harder of the two on top. At 1 the gap is closed. Bands: where 95 % of "
        "new models would lie.",
    )
    x, y, sizes = scale_of(group.axis), Scale("ratio", "L_A / L_B"), {run.x: run.size for run in group.runs if run.x}
    laws = [(f"{loss.name}, {loss.sides}", loss.gap.fit) for loss in losses]
    title = f"The gap between {losses[0].a.name} and {losses[0].b.name}"
    origin = from_fits(fit_ids, group, pair.other.group)
    return law_figure(name, title, laws, x, y, words, origin, sizes=sizes)
