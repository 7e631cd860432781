"""Rows of surfaces for programs and for `fits`: fitted surfaces in, one row for each quantity and form out."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from rbpx.analyses.surface.law import FormFit, SurfaceLaw, Surfaces
from rbpx.files.digest import digest
from rbpx.groups.fits import record_of
from rbpx.laws.interval import Estimate
from rbpx.laws.power import PowerLawFit
from rbpx.laws.surface.isoflop import AlongC
from rbpx.laws.surface.optimum import Optimum
from rbpx.store.store import Record

__all__ = ["METHOD", "record_of_form", "row_of_form"]

METHOD: Final = "surface"  # in `fits`
_CONSTANTS: Final = ("A", "B", "E", "alpha", "beta")  # columns; all constants of a form stand in params


def record_of_form(surfaces: Surfaces, law: SurfaceLaw, form: FormFit) -> Record:
    """The row of `fits`; its id contains the points, because imported runs share the id of their file."""
    fit, runs = form.fit, law.trained.runs
    points = [runs.S_N.tolist(), runs.D_N.tolist(), runs.y_N.tolist()]
    identity = digest([fit.form, fit.objective_name.value, fit.delta, points])
    columns = {"form": fit.form, "objective_name": fit.objective_name.value, "delta": fit.delta}
    params = _params(surfaces, law, form)
    run_ids = sorted({run_id for run in law.trained.members for run_id in run.run_ids})
    more: Record = {"k": law.trained.k, "n": identity, "params": params, **columns}
    return record_of(surfaces.group, law.trained.law, _as_law(form, params), run_ids, METHOD, **more)


def _as_law(form: FormFit, params: dict[str, Any]) -> PowerLawFit:
    alpha = form.fit.constants.get("alpha", Estimate(None, None, None))
    return PowerLawFit(
        C=None,
        alpha=alpha.value,
        alpha_stderr=None,
        alpha_lo=alpha.lo,
        alpha_hi=alpha.hi,
        r2=None,
        aic=form.fit.aic,
        bic=form.fit.bic,
        n_points=form.fit.n_points,
        backtest_error=form.held_out_error,
        status=form.status,
        params=params,
    )


def _params(surfaces: Surfaces, law: SurfaceLaw, form: FormFit) -> dict[str, Any]:
    fit, group = form.fit, surfaces.group
    runs = law.trained.runs
    return {
        "constants": {name: _listed(each) for name, each in fit.constants.items()},
        "objective": fit.objective,
        "reasons": [reason.value for reason in form.reasons],
        "at_bound": list(fit.at_bound),
        "n_runs": fit.n_runs,
        "n_left_out": fit.n_left_out,
        "resamples": surfaces.resamples,
        "sign": law.trained.sign,
        "variant": group.variant,
        "design": None if fit.design is None else asdict(fit.design),
        "S": runs.S_N.tolist(),
        "D": runs.D_N.tolist(),
        "U": None if runs.U_N is None else runs.U_N.tolist(),
        "y": runs.y_N.tolist(),
        "group": runs.group_N.tolist(),
        "residuals_ln": [] if fit.surface is None else (-fit.surface.residual_N).tolist(),
        "against": [
            {"axis": each.axis.value, "slope": _listed(each.slope), "curvature": _listed(each.curvature)}
            for each in form.against
        ],
        "optima": _optima(form.optima),
        "optima_with_head": _optima(form.with_head),
        "exponents_of_optimum": None if form.split is None else dict(zip("ab", map(_listed, form.split), strict=True)),
        "isoflop": _isoflop(law),
        "envelope": _envelope(law),
        "held_out": [
            {**asdict(test), "predicted": _listed(test.predicted), "held": test.is_inside}
            for test in form.compared.held_out
        ],
    }


def row_of_form(record: Record, law: SurfaceLaw, form: FormFit) -> Record:
    """The row that is printed: that of `fits`, with the constants and what they say in columns of their own."""
    columns: Record = {"objective": form.fit.objective, "n_runs": form.fit.n_runs}
    for name in _CONSTANTS:
        each = form.fit.constants.get(name, Estimate(None, None, None))
        columns |= {name: each.value, f"{name}_lo": each.lo, f"{name}_hi": each.hi}
    for name, each in zip("ab", form.split or [Estimate(None, None, None)] * 2, strict=True):
        columns |= {name: each.value, f"{name}_lo": each.lo, f"{name}_hi": each.hi}
    own = columns | {
        "held_out_error": form.held_out_error,
        "reasons": [reason.value for reason in form.reasons],
        "optima": _optima(form.optima),
        "isoflop": _isoflop(law),
        "envelope": _envelope(law),
    }
    return record | own


def _listed(each: Estimate) -> list[float | None]:
    return [each.value, each.lo, each.hi]


def _ends(name: str, each: Estimate) -> Record:
    return {name: each.value, f"{name}_lo": each.lo, f"{name}_hi": each.hi}


def _optima(optima: Sequence[Optimum]) -> list[Record]:
    return [{"C": each.C, **_ends("S", each.S), **_ends("D", each.D), **_ends("y", each.y)} for each in optima]


def _isoflop(law: SurfaceLaw) -> Record | None:
    if law.isoflop is None:
        return None
    budgets = [
        {
            "C": each.C,
            **_ends("S", each.S),
            **_ends("D", each.D),
            "y": each.y,
            "n_sizes": len(each.sizes),
            "n_interpolated": each.n_interpolated,
            "status": each.status.value,
        }
        for each in law.isoflop.budgets
    ]
    return {"budgets": budgets, "law": _along(law.isoflop.law)}


def _envelope(law: SurfaceLaw) -> Record | None:
    return None if law.envelope is None else {"law": _along(law.envelope.law), "n_budgets": len(law.envelope.C)}


def _along(along: AlongC | None) -> Record | None:
    if along is None:
        return None
    return {**_ends("a", along.a), "C_ref": along.C_ref, **_ends("S_ref", along.S_ref), "n_budgets": along.n_budgets}
