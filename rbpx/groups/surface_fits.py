"""The row of `fits` of a surface: a fitted form of one quantity of a group of trainings in, its record out."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from rbpx.files.digest import digest
from rbpx.groups.fits import record_of
from rbpx.groups.points.surfaces import Trained
from rbpx.groups.select.trainings import TrainingGroup
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.power.fitted import LawFit
from rbpx.laws.surface.fit import SurfaceFit, fit_surface
from rbpx.laws.surface.names import Objective
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record

METHOD: Final = "surface"


def doubts_of_points(group: TrainingGroup, trained: Trained, fit: SurfaceFit) -> tuple[Status, ...]:
    """Every status that holds for a fit to these points."""
    doubts = [trained.doubt] if trained.doubt is not None else []
    mixed = [Status.mixed_checkpoints] if group.is_mixed else []
    same = [Status.same_weights] if group.n_same else []
    return in_order([*fit.reasons, *doubts, *mixed, *same])


def surface_record(
    group: TrainingGroup,
    trained: Trained,
    fit: SurfaceFit,
    reasons: Sequence[Status],
    held_out_error: float | None,
    more: dict[str, Any],
) -> Record:
    """The row of `fits`; its id contains the points, because imported runs share the id of their file.

    Args:
        group: the trainings.
        trained: the points.
        fit: of one form to them.
        reasons: every status that holds.
        held_out_error: mean of |error| on the largest runs, held out.
        more: params beside the constants and the points.
    """
    runs = trained.runs
    y = [each if math.isfinite(each) else None for each in runs.y_N.tolist()]  # unknown, or RBP_k = 0
    values = [runs.S_N.tolist(), runs.D_N.tolist(), y]
    identity = digest([fit.form, fit.objective_name.value, fit.delta, values])
    params = {
        "constants": {name: listed(each) for name, each in fit.constants.items()},
        "objective": fit.objective,
        "reasons": [reason.value for reason in reasons],
        "at_bound": list(fit.at_bound),
        "n_runs": fit.n_runs,
        "n_left_out": fit.n_left_out,
        "sign": trained.sign,
        "variant": group.first.variant,
        "design": None if fit.design is None else asdict(fit.design),
        "S": values[0],
        "D": values[1],
        "U": None if runs.U_N is None else runs.U_N.tolist(),
        "y": values[2],
        "group": runs.group_N.tolist(),
        "residuals_ln": [] if fit.surface is None else (-fit.surface.residual_N).tolist(),
        **more,
    }
    alpha = fit.constants.get("alpha", Estimate())
    law = LawFit(
        alpha=alpha.value,
        alpha_lo=alpha.lo,
        alpha_hi=alpha.hi,
        aic=fit.aic,
        bic=fit.bic,
        n_points=fit.n_points,
        backtest_error=held_out_error,
        status=first_of(reasons),
    )
    columns: Record = {"axis": None, "form": fit.form, "objective_name": fit.objective_name.value, "delta": fit.delta}
    columns |= {"k": trained.k, "n": identity, "params": params}
    run_ids = sorted({run_id for run in trained.members for run_id in run.run_ids})
    return record_of(group, trained.law, law, run_ids, METHOD, **columns)


def refitted(record: Record) -> dict[str, float | None] | None:
    """The objective and the constants of a surface of `fits`, fitted again to the points that it carries.

    None where it has no numbers.
    """
    params = record["params"]
    if params["objective"] is None:
        return None
    U = None if params["U"] is None else [math.nan if each is None else each for each in params["U"]]
    runs = Runs.of(params["S"], params["D"], params["y"], U, params["group"])
    how = {"objective": Objective(record["objective_name"]), "delta": record["delta"]}
    fit = fit_surface(runs, record["form"], **how, n_resamples=0)
    return {"objective": fit.objective, **{name: each.value for name, each in fit.constants.items()}}


def listed(each: Estimate) -> list[float | None]:
    """A number and the ends of its interval."""
    return [each.value, each.lo, each.hi]
