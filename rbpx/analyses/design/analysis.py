"""The design of trainings (verb design): judges how size and tokens vary, and chooses runs that narrow a surface."""

import math
from dataclasses import asdict, dataclass
from itertools import product

import duckdb

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.groups.fits import alike
from rbpx.groups.points.outliers import outlier_rows, tested_quantities
from rbpx.groups.points.surfaces import MOST_RESAMPLES, Trained, doubts_of_points, refuse_routed
from rbpx.groups.select.trainings import TrainingGroup
from rbpx.laws.names import Axis
from rbpx.laws.surface.averaged import forms_to_mix
from rbpx.laws.surface.fit import SurfaceFit, fit_surface
from rbpx.laws.surface.next_runs import (
    TENFOLD,
    Plan,
    Wanted,
    best_sizes,
    best_values,
    candidates,
    next_runs,
    predictions,
)
from rbpx.laws.surface.runs import Runs, six_S
from rbpx.status import Status, first_of
from rbpx.store.store import Record, Store


@dataclass(frozen=True, eq=False)
class Designed:
    """One quantity of a group by one form.

    Attributes:
        trained: its points.
        fit: the surface through them.
        reasons: every status that holds.
    """

    trained: Trained
    fit: SurfaceFit
    reasons: tuple[Status, ...]

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
class Chosen:
    """Runs to train next for one quantity, over forms.

    Attributes:
        trained: the points that there are.
        target: what the runs narrow, in words.
        plans: per FLOP, and the best use of a budget.
    """

    trained: Trained
    target: str
    plans: tuple[Plan, ...]


@dataclass(frozen=True, eq=False)
class Designs:
    """The design of one group, by quantity and form, and by quantity the runs to train next."""

    group: TrainingGroup
    of: tuple[Designed, ...]
    chosen: tuple[Chosen, ...]

    @property
    def quantities(self) -> list[Trained]:
        """Each quantity once."""
        return list({id(each.trained): each.trained for each in self.of}.values())


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Designs:
    """Judge the design of one group, by cross-entropy unless quantities are named, and choose runs if asked to."""
    quantities = tested_quantities(connection, group, request)
    if not request.laws.by_name:
        quantities = sorted(quantities, key=lambda each: each.law != "cross_entropy")[:1]
    n_resamples, how = min(request.resamples, MOST_RESAMPLES), (request.objective, request.delta)
    of = []
    for trained, form in product(quantities, request.form):
        fit = fit_surface(trained.runs, form, *how, n_resamples)
        of.append(Designed(trained, fit, doubts_of_points(group, trained, fit)))
    is_asked = request.next is not None or request.flops is not None
    chosen = [_chosen(trained, request) for trained in quantities] if is_asked else []
    return Designs(group, tuple(of), tuple(each for each in chosen if each is not None))


def _chosen(trained: Trained, request: Request) -> Chosen | None:
    """The runs to train next; None where the points have no surface."""
    refuse_routed(trained)
    runs, flops = trained.runs, math.inf if request.flops is None else request.flops
    fits = [fit_surface(runs, form, request.objective, request.delta, 0) for form in forms_to_mix(runs)]
    if all(fit.surface is None for fit in fits):
        return None
    if not len(candidates(runs, flops)[0]):
        least = float((six_S(runs.S_N) * runs.D_N).min())
        raise RbpxError(f"flops={flops:g} pays for no run that informs: the least that there is took {least:.3g}")
    wanted = _wanted(runs, request)
    return Chosen(trained, wanted.name, tuple(next_runs(fits, wanted, request.next, flops, request.seed)))


def _wanted(runs: Runs, request: Request) -> Wanted:
    """What the runs are to narrow."""
    if request.points_to_predict():
        return predictions(request.points_to_predict())
    if request.budgets:
        return best_sizes(runs, request.budgets)
    return best_values(runs, [TENFOLD * float(runs.along(Axis.C).max())])


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
    for chosen in designs.chosen:
        about = {**names, "law": chosen.trained.law, "k": chosen.trained.k, "target": chosen.target}
        for plan in chosen.plans:
            of_plan = {"kind": "next", **about, "plan": plan.name, "next_narrows": plan.next_narrows}
            rows += [{**of_plan, "rank": rank, **asdict(run)} for rank, run in enumerate(plan.runs, 1)]
            rows += [] if plan.runs else [of_plan]
    rows += outlier_rows(designs.group, designs.quantities)
    return alike(rows)
