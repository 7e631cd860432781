"""Answers the question trajectory: quantities along training at each size, and laws in D after a warm-up."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Chart, Figure, Origin, Rows, Scale, drawn, line, points, scale_of, spread
from rbpx.display.section import interval_of
from rbpx.display.view import View, decimal, ends, magnitude, state, text, whole, with_ends
from rbpx.display.vocabulary import headline, law_title, short, significant, spoken
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Axis, Method, SchedulePhase
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.prediction.prediction import predictions_along
from rbpx.laws.trajectory import fit_after_warm_up
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import alike, record_of
from rbpx.runs.group import MEASURED, Run, grouped
from rbpx.runs.origin import from_fits
from rbpx.runs.points.surfaces import Trained, trained_quantities
from rbpx.runs.select.schedules import Points, points_of, said_of_places
from rbpx.runs.select.selections import whole_trainings
from rbpx.runs.select.sizes import tokens_of
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status
from rbpx.store.store import Record

_MOST_LAWS: Final = 2  # that are drawn
_STEPS: Final = 40
_FEW: Final = 4  # trainings, of which a terminal shows two laws each
_NEEDED: Final = 5  # points of a law

LAWS: Final = View[Record](
    "laws",
    text("law", "law", lambda row: law_title(row["law"], row["k"])),
    text("size", "size"),
    whole("points", "n_points", spare=1),
    ends("D_least D_greatest", None, short, "D", spare=2),
    magnitude("from D", "D_first"),
    with_ends("β", "beta"),
    with_ends("E", "E", ends_spare=3),
    with_ends("B", "B", None, lambda value: significant(value, 4), spare=6),
    decimal("R²", "r2", digits=3, spare=5),
    state(),
)


class Trajectory(NamedTuple):
    """One quantity of one training.

    Attributes:
        name: of the training.
        trained: the quantity, with its points of all sizes.
        states: the runs, one for each D, that the learning-rate schedule allows as points of the law.
        rows: that of the law, with few columns if it could not be fitted; then that of each state, whose y is the
            geometric mean where several trainings have the same D.
        law: None without a law, and then there is no fit.
        fit: its row of `fits`.
    """

    name: str
    trained: Trained
    states: Points
    rows: list[Record]
    law: PowerLaw | None = None
    fit: Record | None = None


def answer(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Result:
    """Fits the law of each quantity of each training with several points."""
    names = [name for name, runs in grouped(group.runs, _name).items() if len({tokens_of(run) for run in runs}) > 1]
    several = tuple(run for run in group.runs if _name(run) in names)
    group = replace(group, runs=several or group.runs[:1])
    found = [
        _trajectory(group, name, trained, request.warm_up)
        for trained in (trained_quantities(connection, group, request) if several else ())
        for name in names
        if any(_name(run) == name for run in trained.members)
    ]
    fits = [each.fit for each in found if each.fit is not None]
    kinds, few = sorted({_kind(each.rows[0]) for each in found}), len({each.name for each in found}) <= _FEW
    main, title = kinds[: _MOST_LAWS if few else 1], "Laws in training tokens, y = E + B·D^−β"
    table = LAWS.table(title, map(_shown, found), group.title, brief=lambda of: "beta" in of and _kind(of) in main)
    return Result(
        [group],
        alike([row for each in found for row in each.rows]),
        [table] if found else [],
        [_answer([each for each in found if _kind(each.rows[0]) == kinds[0]])] if found else [],
        partial(figures, group, found, [row["fit_id"] for row in fits]),
        fits,
        notes=[*_notes(group, found)],
    )


def _kind(row: Record) -> tuple[int, int, str]:
    return (*headline(row["law"], row["k"]), row["law"])


def _answer(found: Sequence[Trajectory]) -> str:
    title, n = found[0].trained.title, number_of(len(found), "training")
    laws = [(each.rows[0], law) for each in found if (law := each.law) is not None and law.alpha.value is not None]
    most, status = max(each.rows[0]["n_points"] for each in found), Status(found[0].rows[0]["status"])
    if not laws:
        why = f"{_NEEDED} points after a warm-up, and they have at most {most}: take more checkpoints."
        why = f"It needs {why}" if most < _NEEDED else status.remedy
        return f"None of {n} has a law of {title} in training tokens. {why}"
    row, law = max(laws, key=lambda each: each[0]["S"])
    return (
        f"{title} falls with training tokens in {len(laws)} of {n}; at size {row['size']} as "
        f"D^-{interval_of(law.alpha)} towards E = {interval_of(law.E)}, from {spoken(row['D_first'])} tokens on."
    )


def _name(run: Run) -> str:
    """The size, or the model of an imported run, since trainings of one size may differ; with its seed."""
    return f"{run.size if run.source == MEASURED else run.model or run.size}{_seed(run)}"


def _seed(run: Run) -> str:
    return "" if run.training_seed is None else f", seed {run.training_seed}"


def _trajectory(group: TrainingGroup, name: str, trained: Trained, warm_up: float | None) -> Trajectory:
    of_size = [at for at, run in enumerate(trained.members) if _name(run) == name]
    D_T, first_T, place_N = np.unique(trained.runs.D_N[of_size], return_index=True, return_inverse=True)
    runs = [trained.members[of_size[at]] for at in first_T]
    with np.errstate(divide="ignore", invalid="ignore"):
        y_T = np.exp(np.bincount(place_N, np.log(trained.runs.y_N[of_size])) / np.bincount(place_N))
    states, is_positive = points_of(runs), bool(np.all((y_T > 0) & np.isfinite(y_T)))
    taken = [at for at, run in enumerate(runs) if any(run is point for point in states.runs)]
    after = fit_after_warm_up(D_T[taken], y_T[taken], warm_up) if is_positive and taken else None

    run, status = runs[0], Status.too_few_sizes if is_positive else Status.not_positive
    named = {**group.names(), "size": f"{run.size}{_seed(run)}", "model": None if run.source == MEASURED else run.model}
    named |= {"S": float(run.non_embedding_params), "law": trained.law, "k": trained.k}
    points, is_placed = list[Record](), any(run.place is not None for run in runs)
    for at, (of, D_of, y_of) in enumerate(zip(runs, D_T.tolist(), (trained.sign * y_T).tolist(), strict=True)):
        place = {"place": of.place, "is_point": at in taken} if is_placed else {}
        points.append({"kind": "point", **named, "D": D_of, "y": y_of, **place})
    row: Record = {"kind": "law", **named, "run_ids": [], "n_points": len(taken), "status": status.value}
    if after is None:
        return Trajectory(name, trained, states, [row, *points])
    law, D = after.law, D_T[taken][after.first :].tolist()
    about = {"axis": "D", "warm_up_until": D[0], "is_found": warm_up is None, "p": list(after.p)}
    run_ids = sorted({run_id for run in states.runs[after.first :] for run_id in run.run_ids})
    more: Record = {"k": trained.k, "size": name, "axis": "D", "params": law.record() | about}
    more["n"] = ["along training", D]  # the id contains the D of the points
    fit = record_of(group, trained.law, law, run_ids, Method.offset, **more)
    row |= {key: fit[key] for key in ("fit_id", "run_ids", "n_points", "r2")} | {"status": law.status}
    row |= {"D_first": D[0], "is_found": warm_up is None, "E": law.E.value} | by_name(B=law.C, beta=law.alpha)
    return Trajectory(name, trained, states, [row, *points], law, fit)


def _shown(each: Trajectory) -> Record:
    row, *points = each.rows
    ends = {"size": each.name, "D_least": points[0]["D"], "D_greatest": points[-1]["D"]}
    return row | ends | ({} if each.law is None else by_name(E=each.law.E))


def _notes(group: TrainingGroup, found: Sequence[Trajectory]) -> Iterator[str]:
    if group.n_other:
        yield f"Left out: {number_of(group.n_other, 'finished model')}."
    trainings = {each.name: each for each in reversed(found)}.values()
    if scheduled := [each.states for each in trainings if "place" in each.rows[1]]:
        counts = sum((Counter(each.n_left_out) for each in scheduled), Counter[SchedulePhase]())
        yield from said_of_places([run for each in scheduled for run in each.runs], counts)


def figures(group: TrainingGroup, found: Sequence[Trajectory], fit_ids: Sequence[str]) -> Iterator[Figure]:
    """Draws cross-entropy and -ln RBP at the smallest k along training."""
    by_kind = grouped(found, lambda each: _kind(each.rows[0]))
    for kind in sorted(by_kind)[:_MOST_LAWS]:
        yield _figure(spread(by_kind[kind], MOST_SERIES), from_fits(fit_ids, group))


def _figure(found: Sequence[Trajectory], origin: Origin) -> Figure:
    trained, what = found[0].trained, found[0].trained.title
    rows = [row | {"size": each.name} for each in found for row in each.rows[1:]]
    curves: Rows = [
        {"size": each.name, "D": at.S, "y": trained.sign * at.y}
        for each in found
        if each.law is not None and each.law.alpha.value is not None
        for at in predictions_along(each.law, _STEPS)
    ]
    falls = [f"{each.name} from {short(each.rows[1]['y'])} to {short(each.rows[-1]['y'])}" for each in found]
    name = f"{trained.law}{trained.k or ''}"
    view = View[Record](name, text("size", "size"), magnitude("D", "D"), magnitude(what, "y"))
    marks = (*([line(curves)] if curves else []), points())
    return drawn(
        view.table(f"{what} along training", rows),
        Chart(scale_of(Axis.D), Scale("y", what, log=trained.sign == 1), marks, "size", "size", height=320),
        f"{what}: {'; '.join(falls)}.",
        "Points: what was measured or imported. Lines: y = E + B·D^−β from the end of the warm-up.",
        origin,
    )


QUESTION = of_each(answer, select=partial(whole_trainings, raw=True))
