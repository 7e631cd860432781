"""What the pictures of two steps draw: success against size with the forecast, and success against the feature."""

from dataclasses import dataclass

import numpy as np

from rbpx.analyses.downstream.analysis import TaskSteps
from rbpx.analyses.downstream.steps import FeatureSteps, Predicted
from rbpx.analyses.downstream.trainings import averages, means

__all__ = ["Curves", "best_of", "curves_of"]

_STEPS = 40  # along a sigmoid


@dataclass(frozen=True, eq=False)
class Curves:
    """One task by one feature; lists are points, in order.

    Attributes:
        S: of the trainings that were fitted.
        x: their features.
        y: their success.
        forecast: the predictions that have a number.
        x_curve: features along the sigmoid.
        y_curve: success there.
    """

    S: list[float]
    x: list[float]
    y: list[float]
    forecast: list[Predicted]
    x_curve: list[float]
    y_curve: list[float]


def best_of(task: TaskSteps) -> FeatureSteps | None:
    """The feature that predicted best, else the first that has both steps; None where none has."""
    usable = [steps for steps in task.features if steps.sigmoid is not None and steps.predictions]
    for each in task.contestants:
        found = next((s for s in usable if (s.values.name, s.values.k) == (each.feature, each.k)), None)
        if found is not None:
            return found
    return usable[0] if usable else None


def curves_of(task: TaskSteps, steps: FeatureSteps, last: int = 1) -> Curves:
    """The points of the last checkpoints of the fitted trainings, the sigmoid through them, and the forecasts."""
    of_TR = averages(task.parts.fitted, len(task.values.success_R), last)
    x_T, y_T = means(of_TR, steps.values.x_R), means(of_TR, task.values.success_R)
    known_T = np.isfinite(x_T) & np.isfinite(y_T)
    own = [each.feature for each in steps.predictions if each.feature is not None]
    own += [each.step1.value for each in steps.predictions if each.step1.value is not None]
    least, most = (min([*own, *x_T[known_T]]), max([*own, *x_T[known_T]])) if known_T.any() else (0.0, 1.0)
    x_L = np.linspace(least, most, _STEPS).tolist()
    y_L = [] if steps.sigmoid is None else [steps.sigmoid.sigmoid(x) for x in x_L]
    S = [each.S for each, known in zip(task.parts.fitted, known_T, strict=True) if known]
    forecast = [each for each in steps.predictions if each.chained.value is not None]
    return Curves(S, x_T[known_T].tolist(), y_T[known_T].tolist(), forecast, x_L, y_L)
