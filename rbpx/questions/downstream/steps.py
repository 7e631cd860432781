"""Fits both steps of one feature of a task and predicts the held-out models.

Source: arXiv 2412.04403 (OLMo ladder). Shapes: R runs, T trainings, N points of step 2.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import numpy as np

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Z, by_name, of_share
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.predicted import FAR, extrapolation_factor
from rbpx.laws.prediction.prediction import COMBINED, MIN_SIZES, TAILS, fit_all_forms
from rbpx.laws.success.chain import (
    MINIMUM_SD,
    N_CURVES,
    Feature,
    feature_from_estimate,
    feature_from_mixture,
    independent_points,
    measured_feature,
    plausible_curves,
    predict_success,
)
from rbpx.laws.success.sigmoid import NAMES, Sigmoid, curves, fit_sigmoid
from rbpx.laws.surface.averaged import backtest_budgets, predict_averaged
from rbpx.laws.surface.design import judge_design
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.questions.downstream import DownstreamKeys
from rbpx.questions.downstream.trainings import HeldTrainings, TaskTraining, averaged, is_mixed, means, points
from rbpx.runs.points.sizes import Points
from rbpx.runs.points.tasks import TaskValues
from rbpx.status import Status, status_keys
from rbpx.store.store import Record

_FEWEST_FREE: Final = 2  # fewest points of step 2 beyond its constants; with fewer the curve nearly interpolates
_REPLICATES: Final = 200  # bootstrap replicates over trainings, for the interval of a surface


@dataclass(frozen=True, eq=False)
class FeatureSteps:
    """Both steps of one feature; predictions of held-out models, then of requested ones."""

    values: Points
    sigmoid: Sigmoid | None
    rows: list[Record]

    @property
    def name(self) -> tuple[str, int | None]:
        """Name of the feature, and its k."""
        return self.values.law, self.values.k


@dataclass(frozen=True, eq=False)
class TaskSteps:
    """A task, its fitted and held-out trainings, and both steps of each feature."""

    values: TaskValues
    parts: HeldTrainings
    steps: Sequence[FeatureSteps]


def fit_steps(task: TaskValues, values: Points, parts: HeldTrainings, request: DownstreamKeys) -> FeatureSteps:
    """Fits both steps of a feature to the trainings that are not held out, and predicts the others.

    A row has `step1_predicted`, the feature by step 1, and `step1_actual`; `step2_predicted`, success by step 2 from
    that; `chained_predicted`, from step 1; and `actual`, with an interval over items. `error` is chained minus actual.
    """
    x_T = np.array([averaged(each, values.y_N, request.n_averaged) for each in parts.fitted])
    fitted = [each for each, x in zip(parts.fitted, x_T, strict=True) if not math.isnan(x)]
    form, of_first, step1 = _fit_step1(fitted, x_T[~np.isnan(x_T)], request)
    sigmoid, plausible_J6, of_second = _fit_step2(task, values, fitted, request)
    is_any_mixed = any(is_mixed(each, task.group.runs, request.n_averaged) for each in parts.fitted)
    doubts = [*of_first, *of_second, *([Status.mixed] if is_any_mixed else [])]
    shared: Record = {"form": form, "n_trainings": len(fitted), "n_points": sigmoid.n_points if sigmoid else 0}
    shared |= dict(zip(NAMES, sigmoid.theta_P.tolist() if sigmoid else [None] * 4, strict=True))
    shared |= {"chance": task.chance}
    tokens = [each.D for each in fitted if each.D]

    def predicted(S: float, D: float | None, training: TaskTraining | None = None) -> Record:
        feature, reasons, own, right = step1(S, D), list(doubts), math.nan, math.nan
        far = [extrapolation_factor(S, [each.S for each in fitted])] if fitted else []
        far += [extrapolation_factor(D, tokens)] if D is not None and tokens else []
        reasons += [Status.beyond] if max(far, default=1.0) > FAR else []
        if training is not None:
            own, right = (averaged(training, of_R, request.n_averaged) for of_R in (values.y_N, task.success_R))
        n, own_or_none = task.n_items, own if math.isfinite(own) else None
        actual = NO_ESTIMATE if math.isnan(right) else of_share(round(right * n), n) if n else Estimate(right)
        step2 = together = NO_ESTIMATE
        if sigmoid is not None:
            step2 = (
                NO_ESTIMATE
                if own_or_none is None
                else predict_success(sigmoid, plausible_J6, measured_feature(own), request.seed)
            )
            together = predict_success(sigmoid, plausible_J6, feature, request.seed)
        lo, hi = together.ends or (math.nan, math.nan)
        error = held = None
        if together.value is not None and actual.value is not None:
            error, held = together.value - actual.value, together.ends and lo <= actual.value <= hi
        row: Record = {"kind": "prediction", "task": task.task, **task.group.names(), "size": None}
        row |= {} if training is None else training.last.names()
        row |= {"feature": values.law, "k": values.k, "S": S, "D": D, **shared, "step1_actual": own_or_none}
        row |= by_name(step1_predicted=feature.y, step2_predicted=step2, chained_predicted=together, actual=actual)
        return row | {"error": error, "held": held, **status_keys(reasons)}

    rows = [predicted(each.S, each.D, each) for each in parts.held_out]
    rows += [predicted(S, D) for S, D in request.points_to_predict() or zip(request.S, repeat(None))]
    return FeatureSteps(values, sigmoid, rows)


_Step = Callable[[float, float | None], Feature]
"""Predicts the feature of a model of some size, and tokens where step 1 is a surface."""


def _fit_step1(
    trainings: Sequence[TaskTraining], x_T: Floats, request: DownstreamKeys
) -> tuple[str, Sequence[Status], _Step]:
    """Fits step 1, a surface or else a law in size; returns form, warnings and prediction.

    Surfaces need tokens that are not collinear with size, and more than five trainings.
    """
    S, D, seed = [each.S for each in trainings], [each.D for each in trainings if each.D], request.seed

    def nothing(S: float, D: float | None) -> Feature:
        return Feature(NO_ESTIMATE, None)

    if _is_on_surface(trainings):
        how: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
        runs = Runs.of(S, D, x_T)
        forms = request.form
        more = how | {"n_replicates": min(request.resamples, _REPLICATES), "seed": seed}
        surfaces = [fit_surface(runs, form, **more) for form in forms]
        budgets = backtest_budgets(runs, forms, **how) if len(forms) > 1 else ()
        alone = surfaces[0].surface

        def on_surface(S: float, D: float | None) -> Feature:
            if D is None or (len(forms) == 1 and alone is None):
                return nothing(S, D)
            if len(forms) == 1 and alone is not None:
                return feature_from_estimate(alone.predict(S, D, new_run=True), alone.n_runs - alone.n_free, seed)
            (answer,) = predict_averaged(surfaces, [(S, D)], budgets)
            return (
                Feature(answer.y, None)
                if answer.mixture is None
                else feature_from_mixture(answer.mixture, answer.y, seed)
            )

        return surfaces[0].form if len(forms) == 1 else COMBINED, surfaces[0].reasons, on_surface
    reasons = [] if np.all((x_T > 0) & np.isfinite(x_T)) else [Status.not_positive]
    if len(set(S)) < MIN_SIZES:
        reasons.append(Status.too_few_sizes)
    elif np.all(x_T == x_T[0]):
        reasons.append(Status.no_trend)
    fits = None
    if not reasons:
        with suppress(np.linalg.LinAlgError):  # a form may have no fit to features that rise with size
            fits = fit_all_forms(S, x_T)
    if fits is None:
        return COMBINED, reasons or [Status.not_converged], nothing

    def in_size(S: float, D: float | None) -> Feature:
        mixture = fits.at(np.log([S]))
        # A form that bends away from points that rise predicts nothing at other sizes: its scale overflows.
        mixture = mixture.only(np.isfinite(mixture.scale)[0, 0])
        ends = (exp_or_none(end) for end in mixture.quantiles(TAILS)[0, 0].tolist())
        return feature_from_mixture(mixture, Estimate(*ends), seed)

    return COMBINED, (), in_size


def _is_on_surface(trainings: Sequence[TaskTraining]) -> bool:
    S, D = np.array([each.S for each in trainings], float), np.array([each.D for each in trainings if each.D], float)
    return len(D) == len(S) > 5 and not judge_design(S, D).is_collinear


def _fit_step2(
    task: TaskValues, values: Points, trainings: Sequence[TaskTraining], request: DownstreamKeys
) -> tuple[Sigmoid | None, Floats | None, list[Status]]:
    if not task.has_success or task.chance is None:
        return None, None, []
    at_N, of_N = points(trainings, request.drop, request.smooth)
    x_N, y_N = means(at_N, values.y_N), means(at_N, task.success_R)
    known_N = np.isfinite(x_N) & np.isfinite(y_N)
    x_N, y_N, (_, group_N) = x_N[known_N], y_N[known_N], np.unique(np.array(of_N)[known_N], return_inverse=True)
    if len(x_N) and not x_N.any():  # all tokens are hits at every point
        return None, None, [Status.no_trend]
    anchor, chance = request.anchor, task.chance
    fit = fit_sigmoid(x_N, y_N, chance, anchor, request.starts, request.bounds) if len(x_N) else None
    if fit is None:
        at = [run for training in trainings for run in training.at]
        return None, None, [Status.not_positive if np.isinf(values.y_N[at]).any() else Status.too_few_sizes]
    reasons = [] if fit.converged else [Status.not_converged]
    reasons += [Status.barely_determined] if fit.n_points - fit.n_free < _FEWEST_FREE else []
    noise, n_items = MINIMUM_SD, task.n_items
    if n_items is not None:  # how far above chance a model without skill may be, even at a chance of 0
        noise = Z**2 / n_items + Z * math.sqrt(chance * (1 - chance) / n_items)
    reasons += [Status.no_trend] if y_N.max() <= chance + noise else []
    n = independent_points(y_N - curves(fit.theta_P, x_N), group_N)
    return fit, plausible_curves(x_N, y_N, n, chance, anchor, N_CURVES, request.seed), reasons
