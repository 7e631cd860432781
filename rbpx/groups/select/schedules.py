"""Which losses of a training are points of a law: the ends of decays and those at a constant rate, as far as is known.

In the middle of a decay a loss lies above that of a run whose decay ends there (Hoffmann et al. 2022, arXiv 2203.15556,
appendix B; Hägele et al. 2024, arXiv 2405.18392).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from rbpx.groups.group import Run
from rbpx.groups.select.sizes import in_order, training_of

CONSTANT: Final = frozenset({"constant", "constant_with_warmup", "stable"})  # names of schedules that do not decay
_SAME: Final = 1e-6  # relative, rates that are one
_HELD: Final = 0.1  # of a training's length, what a rate must be held for; near its peak a cosine is flat, as rounded
_DECAYED: Final = 0.5  # of the highest rate; a decay that stops above it was cut off


class Place(StrEnum):
    """Where in the schedule of its learning rate a state of a training lies."""

    end = "end"
    constant = "constant"
    middle = "middle"


def places_of(runs: Sequence[Run]) -> list[Place | None]:
    """Where each of some states of trainings lies, None where nothing is known of its schedule.

    With rates, `constant` is what has the highest one where that is held for a tenth of the training, and `end` is the
    last state before the rate rises again, or of the training, once the rate is at most half of the highest. Without
    them `constant` is what has such a schedule, and `end` the last state of a training with another one. A schedule that
    is named constant has no end, one that is named otherwise (but wsd) is nowhere constant.

    Args:
        runs: alike; the states of one training are ordered by their tokens and steps.
    """
    of: dict[tuple[Any, ...], list[Run]] = {}
    for run in in_order(runs):
        of.setdefault(training_of(run), []).append(run)
    found = {id(run): place for states in of.values() for run, place in zip(states, _of_one(states), strict=True)}
    return [found[id(run)] for run in runs]


def taken(place: Place | None) -> bool:
    """Whether a state there may be a point of a law."""
    return place is not Place.middle


def _of_one(states: Sequence[Run]) -> list[Place | None]:
    if all(run.schedule is None and run.lr is None for run in states):
        return [None] * len(states)
    rates = [run.lr for run in states if run.lr is not None]
    peak = max(rates, default=0.0)
    at_peak = [at for at, run in enumerate(states) if run.lr is not None and run.lr >= peak * (1 - _SAME)]
    is_held = peak > 0 and len(at_peak) > 1 and _length(states, at_peak) >= _HELD
    return [_place(states, at, peak, is_held and at in set(at_peak)) for at in range(len(states))]


def _length(states: Sequence[Run], held: Sequence[int]) -> float:
    """The share of a training between two states, by tokens, else steps, else states."""
    for name in ("training_tokens", "training_step"):
        first, until, last = (getattr(states[at], name) for at in (held[0], held[-1], -1))
        if None not in (first, until, last) and last:
            return float((until - first) / last)
    return (held[-1] - held[0]) / len(states)


def _place(states: Sequence[Run], at: int, peak: float, is_held: bool) -> Place:
    run, is_last = states[at], at == len(states) - 1
    named = None if run.schedule is None else run.schedule.lower()
    if run.lr is None:
        if named in CONSTANT:
            return Place.constant
        return Place.end if is_last else Place.middle
    if is_held and (named is None or named in CONSTANT or named == "wsd"):
        return Place.constant
    if len(states) == 1:
        return Place.constant if named in CONSTANT else Place.end
    later = next((each.lr for each in states[at + 1 :] if each.lr is not None), None)
    before = next((each.lr for each in reversed(states[:at]) if each.lr is not None), None)
    falls = before is not None and run.lr < before
    ends = is_last or (later is not None and later > run.lr and falls)
    return Place.end if ends and run.lr <= _DECAYED * peak and named not in CONSTANT else Place.middle
