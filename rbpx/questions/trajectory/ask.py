"""Shows quantities along training: the points of each size, and laws in D fitted to them after a warm-up."""

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
from rbpx.display.view import View, decimal, ends, magnitude, state, text, whole, with_ends
from rbpx.display.vocabulary import headline, law_title, short, significant
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Axis, Method, Place
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.prediction.prediction import along
from rbpx.laws.trajectory import AfterWarmUp, fit_after_warm_up
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import alike, record_of
from rbpx.runs.group import MEASURED, Run, grouped
from rbpx.runs.origin import from_fits
from rbpx.runs.points.surfaces import Trained, trained_quantities
from rbpx.runs.select.schedules import Points, points_of, said_of_places
from rbpx.runs.select.sizes import tokens_of
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.runs.select.ways import whole_trainings
from rbpx.status import Status
from rbpx.store.store import Record

_FEW: Final = 3  # numbers that are listed
_MOST_LAWS: Final = 2  # that are drawn
_STEPS: Final = 40
_NOTE: Final = (
    "y = E + B·D^−β from the first D that follows it (F tests at 1 %, or warm_up=); intervals assume that checkpoints "
    "scatter independently."
)

LAWS: Final = View[Record](
    "laws",
    text("law", "law", lambda row: law_title(row["law"], row["k"])),
    text("size", "size"),
    magnitude("S", "S", spare=4),
    whole("points", "n_points", spare=1),
    ends("D_least D_greatest", None, short, "D", spare=2),
    magnitude("from D", "D_first"),
    with_ends("β", "beta"),
    with_ends("E", "E", ends_spare=3),
    with_ends("B", "B", None, lambda value: significant(value, 4), spare=6),
    decimal("R²", "r2", digits=3, spare=5),
    state(),
)
SCHEDULES: Final = View[Record](
    "schedules",
    text("size", "size"),
    whole("states", "n_states"),
    whole("points", "n_points"),
    whole("ends of decays", "n_ends"),
    whole("constant rate", "n_constant", spare=2),
    whole("unknown", "n_unknown", spare=3),
    whole("in a decay", "n_middle", means="left out; no points of a law"),
    text("D of points", "D_points", spare=1),
)


class Trajectory(NamedTuple):
    """One quantity of one training.

    Attributes:
        trained: the quantity, with its points of all sizes.
        states: which runs, one for each D, may be points of the law by the schedule of the rate.
        points: the row of each state; y is the geometric mean where several trainings have the same D.
        row: that of the law, few of whose columns are there where it could not be fitted.
        shown: what tables say of it.
        law: None where there is none, and no fit then.
        fit: its row of `fits`.
    """

    trained: Trained
    states: Points
    points: list[Record]
    row: Record
    shown: Record
    law: PowerLaw | None = None
    fit: Record | None = None


