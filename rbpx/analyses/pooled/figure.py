"""Pooled laws in; the residuals of all families about the shared law against S, for each law, out."""

from collections.abc import Sequence
from typing import Any

from rbpx.analyses.pooled.analysis import Pooled, PooledLaw
from rbpx.analyses.pooled.words import residuals
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.residuals import CAPTION, residual_chart, residual_values
from rbpx.display.names import law_title
from rbpx.groups.question import spelled

__all__ = ["figures"]


def figures(results: Sequence[Pooled], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """A figure for each text and law."""
    return [
        _figure(f"{at}-{n}", pooled, law, fit_ids)
        for at, pooled in enumerate(results)
        for n, law in enumerate(pooled.laws)
    ]


def _figure(place: str, pooled: Pooled, law: PooledLaw, fit_ids: Sequence[str]) -> Figure | Undrawn:
    fit, what = law.fits[0], f"{law_title(law.law, law.k)} on {pooled.group.first.dataset}"
    name, title = f"residuals-{place}", f"{what}: what one exponent leaves"
    if fit.alpha is None:
        return Undrawn(name, title, fit.status.remedy)
    rows: list[dict[str, Any]] = [
        {"series": family, "size": run.size, "S": run.non_embedding_params, "residual": left}
        for family, points, of_family in zip(law.families, law.points, fit.residuals, strict=True)
        for run, left in zip(points.runs, of_family, strict=True)
    ]
    return Figure(
        name=name,
        title=title,
        says=f"Residuals of {', '.join(law.families)} against size: {residuals(fit)}.",
        caption=CAPTION,
        spec=residual_chart(rows, law.families, "family"),
        values=residual_values(name, title, rows, "family"),
        sql=spelled("laws", fit_ids=fit_ids),
        run_ids=tuple(run_id for points in law.points for run in points.runs for run_id in run.run_ids),
    )
