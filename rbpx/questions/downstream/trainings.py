"""Groups the runs of a task into trainings, holds some out, and says which checkpoints each step takes.

Shapes: R runs, T trainings, N points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rbpx.config.options import did_you_mean
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Run, grouped
from rbpx.runs.points.tasks import TaskValues
from rbpx.runs.select.sizes import tokens_of, training_of
from rbpx.store.imports.observations import written

_FAR_APART: Final = 1.5  # factor between the tokens of checkpoints beyond which their mean is not that of an end


@dataclass(frozen=True)
class Training:
    """One training, its checkpoints in order of their tokens.

    Attributes:
        at: places of its runs in the group.
        last: its last run.
        D: training tokens of the last run; None where they are not known.
    """

    at: tuple[int, ...]
    last: Run
    D: float | None

    @property
    def S(self) -> float:
        """Its size."""
        return self.last.non_embedding_params


@dataclass(frozen=True)
class Split:
    """The trainings that both steps are fitted to, and those that are held out, each in order of S and D."""

    fitted: tuple[Training, ...]
    held_out: tuple[Training, ...]


def split(values: TaskValues, request: Request) -> Split:
    """Hold out the largest size, or the sizes that were asked for.

    Raises:
        RbpxError: a size that is to be held out does not exist.
    """
    trainings = _trainings(values.group.runs)
    asked = request.held_out
    if asked is None:
        largest = max(training.S for training in trainings)
        # Where models still to be trained are predicted, all the others may be fitted.
        held_out = [each for each in trainings if each.S == largest and not request.S]
    else:
        sizes = list(dict.fromkeys(training.last.size for training in trainings))
        unknown = next((size for size in asked if size not in sizes), None)
        if unknown is not None:
            raise RbpxError(
                f"held_out={unknown} is not a size of {values.group.title}; {did_you_mean(unknown, sizes)}"
                f"it has: {', '.join(sizes)}"
            )
        held_out = [each for each in trainings if each.last.size in asked]
    return Split(tuple(each for each in trainings if each not in held_out), tuple(held_out))


def _trainings(runs: Sequence[Run]) -> list[Training]:
    trainings = []
    for of in grouped(range(len(runs)), lambda at: _key(runs[at])).values():
        ordered = sorted(of, key=lambda at: (tokens_of(runs[at]) or 0.0, runs[at].training_step or 0))
        trainings.append(Training(tuple(ordered), runs[ordered[-1]], tokens_of(runs[ordered[-1]])))
    return sorted(trainings, key=lambda training: (training.S, training.D or 0.0, training.last.size))


def _key(run: Run) -> tuple[Any, ...]:
    """What the checkpoints of a training share. A size with a name of its own tells trainings apart if nothing else."""
    is_told = run.source == "measured" or run.model is not None or run.training_step is not None
    if is_told or run.size == written(run.non_embedding_params):
        return training_of(run)
    return run.size, run.non_embedding_params, run.training_seed


def averaged(training: Training, value_R: Floats, last: int) -> float:
    """The mean over the last checkpoints of a training at which the value is known; NaN without any."""
    known = [value_R[at] for at in training.at if not math.isnan(value_R[at])][-last:]
    return float(np.mean(known)) if known else math.nan


def is_mixed(training: Training, runs: Sequence[Run], last: int) -> bool:
    """Whether the last checkpoints of a training, whose mean is taken, are far apart in tokens."""
    tokens = [tokens_of(runs[at]) for at in training.at[-last:]]
    known = [D for D in tokens if D]
    return len(known) > 1 and max(known) > _FAR_APART * min(known)


def ends(trainings: Sequence[Training], last: int) -> list[tuple[int, ...]]:
    """The last checkpoints of each training."""
    return [training.at[-last:] for training in trainings]


def means(of_N: Sequence[tuple[int, ...]], value: Floats) -> Floats:
    """The means of values [R] or [B, R] over sets of runs, [N] or [B, N]; NaN where one is not finite."""
    finite, mean = np.where(np.isfinite(value), value, np.nan), np.empty((*value.shape[:-1], len(of_N)))
    for n, at in enumerate(of_N):
        mean[..., n] = finite[..., list(at)].mean(axis=-1)
    return mean


def points(trainings: Sequence[Training], drop: float, smooth: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """The runs whose means are the points of step 2, and the training of each point.

    Drops the share `drop` of the checkpoints of each training from its beginning, but never the last one, and takes
    trailing means over `smooth` of the rest (over fewer at the start).
    """
    averaged, of = list[tuple[int, ...]](), list[int]()
    for number, training in enumerate(trainings):
        kept = training.at[min(math.ceil(drop * len(training.at)), len(training.at) - 1) :]
        averaged += [kept[max(0, end - smooth) : end] for end in range(1, len(kept) + 1)]
        of += [number] * len(kept)
    return averaged, of