def answer(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Result:
    """Fit the law of each quantity of each training that has several points."""
    D_of: dict[str, set[float | None]] = {}
    for run in group.runs:
        D_of.setdefault(_name(run), set()).add(tokens_of(run))
    several = tuple(run for run in group.runs if len(D_of[_name(run)]) > 1)
    group = replace(group, runs=several or group.runs[:1])
    found = [
        _trajectory(group, name, trained, request.warm_up)
        for trained in (trained_quantities(connection, group, request) if several else ())
        for name in dict.fromkeys(map(_name, several))
        if any(_name(run) == name for run in trained.members)
    ]
    trainings = list({each.shown["size"]: each for each in reversed(found)}.values())[::-1]
    scheduled = [each for each in trainings if "place" in each.points[0]]
    places, title = [each.shown for each in scheduled], "Which states are points, by the schedule of the rate"
    tables = (
        LAWS.table("Laws in training tokens", [each.shown for each in found], group.title, note=_NOTE),
        SCHEDULES.table(title, places, group.title),
    )
    fits = [each.fit for each in found if each.fit is not None]
    return Result(
        [group],
        alike([row for each in found for row in (each.row, *each.points)]),
        [table for table in tables if table.rows],
        [*_sentences(group, len(trainings), [each.states for each in scheduled])],
        partial(figures, group, found, [row["fit_id"] for row in fits]),
        fits,
    )


def _name(run: Run) -> str:
    """The size, or the model of an imported run, as its trainings of one size may differ; with its seed if known."""
    return f"{run.size if run.source == MEASURED else run.model or run.size}{_seed(run)}"


def _seed(run: Run) -> str:
    return "" if run.training_seed is None else f", seed {run.training_seed}"


def _trajectory(group: TrainingGroup, name: str, trained: Trained, warm_up: float | None) -> Trajectory:
    of_size = [at for at, run in enumerate(trained.members) if _name(run) == name]
    D_N, y_N = trained.runs.D_N[of_size], trained.runs.y_N[of_size]
    D_T, first_T, place_N = np.unique(D_N, return_index=True, return_inverse=True)
    runs = [trained.members[of_size[at]] for at in first_T]
    with np.errstate(divide="ignore", invalid="ignore"):
        y_T = np.exp(np.bincount(place_N, np.log(y_N)) / np.bincount(place_N))
    states, is_positive = points_of(runs), bool(np.all((y_T > 0) & np.isfinite(y_T)))
    taken = [at for at, run in enumerate(runs) if any(run is point for point in states.runs)]
    after = fit_after_warm_up(D_T[taken], y_T[taken], warm_up) if is_positive and taken else None

    D, y, run = D_T.tolist(), (trained.sign * y_T).tolist(), runs[0]
    named = {**group.names(), "size": f"{run.size}{_seed(run)}", "model": None if run.source == MEASURED else run.model}
    named |= {"S": float(run.non_embedding_params), "law": trained.law, "k": trained.k}
    points = [{"kind": "point", **named, "D": of_D, "y": of_y} for of_D, of_y in zip(D, y, strict=True)]
    if any(run.place is not None for run in runs):
        for at, run in enumerate(runs):
            points[at] |= {"place": run.place, "is_point": at in taken}
    status = Status.too_few_sizes if is_positive else Status.not_positive
    row: Record = {"kind": "law", **named, "run_ids": [], "n_points": len(taken), "status": status.value}
    shown = {"size": name, "n_points": len(taken), "D_least": D[0], "D_greatest": D[-1]}
    shown |= _places(states, [D[at] for at in taken], len(D))
    if after is None:
        return Trajectory(trained, states, points, row, row | shown)
    law, fit = after.law, _fit_of(group, name, trained, after, states.runs, [D[at] for at in taken])
    row |= {key: fit[key] for key in ("fit_id", "run_ids", "n_points", "r2")} | {"status": law.status}
    row |= {"D_first": after.D, "is_found": after.is_found, "E": law.E.value}
    row |= by_name(B=law.C, beta=law.alpha)
    return Trajectory(trained, states, points, row, row | shown | by_name(E=law.E), law, fit)


def _fit_of(
    group: TrainingGroup, name: str, trained: Trained, after: AfterWarmUp, runs: Sequence[Run], D: Sequence[float]
) -> Record:
    """The row of `fits` of a law; its id contains the D of the points that it is fitted to."""
    about = {"axis": "D", "warm_up_until": after.D, "is_found": after.is_found, "p": list(after.p)}
    more: Record = {"k": trained.k, "size": name, "axis": "D", "params": after.law.record() | about}
    more["n"] = ["along training", D[after.first :]]
    run_ids = sorted({run_id for run in runs[after.first :] for run_id in run.run_ids})
    return record_of(group, trained.law, after.law, run_ids, Method.offset, **more)


def _places(states: Points, D: Sequence[float], n_states: int) -> Record:
    """How many states of a training are points, by their place in the schedule of the rate, and where these lie."""
    n, written = Counter(run.place for run in states.runs), [*map(short, D)]
    row: Record = {"n_states": n_states, "n_ends": n[Place.end], "n_constant": n[Place.constant], "n_unknown": n[None]}
    row["n_middle"] = states.n_left_out.get(Place.middle, 0)
    return row | {"D_points": ", ".join(written) if len(D) <= _FEW else f"{written[0]} to {written[-1]}"}


def _sentences(group: TrainingGroup, n: int, scheduled: Sequence[Points]) -> Iterator[str]:
    """How many trainings have several points, and what is left out."""
    left_out = f"; left out: {number_of(group.n_other, 'finished model')}" if group.n_other else ""
    yield f"{number_of(n, 'training')} with several points{left_out}."
    if scheduled:
        counts = sum((Counter(each.n_left_out) for each in scheduled), Counter[Place]())
        yield from said_of_places([run for each in scheduled for run in each.runs], counts)


def figures(group: TrainingGroup, found: Sequence[Trajectory], fit_ids: Sequence[str]) -> Iterator[Figure]:
    """Draw cross-entropy and -ln RBP at the smallest k along training."""
    by_kind = grouped(found, lambda each: headline(each.trained.law, each.trained.k))
    for kind in sorted(by_kind)[:_MOST_LAWS]:
        yield _figure(spread(by_kind[kind], MOST_SERIES), from_fits(fit_ids, group))


def _figure(found: Sequence[Trajectory], origin: Origin) -> Figure:
    trained, what = found[0].trained, found[0].trained.title
    rows = [row | {"size": each.shown["size"]} for each in found for row in each.points]
    curves: Rows = [
        {"size": each.shown["size"], "D": at.S, "y": trained.sign * at.y}
        for each in found
        if each.law is not None and each.law.alpha.value is not None
        for at in along(each.law, _STEPS)
    ]
    falls = [f"{of.shown['size']} from {short(of.points[0]['y'])} to {short(of.points[-1]['y'])}" for of in found]
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
