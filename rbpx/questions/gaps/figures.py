"""Draws the exponent of each pair of texts, and its ratio of losses against S. Source: arXiv 2510.24626."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, bars, drawn, points, rule, scale_of
from rbpx.display.chart.laws import law_figure
from rbpx.display.view import Table
from rbpx.display.vocabulary import AXES
from rbpx.questions.gaps.pairs import LossGap
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record

MOST_PAIRS: Final = 6  # with sentences and figures of their own; 6 texts have 15 pairs, which would fill a page


def figures(pairs: Sequence[Sequence[LossGap]], rows: Sequence[Record], table: Table) -> Iterator[Figure | Undrawn]:
    """Draws the exponents of all pairs (the rows), then the ratios of each of the first six."""
    group, fit_ids, title = pairs[0][0].a.group, [row["fit_id"] for row in rows], "Do the gaps close?"
    shown, words = [row for row in rows if row["delta"] is not None], AXES[group.axis]
    if not shown:
        yield Undrawn("delta", title, "No pair has a ratio of losses at three sizes.")
        return
    texts, losses = (tuple(dict.fromkeys(row[key] for row in shown)) for key in ("pair", "loss"))
    said = "; ".join(f"{row['loss']} of {row['pair']} {row['verdict'] or 'unknown'}" for row in shown[:12])
    x, y = Scale("delta", "δ", zero=True, form="+.3~f"), Scale("pair", "", names=texts)
    marks = (rule(delta=0.0), bars("delta_lo", "delta_hi"), points())
    yield drawn(
        replace(table, name="delta", title=title),
        Chart(x, y, marks, "loss", "loss", height=max(140, 14 * len(losses) * len(texts))),
        f"Exponents of the ratio of losses for {group.title_of_family}: {said}.",
        f"L_A / L_B = G·({words.x} / {words.x}_ref)^δ, A the harder. Left of 0 the gap closes {words.grows}, right of "
        "0 it opens. Bars: 95 % over documents and models, each gap by itself; verdicts are adjusted for all (Holm).",
        from_fits(fit_ids, *(side.group for pair in pairs for side in (pair[0].a, pair[0].b))),
    )
    for at, pair in enumerate(pairs[:MOST_PAIRS], 1):
        yield _ratios(pair, f"ratio{at}", fit_ids)


def _ratios(pair: Sequence[LossGap], name: str, fit_ids: Sequence[str]) -> Figure | Undrawn:
    losses, (a, b) = [loss for loss in pair if loss.gap.delta.value is not None], (pair[0].a, pair[0].b)
    title, words = f"The gap between {a.name} and {b.name}", AXES[a.group.axis]
    if not losses:
        return Undrawn(name, title, "The ratio of losses is not known at three sizes.")
    said = ", ".join(f"{loss.name} {loss.gap.ratio.value:.3f}" for loss in losses)
    says = (
        f"Losses of {a.group.title_of_family}, their ratio against {words.one}; at the geometric mean {said}.",
        "Ratio of the losses of each model, the harder of the two on top. At 1 the gap is closed. Bands: where 95 % of "
        "new models would lie.",
    )
    x, y = scale_of(a.group.axis), Scale("ratio", "L_A / L_B")
    sizes = {run.x: run.size for run in a.group.runs if run.x}
    laws = [(f"{loss.name}, {loss.a.name} / {loss.b.name}", loss.gap.fit) for loss in losses]
    return law_figure(name, title, laws, x, y, says, from_fits(fit_ids, a.group, b.group), sizes=sizes)
