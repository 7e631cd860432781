"""Pictures of surfaces: fitted surfaces of one group in; IsoFLOP curves, contours and the optimum's band out.

Source: arXiv 2203.15556, figures 2 to 4.
"""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from rbpx.analyses.surface.curves import contour_rows, drawn, isoflop_rows, optimum_rows, run_rows
from rbpx.analyses.surface.law import SurfaceLaw, Surfaces
from rbpx.analyses.surface.words import compute, design_says, optimum_says
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import S_TITLE, colour, dash, data, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, magnitude, magnitudes, named, sheet_of
from rbpx.display.names import law_title
from rbpx.display.spread import spread
from rbpx.groups.question import spelled

__all__ = ["figures"]

_MOST_LAWS: Final = 2  # of a group
_D_TITLE: Final = "D, training tokens"
_C_TITLE: Final = "C, training FLOPs"


def figures(result: Surfaces, at: int, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Contours, IsoFLOP curves and the optimum of cross-entropy and of -ln RBP at the smallest k.

    Args:
        result: of one group.
        at: its number, part of names.
        fit_ids: of its fits.
    """
    found: list[Figure | Undrawn] = []
    for law in drawn(result.laws, _MOST_LAWS):
        name = f"{at}-{law.trained.law}{law.trained.k or ''}"
        found += [
            _contours(result, law, f"contours-{name}", fit_ids),
            _isoflop(result, law, f"isoflop-{name}", fit_ids),
            _optimum(result, law, f"optimum-{name}", fit_ids),
        ]
    return found


def _title(result: Surfaces, law: SurfaceLaw) -> str:
    return f"{law_title(law.trained.law, law.trained.k)}, {result.group.title}"


def _figure(
    result: Surfaces, name: str, title: str, words: tuple[str, str], spec: Any, values: Sheet, ids: Sequence[str]
) -> Figure:
    says, caption = words
    return Figure(name, title, says, caption, spec, values, spelled("laws", fit_ids=ids), tuple(result.group.run_ids))


def _contours(result: Surfaces, law: SurfaceLaw, name: str, ids: Sequence[str]) -> Figure | Undrawn:
    title, runs, lines = f"Contours: {_title(result, law)}", run_rows(law), contour_rows(law, law.best)
    levels = list(dict.fromkeys(row["level"] for row in lines))
    x, y = logarithmic(alt.X, "S", S_TITLE), logarithmic(alt.Y, "D", _D_TITLE, "~s")
    hue, line = colour("level", "y", levels), dash("level", levels)
    base = alt.Chart(data(lines)).encode(x=x, y=y)
    marks = alt.Chart(data(runs)).mark_point(filled=False, size=50, color="gray").encode(
        x=x, y=y, tooltip=tips(size="size", S="S|.3~s", D="D|.3~s", y="y|.4~g")
    )  # fmt: skip
    layers = [base.mark_line().encode(color=hue, strokeDash=line)] if lines else []
    optimum = [row for row in optimum_rows(law)[0] if _inside(row, runs)]
    if optimum:
        path = alt.Chart(data(optimum)).encode(x=x, y=y)
        layers.append(path.mark_line(strokeDash=[1, 4], strokeWidth=3, color="gray"))
    rows = [[named(r["size"]), magnitude(r["S"]), magnitude(r["D"]), magnitude(r["y"])] for r in runs]
    columns = [("size", "size"), ("S", "S"), ("D", "D"), ("y", "y")]
    together = design_says(law.best.fit.design, law.trained.runs.S_N.tolist(), law.trained.runs.D_N.tolist())
    says = f"{len(runs)} runs on lines of equal y, which falls towards large models and many tokens"
    caption = f"Lines of equal y of the form {law.best.fit.form}; circles: the runs; dots: the best of each budget."
    caption += "" if together is None else f" {together[0].upper()}{together[1:]}: lines far from the runs say nothing."
    sheet = sheet_of(name, f"{title}: values", columns, rows)
    return _figure(result, name, title, (f"{says}.", caption), spec_of(alt.layer(*layers, marks), 360), sheet, ids)


def _compute(law: SurfaceLaw) -> str:
    if law.trained.n_stated:
        return f"C as {compute(law)}"
    return "C = 6 N D, N all parameters" if law.head_counts else "C = 6 S D"


def _inside(row: dict[str, Any], runs: Sequence[dict[str, Any]]) -> bool:
    """Whether a point lies within the contours."""
    return all(
        min(run[axis] for run in runs) / 2 <= (row[axis] or 0.0) <= 2 * max(run[axis] for run in runs) for axis in "SD"
    )


def _isoflop(result: Surfaces, law: SurfaceLaw, name: str, ids: Sequence[str]) -> Figure | Undrawn:
    title = f"IsoFLOP curves: {_title(result, law)}"
    points, curves, minima = isoflop_rows(law)
    order = spread(list(dict.fromkeys(row["budget"] for row in points)), MOST_SERIES)
    if not order:
        return Undrawn(
            name, title, f"No budget of compute is reached by three sizes; train sizes for equal {_compute(law)}."
        )
    points, curves, minima = ([row for row in rows if row["budget"] in order] for rows in (points, curves, minima))
    x, y = logarithmic(alt.X, "S", S_TITLE), logarithmic(alt.Y, "y", law_title(law.trained.law, law.trained.k))
    hue, form, line = colour("budget", "", order), shape("budget", "", order), dash("budget", order)
    tooltip = tips(budget="budget", S="S|.3~s", y="y|.4~g")
    layers = [
        alt.Chart(data(curves)).mark_line().encode(x=x, y=y, color=hue, strokeDash=line),
        alt.Chart(data(points)).mark_point().encode(x=x, y=y, color=hue, shape=form, tooltip=tooltip),
    ]
    if minima:
        best = alt.Chart(data(minima)).encode(x=x, y=y, tooltip=tooltip)
        layers.append(best.mark_point(filled=False, size=200, shape="circle", color="gray"))
    rows = [[named(r["budget"]), magnitude(r["S"]), magnitude(r["y"])] for r in points]
    sheet = sheet_of(name, f"{title}: values", [("budget", "budget"), ("S", "S"), ("y", "y")], rows)
    says = "; ".join(f"{m['budget']}: least y at S = {m['S']:.3g}" for m in minima) or "no minimum lies between sizes"
    caption = (
        f"Runs of each budget {_compute(law)}, sizes between two runs interpolated in ln D, with a parabola in ln S; "
        "rings: minima."
    )
    return _figure(result, name, title, (f"{says}.", caption), spec_of(alt.layer(*layers), 320), sheet, ids)


def _optimum(result: Surfaces, law: SurfaceLaw, name: str, ids: Sequence[str]) -> Figure | Undrawn:
    title = f"The best size of a budget: {_title(result, law)}"
    line, minima = optimum_rows(law)
    if not line:
        return Undrawn(
            name, title, "No surface has an optimum: size and tokens vary together, or a constant has no value."
        )
    x, y = logarithmic(alt.X, "C", _C_TITLE, "~e"), logarithmic(alt.Y, "S", "best S", "~s")
    tooltip = tips(way="by", C="C|.3~g", S="best S|.3~s", D="best D|.3~s", lo="95 % from|.3~s", hi="to|.3~s")
    base = alt.Chart(data(line)).encode(x=x)
    layers = [
        base.transform_filter("isValid(datum.lo) && isValid(datum.hi)").mark_area().encode(
            y=alt.Y("lo:Q", title="best S"), y2="hi:Q"
        ),
        base.mark_line().encode(y=y, tooltip=tooltip),
    ]  # fmt: skip
    if minima:
        marks = alt.Chart(data(minima)).encode(x=x)
        layers.append(marks.mark_point(shape="square").encode(y=y, tooltip=tooltip))
    rows = [
        [named(r["way"]), magnitude(r["C"]), magnitude(r["S"]), magnitudes(r["lo"], r["hi"]), magnitude(r["D"])]
        for r in (*line, *minima)
    ]
    columns = [("by", "way"), ("C", "C"), ("best S", "S"), ("95 %", "lo hi"), ("best D", "D")]
    sheet = sheet_of(name, f"{title}: values", columns, rows)
    says = (
        law.optimal and optimum_says(law, law.optimal)
    ) or f"the best size goes from {line[0]['S']:.3g} to {line[-1]['S']:.3g}"
    caption = f"Line and 95 % band: by the surface, for {_compute(law)}; squares: minima of the IsoFLOP parabolas."
    return _figure(result, name, title, (f"{says}.", caption), spec_of(alt.layer(*layers), 300), sheet, ids)
