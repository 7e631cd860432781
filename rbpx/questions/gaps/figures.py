"""Draws the exponent of each pair of texts. Source: arXiv 2510.24626."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, bars, drawn, points, rule
from rbpx.display.table import Table
from rbpx.display.vocabulary import AXES
from rbpx.questions.gaps.pairs import LossGap
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record


def figures(pairs: Sequence[Sequence[LossGap]], rows: Sequence[Record], table: Table) -> Iterator[Figure | Undrawn]:
    """Draws the exponents of all pairs (the rows)."""
    group, title = pairs[0][0].a.group, "Do the gaps close?"
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
        from_fits([row["fit_id"] for row in rows], *(side.group for pair in pairs for side in (pair[0].a, pair[0].b))),
    )
