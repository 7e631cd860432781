"""Answers `trajectory`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import duckdb
import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Chart, Figure, Origin, Scale, bars, drawn, line, points, spread
from rbpx.display.section import interval_of
from rbpx.display.table import STATUS, interval, table_of
from rbpx.display.vocabulary import amount, in_digits, listed, number, rough, significant, spoken, whole
from rbpx.errors import RbpxError, number_of
from rbpx.laws.intervals.estimate import flat
from rbpx.laws.schedule.ending import NEEDED, Ending, backtest, predict_ending
from rbpx.laws.schedule.law import Training
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.questions.trajectory import TrajectoryKeys
from rbpx.runs.fits import alike
from rbpx.runs.group import Group
from rbpx.runs.origin import spelled
from rbpx.runs.points.plans import planned
from rbpx.runs.run import MEASURED, Run, by_progress, grouped, in_groups, training_of
from rbpx.runs.schedules import REACHED
from rbpx.runs.select.groups import Cells, shared
from rbpx.runs.select.stored import select_runs
from rbpx.status import Status, in_order, status_keys
from rbpx.store.store import Record
from rbpx.ties import rule_of

_STEPS: Final = 60  # of a drawn law
_STATES: Final = 200  # drawn of a run
_RESTS: Final = {
    "same_plan": "a finished run of the same plan",
    "same_size": "{n} of its size",
    "other_size": "{n} of {size} parameters",
    "itself": "its own losses alone",
}


def _steps(at: Sequence[int]) -> str:
    return listed([f"{step:,}" for step in at], 3)


ENDINGS: Final = table_of(
    "endings", ("run", "model"), ("S", "S", amount), ("step", "step", whole), ("of", "of", whole),
    ("loss now", "loss", in_digits(4)),
    ("ends at", "y", in_digits(4), "cross-entropy (nats) at the end of the plan, if it is kept"),
    ("95 %", "lo hi", in_digits(4)), ("rests on", "rests_on"), STATUS,
    first="model step of y lo status, loss, rests_on",
)  # fmt: skip

LAWS: Final = table_of(
    "laws", ("run", "model"), *interval("E", "E"), *interval("A", "A"), *interval("α", "alpha"), *interval("C", "C"),
    ("by steps", "progress_to_come", in_digits(3), "nats that the steps to come take off the loss"),
    ("by rate", "annealing_to_come", in_digits(3), "nats that the fall of the rate takes off the loss"),
    ("by drop", "by_drop", in_digits(4), "the end by the drop of the finished run of its size with the nearest plan"),
    ("widened", "widened", rough, "times, as backtests missed the intervals without"),
    ("spikes", "spikes", _steps, "steps of states far above the law"),
)  # fmt: skip

DRAWN: Final = table_of(
    "trajectory", ("run", "run"), ("shown", "shown"), ("step", "step", whole), ("y", "y", ".4f"),
    ("95 %", "lo hi", number),
)  # fmt: skip


class Underway(NamedTuple):
    """A run that is underway: its name, its plan with its states, and its end."""

    name: str
    run: Training
    ending: Ending


class GroupTrainings(NamedTuple):
    """Runs of a group that are underway, finished ones that teach, and why others have no plan."""

    underway: list[tuple[str, Training]]
    finished: list[Training]
    lacking: list[str]


def select(connection: duckdb.DuckDBPyConnection, request: TrajectoryKeys, cells: Cells = None) -> Sequence[Group]:
    """The runs of a request that have a plan of learning rates, by family, text and variant."""
    runs = select_runs(connection, request, cells, plans=True)
    groups = [
        Group(tuple(by_progress(members)), rule_of(members[0].protocol))
        for members in in_groups(runs, shared)
        if any(run.lr is not None or run.schedule_tokens for run in members)
    ]
    if runs and not groups:
        raise RbpxError(
            f"no run in store={request.store} that matches has learning rates or a plan of them; import a column lr, "
            "with rows for steps to come, or give schedule= and schedule_tokens=; along training there is fit axis=D"
        )
    return groups


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: TrajectoryKeys) -> Sequence[Result]:
    """Predicts the end of each run that is underway."""
    known = [(group, known_of(group)) for group in groups]
    n_finished = sum(len(of.finished) for _, of in known)
    answers = [_result(group, of, n_finished) for group, of in known if of.underway or of.lacking]
    if not answers:
        raise RbpxError(
            f"no run is underway: {number_of(n_finished, 'run')} with learning rates at the end of their plan; the "
            "plan of one that is not is imported as rows that have lr and no loss, or by schedule= and schedule_tokens="
        )
    return answers


def known_of(group: Group) -> GroupTrainings:
    """The trainings of a group by what is known of their plans."""
    known, trainings = GroupTrainings([], [], []), grouped(group.runs, training_of).values()
    plans = [(_name(states[0]), planned(states), any(run.lr is not None for run in states)) for states in trainings]
    has_lr = all(has for _, plan, has in plans if isinstance(plan, Training))
    for name, plan, _ in plans:
        if isinstance(plan, str):
            known.lacking.extend([f"No plan of {name}: {plan}."] if plan else [])
            continue
        run = plan if has_lr else replace(plan, rate_T=plan.rate_T / plan.peak)
        if run.step_N[-1] < REACHED * len(run.rate_T):
            known.underway.append((name, run))
        elif not run.rises and run.n_states >= NEEDED:
            known.finished.append(run)
    return known


def _name(run: Run) -> str:
    """The model or size, with what else tells trainings apart."""
    name = run.label if run.source == MEASURED else run.model or run.label
    seed = [] if run.training_seed is None else [f"seed {run.training_seed}"]
    return ", ".join([name, *seed, *(f"{key.removeprefix('vary_')} {value:g}" for key, value in run.varied.items())])


def _result(group: Group, known: GroupTrainings, n_finished: int) -> Result:
    squares, found = backtest(known.finished), list[Underway]()
    for name, run in known.underway:
        ending = predict_ending(run, known.finished, squares)
        if n_finished and not known.finished:
            ending = replace(ending, reasons=in_order([*ending.reasons, Status.other_recipe]))
        found.append(Underway(name, run, ending))
    rows = [_row(group, each) for each in found]
    shown = [row | {"rests_on": row["rests_on"].replace("_", " ") if row["y"] else None} for row in rows]
    laws = [{"model": row["model"], **row["params"]} for row in rows if row["y"] is not None]
    tables = [ENDINGS.of("Where runs that are underway end", shown, group.title)] if rows else []
    tables += [LAWS.of("The law of each run", laws, group.title, brief=False)] if laws else []
    said = [" ".join(map(_said, found))] if found else []
    return Result([group], rows, tables, said, partial(figures, group, found), notes=known.lacking)


def _row(group: Group, each: Underway) -> Record:
    run, ending = each.run, each.ending
    progress, annealing = ending.to_come or (None, None)
    params = flat({} if ending.law is None else ending.law.constants) | {"by_drop": ending.drop}
    params |= {"progress_to_come": progress, "annealing_to_come": annealing, "widened": ending.widened}
    params |= {"left_at": ending.left_at, "spikes": list(ending.spikes)}
    seen = {"step": int(run.step_N[-1]), "of": len(run.rate_T), "loss": float(run.loss_N[-1])}
    end = {"y": ending.y.value, **_ends(ending), "rests_on": ending.rests_on}
    names = {**group.names(), "model": each.name, "S": run.S}
    return {"kind": "ending", **names, **seen, **end, **status_keys(ending.reasons), "params": params}


def _said(each: Underway) -> str:
    run, ending = each.run, each.ending
    at = f"step {run.step_N[-1]:,.0f} of {len(run.rate_T):,}"
    if ending.y.value is None:
        return f"{each.name} is at {at}. {ending.status.remedy}"
    size = spoken(ending.taught[0].S) if ending.taught else ""
    rests = _RESTS[ending.rests_on].format(n=number_of(len(ending.taught), "finished run"), size=size)
    left = "" if ending.left_at is None else f" From step {ending.left_at:,} on its losses have risen off their law."
    says = (
        f"After {at}, {each.name} will end at a cross-entropy of {interval_of(ending.y)} if its learning rates keep to"
    )
    return f"{says} the plan; this rests on {rests}.{left}"


def figures(group: Group, found: Sequence[Underway]) -> Iterator[Figure]:
    """Draws the states of each run, its law until now and along its plan, and its end."""
    drawable = spread([each for each in found if each.ending.law is not None], MOST_SERIES)
    if not drawable:
        return
    states, laws, at_end = list[Record](), list[Record](), list[Record]()
    for name, run, ending in drawable:
        assert ending.law is not None
        seen = np.flatnonzero(run.step_N > run.begin)
        now, end = float(run.step_N[-1]), float(len(run.rate_T))
        at = [("state", run.step_N[n], run.loss_N[n]) for n in spread(seen.tolist(), _STATES)]
        states += [{"run": name, "shown": shown, "step": step, "y": y} for shown, step, y in at]
        for shown, first, last in (("law", run.step_N[seen[0]], now), ("plan", now, end)):
            step_P = np.unique(np.linspace(first, last, _STEPS).round())
            y_P = ending.law.loss(*run.clocks(ending.law.peak, step_P))
            pairs = zip(step_P.tolist(), y_P.tolist(), strict=True)
            laws += [{"run": name, "shown": shown, "step": step, "y": y} for step, y in pairs]
        at_end.append({"run": name, "shown": "end", "step": end, "y": ending.y.value, **_ends(ending)})
    steps, nats = Scale("step", "training step", form="~s"), Scale("y", "cross-entropy (nats)")
    dots = points(rows=states, look={"size": 12})
    marks = (dots, line(laws, by="shown"), bars(rows=at_end), points(rows=at_end))
    yield drawn(
        DRAWN.of("Runs that are underway", alike([*states, *laws, *at_end])),
        Chart(steps, nats, marks, "run", "run", height=340),
        "; ".join(f"{row['run']} ends at {significant(row['y'], 4)}" for row in at_end) + ".",
        "Points: states. Lines: the law until now, dashed along the plan. At its end: the answer with its interval.",
        Origin(spelled("runs_of_text", dataset=group.first.dataset), tuple(group.run_ids)),
    )


def _ends(ending: Ending) -> Record:
    return {"lo": ending.y.lo, "hi": ending.y.hi}


QUESTION = Question(answer, select)
