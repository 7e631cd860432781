"""Surfaces in the report: what they say of size and tokens, pictures, and their constants side by side."""

from collections.abc import Sequence

from rbpx.analyses.surface.figure import figures
from rbpx.analyses.surface.law import SurfaceLaw, Surfaces
from rbpx.analyses.surface.words import (
    about,
    compared,
    computes,
    design_says,
    exponents_of,
    isoflop_says,
    left,
    optimum_says,
    without_optimum,
)
from rbpx.display.chart.sheet import (
    Cell,
    Sheet,
    decimal,
    error,
    magnitude,
    magnitudes,
    named,
    sheet_of,
    span,
    state,
    whole,
)
from rbpx.display.names import law_title
from rbpx.display.section import Section, Sources, doubts_of
from rbpx.laws.interval import Estimate

__all__ = ["section"]

_NONE = Estimate(None, None, None)


def section(results: Sequence[Surfaces], sources: Sources) -> Section:
    """All groups of one family."""
    statuses = [
        (f"{_name(surfaces, law)}, {form.fit.form}", form.status)
        for surfaces in results
        for law in surfaces.laws
        for form in law.forms
    ]
    return Section(
        "surface",
        f"Size and tokens, {results[0].group.first.family}",
        tuple(line for surfaces in results for line in _sentences(surfaces)),
        tuple(figure for at, surfaces in enumerate(results) for figure in figures(surfaces, at, sources.fit_ids)),
        (_constants(results), _optima(results)),
        doubts_of(statuses),
    )


def _name(surfaces: Surfaces, law: SurfaceLaw) -> str:
    return f"{law_title(law.trained.law, law.trained.k)} on {surfaces.group.first.dataset}"


def _sentences(surfaces: Surfaces) -> list[str]:
    said = [f"{surfaces.group.title}: {about(surfaces.group)}"]
    for law in surfaces.laws:
        together = design_says(law.best.fit.design, law.trained.runs.S_N.tolist(), law.trained.runs.D_N.tolist())
        best = None if law.optimal is None else optimum_says(law, law.optimal)
        name = _name(surfaces, law)
        found = (together, left(law.best), compared(law), without_optimum(law), isoflop_says(law))
        said += [f"{name}: {each}." for each in found if each is not None]
        said += [] if best is None else [f"{best}."]
    return said


def _constants(results: Sequence[Surfaces]) -> Sheet:
    rows: list[list[Cell]] = []
    for surfaces in results:
        for law in surfaces.laws:
            for form in law.forms:
                fit = form.fit
                in_S, in_D = exponents_of(form)
                E, A, B = (fit.constants.get(name, _NONE) for name in ("E", "A", "B"))
                exponents = [decimal(in_S.value), span(in_S.lo, in_S.hi), decimal(in_D.value), span(in_D.lo, in_D.hi)]
                others = [decimal(E.value), span(E.lo, E.hi), magnitude(A.value), magnitude(B.value)]
                judged = [whole(fit.n_points), magnitude(fit.aic), magnitude(fit.bic), error(form.held_out_error)]
                names = [named(_name(surfaces, law)), named(fit.form)]
                rows.append([*names, *exponents, *others, *judged, state(form.status)])
    columns = [("quantity", "law"), ("form", "form"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi"), ("β", "beta")]
    columns += [("95 %", "beta_lo beta_hi"), ("E", "E"), ("95 %", "E_lo E_hi"), ("A", "A"), ("B", "B")]
    columns += [("points", "n_points"), ("AIC", "aic"), ("BIC", "bic"), ("held out", "held_out_error")]
    note = "α, β: exponents of S and D. Held out: mean |error| at the largest S, D and C, predicted from the others."
    return sheet_of("surfaces", "Surfaces", [*columns, ("status", "status")], rows, note)


def _optima(results: Sequence[Surfaces]) -> Sheet:
    rows: list[list[Cell]] = []
    for surfaces in results:
        for law in surfaces.laws:
            if law.optimal is None:
                continue
            for best in law.optimal.shown:
                S, D = best.S, best.D
                ratio = None if S.value is None or D.value is None else D.value / S.value
                of = [named(_name(surfaces, law)), named(law.optimal.fit.form), magnitude(best.C)]
                values = [magnitude(S.value), magnitudes(S.lo, S.hi), magnitude(D.value), magnitudes(D.lo, D.hi)]
                rows.append([*of, *values, magnitude(ratio), decimal(best.y.value)])
    columns = [
        ("quantity", "law"),
        ("form", "form"),
        ("C", "C"),
        ("best S", "S"),
        ("95 %", "S_lo S_hi"),
        ("best D", "D"),
    ]
    columns += [("95 %", "D_lo D_hi"), ("D/S", "ratio"), ("y", "y")]
    title = f"The best of a budget, {computes(law for surfaces in results for law in surfaces.laws)}"
    return sheet_of("optima", title, columns, rows)
