"""Fits laws in D to the checkpoints of each size after a warm-up (verb trajectory)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Method, Place
from rbpx.laws.power.law import PowerLawFit
from rbpx.laws.trajectory import AfterWarmUp, fit_after_warm_up
from rbpx.runs.fits import alike, keep_fits, record_of
from rbpx.runs.group import MEASURED, Run
from rbpx.runs.points.surfaces import Trained, trained_quantities
from rbpx.runs.select.schedules import points_of
from rbpx.runs.select.sizes import tokens_of
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status
from rbpx.store.store import Record, Store


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One quantity of one size.

    Attributes:
        name: the size, or the model where several trainings of a size differ.
        trained: the quantity, with its points of all sizes.
        runs: one for each D, in order.
        D: training tokens of each.
        y: the quantity there, positive; the geometric mean where several trainings have the same D.
        taken: which of them are points of the law, in order: all but those that the schedule of the rate leaves out.
        after: its law; None where there is none.
        status: the status of the law, or why there is none.
    """

    name: str
    trained: Trained
    runs: tuple[Run, ...]
    D: tuple[float, ...]
    y: tuple[float, ...]
    taken: tuple[int, ...]
    after: AfterWarmUp | None
    status: Status

    @property
    def S(self) -> float:
        """Its size."""
        return float(self.runs[0].non_embedding_params)

    @property
    def n_left_out(self) -> dict[Place, int]:
        """How many states are no points, by their place in the schedule of the rate."""
        return points_of(self.runs).n_left_out

    @property
    def is_scheduled(self) -> bool:
        """Whether anything is known of the schedule."""
        return any(run.place is not None for run in self.runs)

    @property
    def fit(self) -> PowerLawFit | None:
        """The numbers of its law; None where there is none."""
        return None if self.after is None else self.after.law


@dataclass(frozen=True, eq=False)
class Trajectories:
    """What was found along the trainings of one group that have several points."""

    group: TrainingGroup
    laws: tuple[Trajectory, ...]


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Trajectories:
    """Fit the law of each quantity at each size."""
    by_size = _by_size(group.runs)
    several = {name: runs for name, runs in by_size.items() if len({tokens_of(run) for run in runs}) > 1}
    if not several:
        return Trajectories(replace(group, runs=group.runs[:1]), ())
    of_several = replace(group, runs=tuple(run for run in group.runs if _name(run) in several))
    laws = [
        _trajectory(name, trained, request.warm_up)
        for trained in trained_quantities(connection, of_several, request)
        for name in several
        if any(_name(run) == name for run in trained.members)
    ]
    return Trajectories(of_several, tuple(laws))


def _name(run: Run) -> str:
    """The size, or the model of an imported run, as its trainings of one size may differ; with its seed if known."""
    return f"{run.size if run.source == MEASURED else run.model or run.size}{_seed(run)}"


def _seed(run: Run) -> str:
    return "" if run.training_seed is None else f", seed {run.training_seed}"


def _by_size(runs: Iterable[Run]) -> dict[str, list[Run]]:
    by_size: dict[str, list[Run]] = {}
    for run in runs:
        by_size.setdefault(_name(run), []).append(run)
    return {name: sorted(members, key=lambda run: tokens_of(run) or 0.0) for name, members in by_size.items()}


def _trajectory(name: str, trained: Trained, warm_up: float | None) -> Trajectory:
    of_size = [at for at, run in enumerate(trained.members) if _name(run) == name]
    D_N, y_N = trained.runs.D_N[of_size], trained.runs.y_N[of_size]
    D_T, first_T, place_N = np.unique(D_N, return_index=True, return_inverse=True)
    runs = tuple(trained.members[of_size[at]] for at in first_T)
    with np.errstate(divide="ignore", invalid="ignore"):
        y_T = np.exp(np.bincount(place_N, np.log(y_N)) / np.bincount(place_N))
    is_positive = bool(np.all((y_T > 0) & np.isfinite(y_T)))
    points = {id(run) for run in points_of(runs).runs}
    taken = tuple(at for at, run in enumerate(runs) if id(run) in points)
    after = fit_after_warm_up(D_T[[*taken]], y_T[[*taken]], warm_up) if is_positive and taken else None
    status = Status.too_few_sizes if is_positive else Status.not_positive
    status = status if after is None else after.law.status
    return Trajectory(name, trained, runs, tuple(D_T.tolist()), tuple(y_T.tolist()), taken, after, status)


def keep(store: Store, trajectories: Trajectories) -> list[Record]:
    """Write the laws to `fits`; return a row for each law and point."""
    group = trajectories.group
    names = group.names()
    rows: list[Record] = []
    for each in trajectories.laws:
        run, sign = each.runs[0], each.trained.sign
        model = None if run.source == MEASURED else run.model
        named = {**names, "size": f"{run.size}{_seed(run)}", "model": model, "S": each.S}
        named |= {"law": each.trained.law, "k": each.trained.k}
        rows.append({"kind": "law", **named, **_law_row(store, group, each)})
        for at, (D, y, run) in enumerate(zip(each.D, each.y, each.runs, strict=True)):
            of_schedule = {"place": run.place, "is_point": at in each.taken} if each.is_scheduled else {}
            rows.append({"kind": "point", **named, "D": D, "y": sign * y, **of_schedule})
    return alike(rows)


def _law_row(store: Store, group: TrainingGroup, each: Trajectory) -> Record:
    """The columns of the law of a trajectory, after writing it to `fits`; few where there is no law."""
    after, k = each.after, each.trained.k
    if after is None:
        return {"n_points": len(each.taken), "status": each.status.value, "run_ids": []}
    fit = after.law
    about: Record = {"axis": "D", "warm_up_until": after.D, "is_found": after.is_found, "p": list(after.p)}
    fitted = each.taken[after.first :]
    run_ids = {run_id for at in fitted for run_id in each.runs[at].run_ids}
    more: Record = {"k": k, "size": each.name, "axis": "D", "params": fit.record() | about}
    more["n"] = ["along training", [each.D[at] for at in fitted]]
    (record,) = keep_fits(store, [record_of(group, each.trained.law, fit, sorted(run_ids), Method.offset, **more)])
    row: Record = {"fit_id": record["fit_id"], "run_ids": record["run_ids"], "n_points": fit.n_points}
    row |= {"D_first": after.D, "is_found": after.is_found, **by_name(B=fit.constant, beta=fit.exponent)}
    return row | {"E": fit.offset.value, "r2": fit.r2, "status": each.status.value}
