"""Selects the checkpoints of a training that are points of a law: ends of decays, or those at a constant rate.

In the middle of a decay a loss lies above that of a run whose decay ends there (Hoffmann et al. 2022, arXiv 2203.15556,
appendix B), and so does one at a constant rate (Hägele et al. 2024, arXiv 2405.18392).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from rbpx.errors import number_of
from rbpx.laws.names import SchedulePhase
from rbpx.runs.run import Run, by_progress, grouped, tokens_of, training_of
from rbpx.spelling import typed

CONSTANT: Final = frozenset({"constant", "constant_with_warmup", "stable"})  # names of schedules that do not decay
WSD: Final = "wsd"  # warms up, holds its rate and decays
_SAME: Final = 1e-6  # relative tolerance for equal rates
_HELD: Final = 0.1  # share of a training for which a constant rate is held; rounded, a cosine is flat near its peak
_DECAYED: Final = 0.5  # of the highest rate; a decay that stops above it was cut off
REACHED: Final = 0.99  # of a schedule's tokens; the last loss may be logged a little before them
_FEWEST: Final = 3  # minimum number of points of a law


def points_of(runs: Sequence[Run]) -> tuple[list[Run], dict[SchedulePhase, int]]:
    """The checkpoints for one law, in order, and the number left out by place in the schedule.

    They are ends of decays, or those at a constant rate where ends are few; the two never mix. Checkpoints of unknown
    schedule go with either.
    """
    ends = {(run.non_embedding_params, tokens_of(run)) for run in runs if run.place is SchedulePhase.end}
    n_constant = sum(run.place is SchedulePhase.constant for run in runs)
    takes_ends = len(ends) >= min(_FEWEST, n_constant)
    left_out = (SchedulePhase.middle, SchedulePhase.constant if takes_ends else SchedulePhase.end)
    counts = {place: sum(run.place is place for run in runs) for place in left_out}
    return [run for run in runs if run.place not in left_out], {place: n for place, n in counts.items() if n}


_TAKEN: Final = {
    SchedulePhase.end: "at the end of a decay",
    SchedulePhase.constant: "at a constant rate",
    None: "of an unknown schedule",
}
_LEFT_OUT: Final = {
    SchedulePhase.middle: "in the middle of a decay, where a loss lies above that of a finished run of as many tokens",
    SchedulePhase.constant: "at a constant rate, where a loss lies above those at the end of a decay",
    SchedulePhase.end: "at the end of a decay, where a loss lies below those at a constant rate",
}


def said_of_places(runs: Sequence[Run], n_left_out: Mapping[SchedulePhase, int]) -> list[str]:
    """How many points are ends of decays and at a constant rate, and how many checkpoints were left out."""
    counts = {
        place: sum(run.place is place for run in runs) for place in (SchedulePhase.end, SchedulePhase.constant, None)
    }
    taken = ", ".join(f"{n} {_TAKEN[place]}" for place, n in counts.items() if n)
    lines = [f"Points: {len(runs)} of {number_of(len(runs) + sum(n_left_out.values()), 'state')}: {taken}."]
    return [*lines, *(f"Left out: {number_of(n, 'state')} {_LEFT_OUT[place]}." for place, n in n_left_out.items())]


def underway(runs: Sequence[Run]) -> list[list[Run]]:
    """The states, in order and with the rates of its plan, of each training that is not at the end of that plan."""
    return [states for states in grouped(by_progress(runs), training_of).values() if _is_underway(states)]


def _is_underway(states: Sequence[Run]) -> bool:
    last = next((run for run in reversed(states) if not run.is_plan), None)
    if last is None:
        return False
    D, until = tokens_of(last), max((run.schedule_tokens or 0 for run in states), default=0)
    return states[-1].is_plan or (D is not None and D < REACHED * until)


def said_of_underway(n: int, source: str) -> str:
    """A note on trainings that a law of finished runs passes over."""
    which = "1 run is" if n == 1 else f"{n:,} runs are"
    return f"{which} underway: {typed('trajectory', source=source)} says where {'it ends' if n == 1 else 'they end'}."


def placed(runs: Sequence[Run]) -> list[Run]:
    """The runs, each with its place in its learning-rate schedule; None where it is unknown.

    With known rates, `constant` is the highest rate where it is held for a tenth of the training, and `end` the last
    checkpoint before the rate rises again, or of the training, once the rate is at most half of the highest. Without
    them the name of the schedule decides: `constant` for a constant one, `end` for the last checkpoint of another one,
    by its length in tokens where that is known. A schedule with another name (except wsd) is nowhere constant, and a
    rate that never changes then says nothing.
    """
    of = grouped(by_progress(runs), training_of).values()
    found = {id(run): place for states in of for run, place in zip(states, _of_one(states), strict=True)}
    return [run if found[id(run)] is None else replace(run, place=found[id(run)]) for run in runs]


def _of_one(states: Sequence[Run]) -> list[SchedulePhase | None]:
    names = {run.schedule.lower() for run in states if run.schedule is not None}
    rates = [run.lr for run in states if run.lr is not None]
    if names and not names & CONSTANT and len(set(rates)) == 1:
        rates = []
    if not names and len(set(rates)) < 2 and (len(rates) < 2 or any(run.schedule_tokens for run in states)):
        rates = []  # a single number may be a rate of a sweep or of a step
    if not names and not rates and all(run.schedule_tokens is None for run in states):
        return [None] * len(states)
    peak = max(rates, default=0.0)
    at_peak = [at for at, run in enumerate(states) if rates and run.lr is not None and run.lr >= peak * (1 - _SAME)]
    is_held = peak > 0 and len(at_peak) > 1 and _length(states, at_peak) >= _HELD and names <= {*CONSTANT, WSD}
    return [
        SchedulePhase.constant if is_held and at in set(at_peak) else _place(states, at, peak, names)
        for at in range(len(states))
    ]


def _length(states: Sequence[Run], held: Sequence[int]) -> float:
    """The share of a training between two checkpoints, by tokens, else steps, else their count."""
    for name in ("training_tokens", "training_step"):
        first, until, last = (getattr(states[at], name) for at in (held[0], held[-1], -1))
        if None not in (first, until, last) and last:
            return float((until - first) / last)
    return (held[-1] - held[0]) / len(states)


def _place(states: Sequence[Run], at: int, peak: float, names: set[str]) -> SchedulePhase:
    run, is_last, tokens = states[at], at == len(states) - 1, tokens_of(states[at])
    if names and names <= CONSTANT:
        return SchedulePhase.middle if run.lr is not None and run.lr < peak * (1 - _SAME) else SchedulePhase.constant
    if run.schedule_tokens is not None and tokens is not None:
        return SchedulePhase.end if tokens >= REACHED * run.schedule_tokens else SchedulePhase.middle
    if not peak or run.lr is None:
        return SchedulePhase.end if is_last else SchedulePhase.middle
    later = next((each.lr for each in states[at + 1 :] if each.lr is not None), None)
    before = next((each.lr for each in reversed(states[:at]) if each.lr is not None), None)
    falls = before is not None and run.lr < before
    ends = is_last or (later is not None and later > run.lr and falls)
    return SchedulePhase.end if ends and run.lr <= _DECAYED * peak else SchedulePhase.middle
