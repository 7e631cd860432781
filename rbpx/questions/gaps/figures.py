"""Draws gaps: the exponent of each pair of texts, and its ratio of losses against S. Source: arXiv 2510.24626."""

from collections.abc import Sequence
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, bars, drawn, points, rule, scale_of
from rbpx.display.chart.laws import law_figure
from rbpx.display.view import View, text, with_ends
from rbpx.display.vocabulary import AXES
from rbpx.questions.gaps.analysis import Gaps, LossGap
from rbpx.questions.gaps.words import MOST_PAIRS
from rbpx.runs.origin import from_fits

EXPONENTS: Final = View[tuple[Gaps, LossGap]](
    "delta",
    text("texts", "texts", lambda row: " / ".join(sorted(row[0].sides(row[1])))),
    text("A / B", "pair", lambda row: " / ".join(row[0].sides(row[1]))),
    text("loss", "loss", lambda row: row[1].name),
    with_ends("δ", "delta", lambda row: row[1].gap.delta),
    text("gap", "verdict", lambda row: row[1].gap.verdict),
)


def figures(results: Sequence[Gaps], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Draw the exponents of all pairs, then the ratios of each of the first six."""
    ratios = [_ratios(gaps, f"ratio{at}", fit_ids) for at, gaps in enumerate(results[:MOST_PAIRS], 1)]
    return [_exponents(results, fit_ids), *ratios]


def _exponents(results: Sequence[Gaps], fit_ids: Sequence[str]) -> Figure | Undrawn:
    title, axis = "Do the gaps close?", AXES[results[0].group.axis]
    rows = [(gaps, loss) for gaps in results for loss in gaps.gaps if loss.gap.delta.value is not None]
    if not rows:
        return Undrawn("delta", title, "No pair has a ratio of losses at three sizes.")
    table = EXPONENTS.table(title, rows)
    texts = tuple(dict.fromkeys(str(row["texts"]) for row in table.records()))
    losses = {loss.name for _, loss in rows}
    said = "; ".join(
        f"{loss.name} of {' / '.join(g.sides(loss))} {loss.gap.verdict or 'unknown'}" for g, loss in rows[:12]
    )
    x, y = Scale("delta", "δ", zero=True, form="+.3~f"), Scale("texts", "", names=texts)
    marks = (rule(delta=0.0), bars("delta_lo", "delta_hi"), points())
    return drawn(
        table,
        Chart(x, y, marks, "loss", "loss", height=max(140, 14 * len(losses) * len(texts))),
        f"Exponents of the ratio of losses for {results[0].group.title_of_family}: {said}.",
        f"L_A / L_B = G·({axis.x} / {axis.x}_ref)^δ, A the harder. Left of 0 the gap closes {axis.grows}, right of 0 "
        "it opens. Bars: 95 % over documents and models, each gap by itself; verdicts are adjusted for all (Holm).",
        from_fits(fit_ids, *(group for gaps in results for group in (gaps.group, gaps.other))),
    )


def _ratios(gaps: Gaps, name: str, fit_ids: Sequence[str]) -> Figure | Undrawn:
    losses = [loss for loss in gaps.gaps if loss.gap.fit.alpha is not None]
    if not losses:
        return Undrawn(name, "The gap between two texts", "The ratio of losses is not known at three sizes.")
    title, axis = f"The gap between {' and '.join(gaps.sides(losses[0]))}", gaps.group.axis
    said = ", ".join(f"{loss.name} {loss.gap.ratio.value:.3f}" for loss in losses if loss.gap.ratio.value is not None)
    words = (
        f"Losses of {gaps.group.title_of_family}, their ratio against {AXES[axis].one}; at the geometric mean {said}.",
        "Ratio of the losses of each model, the harder of the two on top. At 1 the gap is closed. Bands: where 95 % of "
        "new models would lie.",
    )
    laws = [(f"{loss.name}, {' / '.join(gaps.sides(loss))}", loss.gap.fit) for loss in losses]
    x, y, sizes = scale_of(axis), Scale("ratio", "L_A / L_B"), {run.x: run.size for run in gaps.group.runs if run.x}
    return law_figure(name, title, laws, x, y, words, from_fits(fit_ids, gaps.group, gaps.other), sizes=sizes)
