"""Answers what to train next, in sentences, with a table of budgets."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import Table, View, decimal, magnitude, share, state, text, whole, with_ends, written
from rbpx.display.vocabulary import in_digits, law_title, rough, short, significant, spoken
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.next_runs import LEAST, Plan
from rbpx.laws.surface.outliers import farthest_of
from rbpx.questions.decide.analysis import LONG, Decision, analyse
from rbpx.questions.decide.figures import figures
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.points.frontier import said_of_points
from rbpx.runs.points.outliers import said_of_outliers
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.runs.select.ways import whole_trainings
from rbpx.status import Status, first_of
from rbpx.store.store import Record

_SAID_ELSEWHERE: Final = (Status.collinear_design, Status.mixed_checkpoints)  # neither of which mixing forms allows for


def _three(value: float | None) -> str:
    return significant(value, 3)


_SD_AFTER: Final = "standard deviation of what is narrowed, over forms, misfit and scatter"
_PLANS: Final = {"per_flop": "most per FLOP", "budget": "the best use of all"}


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.2g} %"


BEST: Final = View[Record](
    "best",
    text("law", "law", lambda row: law_title(row["law"], row["k"]), spare=1),
    magnitude("C", "C", means="training FLOPs, 6 S D"),
    with_ends("best S", "S", None, short),
    with_ends("best D", "D", None, short, ends_spare=3),
    with_ends("expected y", "y", None, in_digits(4), "what a new run of this size would show"),
    share("half S", "half", None, 2, "larger y with half the size and twice the tokens", 2),
    share("D x 5", "fivefold", None, 2, "the same with five times the tokens", 2),
    state(),
)
NEXT: Final = View[Record](
    "next",
    whole("run", "rank", means="a run that is named twice is to be trained with two seeds"),
    magnitude("S", "S"),
    magnitude("D", "D"),
    magnitude("C = 6 S D", "C"),
    decimal("sd before", "sd_before"),
    decimal("sd after", "sd_after", means=_SD_AFTER),
    share("narrower by", "narrowed"),
    written("per 1e18 FLOPs", "per_flop", lambda row: row["per_flop"] * 1e18, rough, spare=1),
)


def answer(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Result:
    """Decide what to train next; nothing enters `fits`."""
    decisions = analyse(connection, group, request)
    rows = alike([row for each in decisions for row in each.rows])
    drawn = partial(figures, group, decisions)
    return Result([group], rows, [*_tables(group, decisions)], [*_sentences(group, decisions)], drawn)


def _tables(group: TrainingGroup, decisions: Sequence[Decision]) -> Iterator[Table]:
    """The best of each budget, then for each quantity the runs to train next."""
    if rows := [row for each in decisions for row in each.of_kind("best")]:
        yield BEST.table(
            "The best of a budget", rows, group.title, note="Over forms, bends and misfit; 95 % intervals."
        )
    for n, decision in enumerate(decisions, 1):
        for plan in _different(decision):
            title = f"To narrow {decision.target} of {decision.trained.title}: {_PLANS[plan.name]}"
            rows = [row for row in decision.of_kind("next") if row["plan"] == plan.name]
            if plan.runs:
                name = f"{NEXT.name}-{plan.name}-{n}".replace("_", "-")
                yield replace(NEXT.table(title, rows, group.title), name=name)


def _different(of: Decision) -> Sequence[Plan]:
    """The plans without one per FLOP that is the best use of all too."""
    return of.plans if len({plan.runs for plan in of.plans}) > 1 else of.plans[-1:]


def _sentences(group: TrainingGroup, decisions: Sequence[Decision]) -> Iterator[str]:
    """What the runs say, one decision after the other; before all, what would change every number."""
    if group.is_mixed:
        yield (
            f"{group.n_undecayed} of {number_of(len(group.runs), 'point')} are states before the end of their "
            "training, which lie above finished runs of as many tokens and move every number below: add "
            "checkpoints=last."
        )
    yield from said_of_points([cell for each in decisions for cell in each.trained.cells], group.runs)
    yield from said_of_outliers([each.trained for each in decisions])
    for decision in decisions:
        for said in _said(decision):
            yield f"{decision.trained.title}: {said}" if len(decisions) > 1 else said[0].upper() + said[1:]


def _said(of: Decision) -> Iterator[str]:
    runs, fit = of.trained.runs, of.form
    S, D, C = (
        _range(of_N, written) for of_N, written in ((runs.S_N, spoken), (runs.D_N, spoken), (runs.along(Axis.C), short))
    )
    yield (
        f"what to train next, by {of.trained.title} of {number_of(fit.n_runs, 'run')} of {S} parameters on {D} tokens, "
        f"{C} FLOPs."
    )
    title = of.trained.title
    for row in of.of_kind("best"):
        yield from _of_budget(row, title)
    for row in of.of_kind("served"):
        yield _served(row, title)
    for row in of.of_kind("asked"):
        yield f"{_at(row)} would show {title} of {_between(row, 'y', in_digits(4))}."
    if of.rows[0]["E"] is not None:
        yield f"what no model gets below, E, is {_between(of.rows[0], 'E', in_digits(4))}."
    yield from _worth(of)
    yield from _of_largest(of)
    yield from _next(of)
    yield from _not_said(of)


def _range(values_N: Floats, written: Callable[[float | None], str]) -> str:
    least, most = written(float(values_N.min())), written(float(values_N.max()))
    return least if least == most else f"{least} to {most}"


def _at(row: Record) -> str:
    return f"{spoken(row['S'])} parameters on {spoken(row['D'])} tokens"


def _between(row: Record, name: str, written: Callable[[float | None], str] = spoken) -> str:
    value, lo, hi = (row[f"{name}{end}"] for end in ("", "_lo", "_hi"))
    if value is None:
        return "unknown"
    return written(value) if lo is None or hi is None else f"{written(value)} ({written(lo)} to {written(hi)})"


def _of_budget(best: Record, title: str) -> Iterator[str]:
    start = f"at {short(best['C'])} FLOPs"
    if best["S"] is None:
        yield f"{start} the runs do not say which size is best: no size within a hundredfold of theirs has the least."
        return
    yield f"{start} {_train(best)}; a run of that size would show {title} of {_between(best, 'y', in_digits(4))}."
    yield (
        f"{start} a model half that size on twice the tokens is {_between(best, 'half', _percent)} worse, "
        f"one on five times the tokens {_between(best, 'fivefold', _percent)}."
    )


def _train(best: Record) -> str:
    return f"train {_between(best, 'S')} parameters on {_between(best, 'D')} tokens"


def _served(served: Record, title: str) -> str:
    tokens, C = f"{spoken(served['T'])} tokens", f"{short(served['C'])} FLOPs"
    start = f"to serve {tokens} at the loss of the best run of {C}, "
    none = "no size within thirty times smaller reaches it with more tokens"
    gains = f"which saves {_between(served, 'saved', _percent)} of all FLOPs"
    if served["within"]:
        start = f"if {C} are to train a model and serve {tokens}, "
        none = "no size is the best of those within a hundredfold of the runs"
        gains = f"which would show {title} of {_between(served, 'y', in_digits(4))}"
    return f"{start}{none}." if served["S"] is None else f"{start}{_train(served)}, {gains}."


def _worth(of: Decision) -> Iterator[str]:
    """What the variant is worth beside models without one, and from how much compute on."""
    worth, variant = of.worth, of.trained.members[0].variant
    if worth is None:
        return
    if worth.multiplier.value is None:
        yield f"variant {variant} cannot be compared with runs without a variant: {first_of(worth.reasons).label}."
        return
    least, most = worth.common["C_from"], worth.common["C_to"]
    times = _between(by_name(m=worth.multiplier), "m", _three)
    compared = f"variant {variant} is worth {times} times the compute of runs without a variant"
    at = f"at {short(worth.at[1].C)} FLOPs"
    if worth.apart is None:
        yield f"{compared} {at}; from {short(least)} to {short(most)} FLOPs no difference shows."
        return
    start, end = worth.apart
    where = f"from {short(start)} FLOPs on" if end >= most else f"up to {short(end)} FLOPs, and not beyond"
    if start <= least and end >= most:
        where = f"at all compute compared, {short(least)} to {short(most)} FLOPs"
    last = worth.at[2 if end >= most else 0].value.value or 1.0
    yield f"{compared} {at}; it {'pays' if last > 1 else 'costs'} {where}."
    if worth.slope.leaves_out_0:
        way = "grows" if (worth.slope.value or 0.0) > 0 else "shrinks"
        there = ", ".join(
            f"{_between(by_name(m=each.value), 'm', _three)} at {short(each.C)}" for each in (worth.at[0], worth.at[2])
        )
        yield f"that {way} with compute, so quote it with its compute: {there}."


def _of_largest(of: Decision) -> Iterator[str]:
    largest = of.of_kind("largest")
    if not largest:
        yield "too few budgets to foretell the largest runs from smaller ones, so nothing tests a forecast."
        return
    inside = sum(row["held"] is True for row in largest)
    if len(largest) == 1:
        lies = "lies" if inside else "does not lie"
        yield f"the run with the most compute {lies} where smaller ones say that it would."
    else:
        every = "both" if len(largest) == 2 else "all"
        some = {0: "none", len(largest): every}.get(inside, str(inside))
        yield (
            f"of the {len(largest)} runs with the most compute, {some} {'lies' if inside == 1 else 'lie'} "
            "where smaller ones say that they would."
        )
    farthest = farthest_of(len(largest))
    for row in sorted(largest, key=lambda row: -abs(row["in_sd"])):
        if abs(row["in_sd"]) > farthest:
            yield f"the run of {_at(row)} is {rough(abs(row['in_sd']))} standard deviations {_side(row['in_sd'])}."


def _side(off: float) -> str:
    if off > 0:
        return "worse than smaller runs announce: look whether it diverged, was tuned, and had its decay"
    return "better than smaller runs announce: tuned better than they were, or the law bends"


def _next(of: Decision) -> Iterator[str]:
    for plan in _different(of):
        per_flop = " per FLOP" * (plan.name == "per_flop")
        times = Counter((run.S, run.D, run.C) for run in plan.runs)
        left, told = plan.runs[0].sd_before if plan.runs else plan.sd, list[str]()
        for (S, D, C), n in times.items():
            often = {1: "one", 2: "two", 3: "three"}.get(n, str(n))
            told.append(
                f"{often} of {spoken(S)} parameters on {spoken(D)} tokens ({short(C)} FLOPs{' each' * (n > 1)})"
            )
        if told:
            yield (
                f"runs that narrow {of.target} most{per_flop}: {', then '.join(told)}, which "
                f"{'leaves' if len(plan.runs) == 1 else 'leave'} its interval "
                f"{1 - plan.sd / left:.0%} narrower."
            )
        if plan.next_narrows is not None and plan.next_narrows < LEAST:
            more = f"{'more runs' if plan.runs else 'runs'} within what there is hardly help"
            yield f"{more}: the next narrows by {plan.next_narrows:.1%}."


def _not_said(of: Decision) -> Iterator[str]:
    doubts = [status for status in of.reasons if status is not Status.ok]
    if Status.collinear_design in doubts:
        yield (
            "what must not be concluded: which size is best. Size and tokens vary together, so no split of a budget "
            "can be told from another; train some sizes longer or shorter (next=3 says which)."
        )
    yield from _too_far(of)
    others = [f'"{status.label}"' for status in doubts if status not in _SAID_ELSEWHERE]
    if others:
        yield (
            f"what must not be quoted: a single constant of the law, whose status is {' and '.join(others)}; numbers "
            "over forms allow for it."
        )


def _too_far(of: Decision) -> Iterator[str]:
    """Which of the numbers lie where no run and no backtest is."""
    far = [
        f"at {short(row['C'])} FLOPs, {rough(row['beyond'])} times the most compute of the runs"
        for row in of.of_kind("best")
        if Status.beyond in row["reasons"]
    ]
    far += [
        f"for serving, whose tokens per parameter are {rough(row['ratio_beyond'])} times the most of the runs"
        for row in of.of_kind("served")
        if row["ratio_beyond"] > LONG
    ]
    far += [f"for {_at(row)}" for row in of.of_kind("asked") if Status.beyond in row["reasons"]]
    if far:
        yield (
            f"what must not be concluded: that the numbers hold {'; '.join(far)}. No run lies near and no backtest "
            "reaches so far, and a bend that starts beyond the runs is in no interval."
        )


QUESTION = of_each(answer, select=whole_trainings)
