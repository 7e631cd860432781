"""The trainings of a task: which runs are checkpoints of one, which are held out, and which of them each step takes.

Shapes: R runs, T trainings, N points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.config.options import did_you_mean
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.groups.group import Run
from rbpx.groups.points.tasks import TaskValues
from rbpx.groups.select.sizes import tokens_of, training_of
from rbpx.laws.numeric import Floats
from rbpx.store.imports.observations import written

_FAR_APART: Final = 1.5  # the factor between the tokens of checkpoints whose mean is no longer one of a training's end


@dataclass(frozen=True)
class Training:
    """One training, its checkpoints in order of their tokens.

    Attributes:
        at: indices of its runs in the group.
        last: its last run.
        D: training tokens of that; None where they are not known.
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
    """Which trainings are fitted; the largest size is held out, or those that were asked for.

    Raises:
        RbpxError: a size that is to be held out is not among them.
    """
    trainings = _trainings(values.group.runs)
    asked = request.held_out
    if asked is None:
        largest = max(training.S for training in trainings)
        # With models still to be trained to predict, all that are there may be fitted.
        held_out = [each for each in trainings if each.S == largest and not request.S]
    else:
        sizes = list(dict.fromkeys(training.last.size for training in trainings))
        unknown = next((size for size in asked if size not in sizes), None)
        if unknown is not None:
            raise RbpxError(
                f"held_out={unknown} is no size of {values.group.title}; {did_you_mean(unknown, sizes)}"
                f"it has: {', '.join(sizes)}"
            )
        held_out = [each for each in trainings if each.last.size in asked]
    return Split(tuple(each for each in trainings if each not in held_out), tuple(held_out))


def _trainings(runs: Sequence[Run]) -> list[Training]:
    members: dict[tuple[Any, ...], list[int]] = {}
    for at, run in enumerate(runs):
        members.setdefault(_key(run), []).append(at)
    trainings = []
    for of in members.values():
        ordered = sorted(of, key=lambda at: (tokens_of(runs[at]) or 0.0, runs[at].training_step or 0))
        trainings.append(Training(tuple(ordered), runs[ordered[-1]], tokens_of(runs[ordered[-1]])))
    return sorted(trainings, key=lambda training: (training.S, training.D or 0.0, training.last.size))


def _key(run: Run) -> tuple[Any, ...]:
    """What the checkpoints of a training share: a model or a step tells, else a size that has a name of its own."""
    is_told = run.source == "measured" or run.model is not None or run.training_step is not None
    if is_told or run.size == written(run.non_embedding_params):
        return training_of(run)
    return run.size, run.non_embedding_params, run.training_seed


def averaged(training: Training, value_R: Floats, last: int) -> float:
    """The mean over its last checkpoints at which the value is known; NaN where there are none."""
    known = [value_R[at] for at in training.at if not math.isnan(value_R[at])][-last:]
    return float(np.mean(known)) if known else math.nan


def is_mixed(training: Training, runs: Sequence[Run], last: int) -> bool:
    """Whether the mean of its last checkpoints is one of states that are far apart."""
    tokens = [tokens_of(runs[at]) for at in training.at[-last:]]
    known = [D for D in tokens if D]
    return len(known) > 1 and max(known) > _FAR_APART * min(known)


def averages(trainings: Sequence[Training], n_runs: int, last: int) -> Floats:
    """Weights that take the mean of the last checkpoints of each training, [T, R]."""
    return _mean_of([training.at[-last:] for training in trainings], n_runs)


def _mean_of(runs: Sequence[Sequence[int]], n_runs: int) -> Floats:
    """Rows of weights, each of which takes the mean of some runs."""
    of_NR = np.zeros((len(runs), n_runs))
    for row_R, at in zip(of_NR, runs, strict=True):
        row_R[list(at)] = 1 / len(at)
    return of_NR


def means(of_NR: Floats, value: Floats) -> Floats:
    """The means of runs that rows of weights take, of values [R] or [B, R]; NaN where one of them is not finite."""
    is_finite = np.isfinite(value)
    mean = np.where(is_finite, value, 0.0) @ of_NR.T
    return np.where((~is_finite).astype(np.float64) @ of_NR.T > 0, np.nan, mean)


def points(
    trainings: Sequence[Training], n_runs: int, drop: float, smooth: int
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Weights that make the points of step 2 of the runs, [N, R], and the training of each point.

    Of each training trailing means over `smooth` checkpoints (fewer at the start) of all but the first share, never of
    none.
    """
    averaged, of = [], []
    for number, training in enumerate(trainings):
        kept = training.at[min(math.ceil(drop * len(training.at)), len(training.at) - 1) :]
        averaged += [kept[max(0, end - smooth) : end] for end in range(1, len(kept) + 1)]
        of += [number] * len(kept)
    return _mean_of(averaged, n_runs), np.array(of, np.int64)
