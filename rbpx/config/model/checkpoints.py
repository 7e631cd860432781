"""The checkpoints that a family publishes: as its file writes their steps, and those of them that a request names."""

from collections.abc import Sequence
from typing import Any, Final

from rbpx.config.keys.key import name_of
from rbpx.errors import RbpxError

__all__ = ["chosen_revisions", "listed_steps", "log_spaced"]

_EVERY: Final = ("all", "log")
_RATIO: Final = 1.9  # of a step to the one before it; 512 and 1,000 of Pythia are neighbours
_HOW: Final = "give steps and ranges, as in checkpoints: [0, 1, 2, 4, {from: 1000, to: 143000, by: 1000}]"


def listed_steps(checkpoints: Sequence[Any], family: str | None) -> list[int]:
    """The steps that a family's file lists, each a whole number or a range {from: , to: , by: }, ascending.

    Raises:
        RbpxError: an entry is neither.
    """
    steps: set[int] = set()
    for entry in checkpoints:
        if isinstance(entry, int) and not isinstance(entry, bool) and entry >= 0:
            steps.add(entry)
            continue
        is_range = isinstance(entry, dict) and len(entry) == 3
        ends: list[Any] = [entry.get(name) for name in ("from", "to", "by")] if is_range else []
        whole = len(ends) == 3 and all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
        if not whole or not 0 <= ends[0] <= ends[1] or not 0 < ends[2] or (ends[1] - ends[0]) // ends[2] > 100_000:
            raise RbpxError(f"checkpoints of family {family}: {entry} is not a step, nor a range of steps; {_HOW}")
        steps |= set(range(ends[0], ends[1] + 1, ends[2]))
    return sorted(steps)


def log_spaced(steps: Sequence[int]) -> list[int]:
    """Some of the steps, each about twice the one before it or more, with the first and the last."""
    chosen: list[int] = []
    for step in steps:
        if not chosen or step >= _RATIO * chosen[-1]:
            chosen.append(step)
    return sorted({*chosen, *steps[-1:]})


def chosen_revisions(revision: Any, checkpoints: Sequence[Any], family: str | None) -> list[str | None]:
    """The revisions that `model.revision` names: one, a list, or all or log-spaced ones of those that a file lists.

    Raises:
        RbpxError: a name was read as a number, a list is empty or names one twice, or the family lists no checkpoints.
    """
    names = revision if isinstance(revision, list) else [revision]
    for name in names:
        name_of("model.revision", name)
    if not names or len(set(names)) < len(names) or (isinstance(revision, list) and {None, *_EVERY} & set(names)):
        raise RbpxError(
            f"model.revision={revision} is not a list of different revisions; write model.revision='[step1000,main]'"
        )
    if revision not in _EVERY:
        return names
    steps = listed_steps(checkpoints, family)
    if not steps:
        raise RbpxError(
            f"model.revision={revision}: family {family} lists no checkpoints; name them, as in "
            "model.revision='[step1000,step2000]', or list their steps under checkpoints: in its file"
        )
    return [f"step{step}" for step in (steps if revision == "all" else log_spaced(steps))]
