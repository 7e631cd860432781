"""Groups the runs of a task into trainings, and selects the checkpoints of each step.

Shapes: R runs, T trainings, N points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rbpx.config.options import did_you_mean
from rbpx.errors import RbpxError
from rbpx.laws.numeric import Floats
from rbpx.questions.downstream import DownstreamKeys
from rbpx.runs.points.tasks import TaskValues
from rbpx.runs.run import Run, grouped, tokens_of, training_of
from rbpx.store.imports.observations import written

_FAR_APART: Final = 1.5  # ratio of tokens beyond which the mean of checkpoints is not that of the end of a training


@dataclass(frozen=True)
class TaskTraining:
    """One training: `at` indexes its checkpoints, by tokens, in the group; D is that of the last, if known."""

    at: tuple[int, ...]
    last: Run
    D: float | None

    @property
    def S(self) -> float:
        """Size of the model."""
        return self.last.non_embedding_params


@dataclass(frozen=True)
class HeldTrainings:
    """The fitted and the held-out trainings, each in order of S and D."""

    fitted: tuple[TaskTraining, ...]
    held_out: tuple[TaskTraining, ...]


def split(values: TaskValues, request: DownstreamKeys) -> HeldTrainings:
    """Holds out the largest size, or the requested ones; raises RbpxError for one that does not exist."""
    trainings = _trainings(values.group.runs)
    asked = request.held_out
    if asked is None:
        largest = max(training.S for training in trainings)
        # When models yet to be trained are predicted, all measured ones may be fitted.
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
    return HeldTrainings(tuple(each for each in trainings if each not in held_out), tuple(held_out))


def _trainings(runs: Sequence[Run]) -> list[TaskTraining]:
    trainings = []
    for of in grouped(range(len(runs)), lambda at: _key(runs[at])).values():
        ordered = sorted(of, key=lambda at: (tokens_of(runs[at]) or 0.0, runs[at].training_step or 0))
        trainings.append(TaskTraining(tuple(ordered), runs[ordered[-1]], tokens_of(runs[ordered[-1]])))
    return sorted(trainings, key=lambda training: (training.S, training.D or 0.0, training.last.size))


def _key(run: Run) -> tuple[Any, ...]:
    """What the checkpoints of a training share, at least the name of the size."""
    is_told = run.source == "measured" or run.model is not None or run.training_step is not None
    if is_told or run.size == written(run.non_embedding_params):
        return training_of(run)
    return run.size, run.non_embedding_params, run.training_seed


def averaged(training: TaskTraining, value_R: Floats, last: int) -> float:
    """Mean over the last checkpoints of a training that have the value, or NaN."""
    known = [value_R[at] for at in training.at if not math.isnan(value_R[at])][-last:]
    return float(np.mean(known)) if known else math.nan


def is_mixed(training: TaskTraining, runs: Sequence[Run], last: int) -> bool:
    """Whether the averaged last checkpoints of a training are far apart in tokens."""
    tokens = [tokens_of(runs[at]) for at in training.at[-last:]]
    known = [D for D in tokens if D]
    return len(known) > 1 and max(known) > _FAR_APART * min(known)


def means(of_N: Sequence[tuple[int, ...]], value: Floats) -> Floats:
    """Means over sets of runs, [N] or [B, N]; NaN where a value is not finite."""
    finite, mean = np.where(np.isfinite(value), value, np.nan), np.empty((*value.shape[:-1], len(of_N)))
    for n, at in enumerate(of_N):
        mean[..., n] = finite[..., list(at)].mean(axis=-1)
    return mean


def points(trainings: Sequence[TaskTraining], drop: float, smooth: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """The sets of runs whose means are the points of step 2, and the training of each point.

    Drops the first `drop` (a share) of the checkpoints of each training, never the last, and takes trailing means over
    `smooth` of the rest.
    """
    averaged, of = list[tuple[int, ...]](), list[int]()
    for number, training in enumerate(trainings):
        kept = training.at[min(math.ceil(drop * len(training.at)), len(training.at) - 1) :]
        averaged += [kept[max(0, end - smooth) : end] for end in range(1, len(kept) + 1)]
        of += [number] * len(kept)
    return averaged, of
