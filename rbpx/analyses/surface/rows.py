"""Rows of surfaces for programs and for `fits`: fitted surfaces in, one row for each quantity and form out."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from rbpx.analyses.surface.law import FormFit, SurfaceLaw, Surfaces
from rbpx.analyses.surface.words import compute
from rbpx.groups.surface_fits import listed, surface_record
from rbpx.laws.interval import Estimate
from rbpx.laws.surface.isoflop import AlongC, IsoFlop
from rbpx.laws.surface.optimum import Optimum
from rbpx.store.store import Record

__all__ = ["record_of_form", "row_of_form"]

_CONSTANTS: Final = ("A", "B", "E", "alpha", "beta")  # columns; all constants of a form stand in params


def record_of_form(surfaces: Surfaces, law: SurfaceLaw, form: FormFit) -> Record:
    """The row of `fits`."""
    more = {
        "resamples": surfaces.resamples,
        "unique_tokens": surfaces.unique_tokens,
        "against": [
            {"axis": each.axis.value, "slope": listed(each.slope), "curvature": listed(each.curvature)}
            for each in form.against
        ],
        "optima": _optima(form.optima),
        "optima_with_head": _optima(form.with_head),
        "optima_as_stated": _optima(form.as_stated),
        "exponents_of_optimum": None if form.split is None else dict(zip("ab", map(listed, form.split), strict=True)),
        "isoflop": _isoflop(law, law.isoflop, compute(law)),
        "isoflop_with_head": _isoflop(law, law.isoflop_with_head, "6 N D"),
        "envelope": _envelope(law),
        "held_out": [
            {**asdict(test), "predicted": listed(test.predicted), "held": test.is_inside}
            for test in form.compared.held_out
        ],
    }
    return surface_record(surfaces.group, law.trained, form.fit, form.reasons, form.held_out_error, more)


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
        "optima_with_head": _optima(form.with_head),
        "optima_as_stated": _optima(form.as_stated),
        "isoflop": _isoflop(law, law.isoflop, compute(law)),
        "isoflop_with_head": _isoflop(law, law.isoflop_with_head, "6 N D"),
        "envelope": _envelope(law),
    }
    return record | own


def _ends(name: str, each: Estimate) -> Record:
    return {name: each.value, f"{name}_lo": each.lo, f"{name}_hi": each.hi}


def _optima(optima: Sequence[Optimum]) -> list[Record]:
    return [{"C": each.C, **_ends("S", each.S), **_ends("D", each.D), **_ends("y", each.y)} for each in optima]


def _isoflop(law: SurfaceLaw, isoflop: IsoFlop | None, compute: str) -> Record | None:
    if isoflop is None:
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
        for each in isoflop.budgets
    ]
    return {"budgets": budgets, "law": _along(isoflop.law), "C": compute, "chosen": law.chosen.value}


def _envelope(law: SurfaceLaw) -> Record | None:
    return None if law.envelope is None else {"law": _along(law.envelope.law), "n_budgets": len(law.envelope.C)}


def _along(along: AlongC | None) -> Record | None:
    if along is None:
        return None
    return {**_ends("a", along.a), "C_ref": along.C_ref, **_ends("S_ref", along.S_ref), "n_budgets": along.n_budgets}
