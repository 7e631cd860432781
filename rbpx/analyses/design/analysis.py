"""The design of trainings (verb design): judges how size and tokens vary, and chooses runs that narrow a surface."""

import math
from dataclasses import asdict, dataclass
from itertools import product

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.groups.fits import alike
from rbpx.groups.points.surfaces import MOST_RESAMPLES, Trained, doubts_of_points, trained_quantities
from rbpx.groups.select.trainings import TrainingGroup
from rbpx.laws.surface.design import NextRun, candidates, exponents, next_runs, optimum_at, prediction_at
from rbpx.laws.surface.fit import SurfaceFit, fit_surface
from rbpx.laws.surface.surface import Surface
from rbpx.status import Status, first_of
from rbpx.store.store import Record, Store


@dataclass(frozen=True, eq=False)
class Designed:
    """One quantity of a group by one form.

    Attributes:
        trained: its points.
        fit: the surface through them.
        reasons: every status that holds.
        target: what the chosen runs narrow, in words; None where none were asked for.
        chosen: runs to train next, in order; empty where none were asked for, or there is no surface.
    """

    trained: Trained
    fit: SurfaceFit
    reasons: tuple[Status, ...]
    target: str | None
    chosen: tuple[NextRun, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)

    @property
    def ratios(self) -> tuple[float, float]:
        """The least and the greatest D / S."""
        ratio_N = self.trained.runs.D_N / self.trained.runs.S_N
        return float(ratio_N.min()), float(ratio_N.max())


@dataclass(frozen=True, eq=False)
class Designs:
    """The design of one group, by quantity and form."""

    group: TrainingGroup
    of: tuple[Designed, ...]


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Designs:
    """Judge the design of one group, by cross-entropy unless quantities are named, and choose runs if asked to."""
    quantities = trained_quantities(connection, group, request)
    if not request.laws.by_name:
        quantities = sorted(quantities, key=lambda each: each.law != "cross_entropy")[:1]
    of, n_resamples = [], min(request.resamples, MOST_RESAMPLES)
    for trained, form in product(quantities, request.form):
        fit = fit_surface(trained.runs, form, request.objective, request.delta, n_resamples)
        of.append(Designed(trained, fit, doubts_of_points(group, trained, fit), *_chosen(fit, trained, request)))
    return Designs(group, tuple(of))


def _chosen(fit: SurfaceFit, trained: Trained, request: Request) -> tuple[str | None, tuple[NextRun, ...]]:
    if request.next is None or fit.surface is None:
        return None, ()
    flops = math.inf if request.flops is None else request.flops
    S_M, D_M = candidates(trained.runs, flops)
    if len(S_M) == 0:
        least = float(6 * trained.runs.S_N.min() * trained.runs.D_N.min())
        raise RbpxError(
            f"flops={flops:g} pays for no run: the smallest model with the fewest tokens takes {least:.3g}; give more"
        )
    target, derivatives_TP = _target(fit.surface, request)
    chosen = next_runs(fit.surface, trained.runs, derivatives_TP, S_M, D_M, request.next, flops)
    return target, tuple(chosen)


def _target(surface: Surface, request: Request) -> tuple[str, npt.NDArray[np.float64]]:
    """What the runs are to narrow, in words, and its derivatives by the constants, [T, P]."""
    points, budgets = request.points_to_predict(), request.budgets
    if points:
        named = ", ".join(f"S = {S:.3g}, D = {D:.3g}" for S, D in points)
        return f"ln y at {named}", np.vstack([prediction_at(surface, S, D) for S, D in points])
    if budgets:
        try:
            derivatives = np.vstack([optimum_at(surface, C) for C in budgets])
        except ValueError:
            raise RbpxError(
                f"budgets={request.typed['budgets']}: the surface has no optimum there that a run could narrow; leave "
                "budgets= out to narrow the exponents"
            ) from None
        return f"ln S of the optimum at C = {', '.join(f'{C:.3g}' for C in budgets)}", derivatives
    return f"the exponents {' and '.join(surface.form.exponents)}", exponents(surface)


def keep(store: Store, designs: Designs) -> list[Record]:
    """A row for each design, and one for each run to train next; nothing enters `fits`."""
    names = designs.group.names()
    rows: list[Record] = []
    for each in designs.of:
        named = {**names, "law": each.trained.law, "k": each.trained.k, "form": each.fit.form}
        reasons = {"status": each.status.value, "reasons": [reason.value for reason in each.reasons]}
        judged = {} if each.fit.design is None else asdict(each.fit.design)
        ratios = dict(zip(("least_D_per_S", "greatest_D_per_S"), each.ratios, strict=True))
        counts = {"n_points": each.fit.n_points, "n_runs": each.fit.n_runs}
        rows.append({"kind": "design", **named, **counts, **ratios, **judged, **reasons})
        for rank, run in enumerate(each.chosen, 1):
            rows.append({"kind": "next", **named, "target": each.target, "rank": rank, **asdict(run), **reasons})
    return alike(rows)
