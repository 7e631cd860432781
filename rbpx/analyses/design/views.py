"""Tables of the design of trainings: what it can tell, and the runs to train next."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rbpx.analyses.design.analysis import Chosen, Designed, Designs, analyse, keep
from rbpx.analyses.question import Question, each, one_by_one
from rbpx.display.view import Table, View, decimal, ends, magnitude, share, state, text, whole, written
from rbpx.display.vocabulary import rough, short
from rbpx.groups.points.frontier import said_of_points
from rbpx.groups.points.outliers import said_of_outliers
from rbpx.laws.intervals.estimate import Z
from rbpx.laws.surface.design import Design
from rbpx.laws.surface.next_runs import LEAST, NextRun, Plan

_SD: Final = (
    "standard deviation of ln D about its line on ln S, or of ln S about its line on ln D where that is less; "
    "below 0.1 one follows the other"
)
_CONDITION: Final = "condition number of the derivatives of ln y by the constants, each scaled to length 1"
_SD_AFTER: Final = "standard deviation of what is asked for, over forms, misfit and scatter"


def _how(of: Callable[[Design], float | None]) -> Callable[[Designed], float | None]:
    return lambda row: None if row.fit.design is None else of(row.fit.design)


DESIGNS: Final = View[Designed](
    "design",
    text("law", "law", lambda row: row.trained.title),
    text("form", "form", lambda row: row.fit.form),
    whole("points", "n_points", lambda row: row.fit.n_points, spare=1),
    whole("trainings", "n_runs", lambda row: row.fit.n_runs, spare=4),
    whole("sizes", "n_S", _how(lambda design: design.n_S), spare=2),
    whole("numbers of D", "n_D", _how(lambda design: design.n_D), spare=5),
    ends("least_D_per_S greatest_D_per_S", lambda row: row.ratios, short, "D/S"),
    written("sd", "sd", _how(lambda design: design.sd), rough, _SD),
    magnitude("condition", "condition", _how(lambda design: design.condition), _CONDITION, spare=3),
    state(lambda row: row.status),
)  # fmt: skip
NEXT: Final = View[tuple[int, NextRun]](
    "next",
    whole("run", "rank", lambda row: row[0], "a run that is named twice is to be trained with two seeds"),
    magnitude("S", "S", lambda row: row[1].S),
    magnitude("D", "D", lambda row: row[1].D),
    magnitude("C = 6 S D", "C", lambda row: row[1].C),
    decimal("sd before", "sd_before", lambda row: row[1].sd_before),
    decimal("sd after", "sd_after", lambda row: row[1].sd_after, means=_SD_AFTER),
    share("narrower by", "narrowed", lambda row: row[1].narrowed),
    written("per 1e18 FLOPs", "per_flop", lambda row: row[1].per_flop * 1e18, rough, spare=1),
)  # fmt: skip


_PLANS: Final = {"per_flop": "most per FLOP", "budget": "the best use of all"}


@one_by_one
def tables(of: Designs) -> Iterator[Table]:
    """The designs of a group, then for each law the runs to train next."""
    if of.of:
        yield DESIGNS.table("Design of the trainings", of.of, of.group.title)
    for n, chosen in enumerate(of.chosen, 1):
        for plan in _different(chosen):
            title = f"To narrow {chosen.target} of {chosen.trained.title}: {_PLANS[plan.name]}"
            if plan.runs:
                view = View(f"{NEXT.name}-{plan.name}-{n}".replace("_", "-"), NEXT.columns)
                yield view.table(title, enumerate(plan.runs, 1), of.group.title)


@one_by_one
def sentences(of: Designs) -> Iterator[str]:
    """What the points are where runs are a sweep, what each run is for, and where more would hardly help."""
    yield from said_of_points([cell for trained in of.quantities for cell in trained.cells], of.group.runs)
    yield from said_of_outliers(of.quantities)
    for chosen in of.chosen:
        for plan in _different(chosen):
            yield from _said(chosen, plan)


def _different(chosen: Chosen) -> Sequence[Plan]:
    """The plans without one per FLOP that is the best use of a budget too."""
    return chosen.plans if len({plan.runs for plan in chosen.plans}) > 1 else chosen.plans[-1:]


def _said(chosen: Chosen, plan: Plan) -> Iterator[str]:
    start = f"{chosen.trained.title}, {_PLANS[plan.name]}"
    for rank, run in enumerate(plan.runs, 1):
        yield (
            f"{start}, run {rank}: train {short(run.S)} parameters on {short(run.D)} tokens ({short(run.C)} FLOPs), "
            f"and {chosen.target} is known to ±{rough(Z * run.sd_after)} (95 %) instead of ±{rough(Z * run.sd_before)}."
        )
    if plan.next_narrows is not None and plan.next_narrows < LEAST:
        more = "more runs here" if plan.runs else "runs here"
        yield f"{start}: {more} hardly help: the next would narrow it by {plan.next_narrows:.1%}."


QUESTION = Question(each(analyse), keep, tables, sentences, says_all=True)
