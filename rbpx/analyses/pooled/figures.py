"""Pooled laws drawn: the residuals of all families about the shared law against S."""

from collections.abc import Sequence

from rbpx.analyses.pooled.analysis import Pooled, PooledLaw
from rbpx.analyses.pooled.words import residuals, title
from rbpx.display.chart.figure import Figure, Origin, Undrawn
from rbpx.display.chart.laws import residual_figure
from rbpx.groups.question import spelled


def figures(results: Sequence[Pooled], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """A figure for each text and law."""
    return [
        _figure(f"residuals-{at}-{n}", f"{title(pooled, law)}: what one exponent leaves", law, fit_ids)
        for at, pooled in enumerate(results)
        for n, law in enumerate(pooled.laws)
    ]


def _figure(name: str, title: str, law: PooledLaw, fit_ids: Sequence[str]) -> Figure | Undrawn:
    fit = law.fits[0]
    if fit.alpha is None:
        return Undrawn(name, title, fit.status.remedy)
    rows = [
        (family, run.size, run, left)
        for family, points, of_family in zip(law.families, law.points, fit.residuals, strict=True)
        for run, left in zip(points.runs, of_family, strict=True)
    ]
    says = f"Residuals of {', '.join(law.families)} against size: {residuals(fit)}."
    run_ids = tuple(run_id for _, _, run, _ in rows for run_id in run.run_ids)
    return residual_figure(name, title, rows, "family", says, Origin(spelled("laws", fit_ids=fit_ids), run_ids))
