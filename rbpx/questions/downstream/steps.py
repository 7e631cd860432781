"""Fits both steps of one feature of a task, and predicts the models that were held out.

Source: arXiv 2412.04403 (OLMo ladder). Shapes: R runs, T trainings, N points of step 2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.config.request import Request
from rbpx.laws.forms.candidates import FormFits
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Z, of_share
from rbpx.laws.numeric import exp_or_none
from rbpx.laws.predict.prediction import COMBINED, MIN_SIZES, TAILS, fit_over_forms, outside
from rbpx.laws.predict.verdict import FAR
from rbpx.laws.success.chain import (
    MINIMUM_SD,
    N_CURVES,
    Feature,
    Plausible,
    chained,
    independent_points,
    of_estimate,
    of_mixture,
    plausible_curves,
    second_step,
)
from rbpx.laws.success.sigmoid import SigmoidFit, fit_sigmoid
from rbpx.laws.surface.averaged import BudgetTest, backtest_budgets, forms_to_mix, predict_over_forms
from rbpx.laws.surface.design import judge
from rbpx.laws.surface.fit import SurfaceFit, fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.questions.downstream.trainings import Split, Training, averaged, is_mixed, means, points
from rbpx.runs.group import Run
from rbpx.runs.points.tasks import FeatureValues, TaskValues
from rbpx.status import Status, first_of, in_order

_FEWEST_FREE: Final = 2  # points of step 2 beyond its constants; with fewer the curve nearly goes through the points
_RESAMPLES: Final = 200  # of the trainings, for the interval of a surface


@dataclass(frozen=True)
class Predicted:
    """What both steps predict of one model.

    Attributes:
        run: the last checkpoint of its training; None for a model that was not measured.
        S: its size.
        D: its training tokens; None where they are not known.
        step1: its feature as step 1 predicts it.
        feature: its measured feature; None where it is not known.
        step2: its success as step 2 predicts it from the measured feature.
        chained: its success as step 2 predicts it from `step1`.
        actual: its measured success, with an interval over items; None where it is not known.
        reasons: every status that holds.
    """

    run: Run | None
    S: float
    D: float | None
    step1: Estimate
    feature: float | None
    step2: Estimate
    chained: Estimate
    actual: Estimate
    reasons: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)

    @property
    def error(self) -> float | None:
        """The chained prediction minus the actual success, in shares."""
        if self.chained.value is None or self.actual.value is None:
            return None
        return self.chained.value - self.actual.value

    @property
    def holds(self) -> bool | None:
        """Whether the interval contains the actual success; None without an interval."""
        if self.chained.ends is None or self.actual.value is None:
            return None
        return self.chained.ends[0] <= self.actual.value <= self.chained.ends[1]


@dataclass(frozen=True, eq=False)
class FeatureSteps:
    """Both steps of one feature.

    Attributes:
        values: the feature.
        form: of step 1: that of a surface, or `combined` for a law in size over all forms.
        surface: the first form of step 1 where it is a surface, else None.
        sigmoid: step 2; None without a fit.
        n_trainings: how many trainings were fitted.
        n_points: how many points step 2 has, the anchor included.
        predictions: of the models that were held out, then of those asked for.
    """

    values: FeatureValues
    form: str
    surface: SurfaceFit | None
    sigmoid: SigmoidFit | None
    n_trainings: int
    n_points: int
    predictions: tuple[Predicted, ...]


def fit_steps(task: TaskValues, values: FeatureValues, parts: Split, request: Request) -> FeatureSteps:
    """Fit both steps of a feature to the trainings that are not held out, and predict the others."""
    x_T = np.array([averaged(each, values.x_R, request.n_averaged) for each in parts.fitted])
    fitted = [each for each, x in zip(parts.fitted, x_T, strict=True) if not math.isnan(x)]
    first = _First.fit(fitted, x_T[~np.isnan(x_T)], request)
    sigmoid, plausible, of_second = _second(task, values, fitted, request)
    is_any_mixed = any(is_mixed(each, task.group.runs, request.n_averaged) for each in parts.fitted)
    doubts = [*first.reasons, *of_second, *([Status.mixed_checkpoints] if is_any_mixed else [])]

    def predicted(S: float, D: float | None, training: Training | None = None) -> Predicted:
        feature, reasons, own, success = first.at(S, D, request.seed), list(doubts), None, math.nan
        beyond = max(outside(S, first.S), 1.0 if D is None or not first.D else outside(D, first.D)) if first.S else 1.0
        reasons += [Status.beyond] if beyond > FAR else []
        if training is not None:
            x, success = (averaged(training, of_R, request.n_averaged) for of_R in (values.x_R, task.success_R))
            own = x if math.isfinite(x) else None
        step2 = together = NO_ESTIMATE
        if sigmoid is not None:
            curve = sigmoid.sigmoid
            step2 = NO_ESTIMATE if own is None else second_step(curve, plausible, own, request.seed)
            together = chained(curve, plausible, feature, request.seed)
            if together.ends is not None and together.ends[1] - together.ends[0] > (1 - (task.chance or 0.0)) / 2:
                reasons.append(Status.wide_interval)
        run, actual = None if training is None else training.last, NO_ESTIMATE
        if not math.isnan(success):
            n = task.n_items
            actual = Estimate(success, None, None) if n is None else of_share(round(success * n), n)
        return Predicted(run, S, D, feature.y, own, step2, together, actual, in_order(reasons))

    asked = request.points_to_predict()
    predictions = [predicted(each.S, each.D, each) for each in parts.held_out]
    predictions += [predicted(S, D) for S, D in asked] if asked else [predicted(S, None) for S in request.S]
    n_points = 0 if sigmoid is None else sigmoid.n_points
    return FeatureSteps(
        values, first.form, next(iter(first.surfaces), None), sigmoid, len(fitted), n_points, tuple(predictions)
    )


@dataclass(frozen=True, eq=False)
class _First:
    """Step 1: a surface or a law in size, and the sizes and tokens of its trainings."""

    form: str
    surfaces: tuple[SurfaceFit, ...]
    S: tuple[float, ...]
    D: tuple[float, ...]
    fits: FormFits | None
    reasons: tuple[Status, ...]
    budgets: tuple[BudgetTest, ...] = ()

    @classmethod
    def fit(cls, trainings: Sequence[Training], x_T: npt.NDArray[np.float64], request: Request) -> "_First":
        """Fit surfaces where tokens are known, not collinear with size, and runs are enough; else a law in size."""
        S, D = [each.S for each in trainings], [each.D for each in trainings if each.D]
        if len(D) == len(S) > 5 and not judge(np.array(S, float), np.array(D, float)).is_collinear:
            n_resamples, runs = min(request.resamples, _RESAMPLES), Runs.of(S, D, x_T)
            of = (request.objective, request.delta, n_resamples, request.seed)
            forms = request.form if "form" in request.typed else forms_to_mix(runs)
            surfaces = tuple(fit_surface(runs, form, *of) for form in forms)
            if len(surfaces) == 1:
                return cls(forms[0], surfaces, tuple(S), tuple(D), None, surfaces[0].reasons)
            (budgets,) = backtest_budgets([(runs, forms)], objective=request.objective, delta=request.delta)
            return cls(COMBINED, surfaces, tuple(S), tuple(D), None, surfaces[0].reasons, budgets)
        reasons = [] if np.all((x_T > 0) & np.isfinite(x_T)) else [Status.not_positive]
        if len(set(S)) < MIN_SIZES:
            reasons.append(Status.too_few_sizes)
        elif np.all(x_T == x_T[0]):
            reasons.append(Status.no_variation)
        fits = None
        if not reasons:
            try:
                fits = fit_over_forms(S, x_T)
            except np.linalg.LinAlgError:  # a form that bends away from features that rise with size
                reasons.append(Status.not_converged)
        return cls(COMBINED, (), tuple(S), tuple(D), fits, tuple(reasons))

    def at(self, S: float, D: float | None, seed: int) -> Feature:
        """The feature that step 1 predicts of a new model."""
        if self.surfaces and D is not None:
            return self._on_surface(S, D, seed)
        if self.fits is None:
            return Feature(NO_ESTIMATE, None)
        mixture = self.fits.at(np.log([S]))
        # A form that bends away from points that rise says nothing of other sizes: its scale is beyond any float.
        mixture = mixture.only(np.isfinite(mixture.scale)[0, 0])
        ends = (exp_or_none(end) for end in mixture.quantiles(TAILS)[0, 0].tolist())
        return of_mixture(mixture, Estimate(*ends), seed)

    def _on_surface(self, S: float, D: float, seed: int) -> Feature:
        alone = self.surfaces[0].surface
        if self.form != COMBINED:
            if alone is None:
                return Feature(NO_ESTIMATE, None)
            return of_estimate(alone.predict(S, D, new_run=True), alone.n_runs - alone.n_free, seed)
        (answer,) = predict_over_forms(self.surfaces, [(S, D)], self.budgets)
        return Feature(answer.y, None) if answer.mixture is None else of_mixture(answer.mixture, answer.y, seed)


def _second(
    task: TaskValues, values: FeatureValues, trainings: Sequence[Training], request: Request
) -> tuple[SigmoidFit | None, Plausible | None, list[Status]]:
    """The sigmoid, the curves that its points allow, and doubts; no sigmoid of few points, of 0 or no success."""
    if not task.has_success or task.chance is None:
        return None, None, []
    of_NR, of_N = points(trainings, len(values.x_R), request.drop, request.smooth)
    x_N, y_N = means(of_NR, values.x_R), means(of_NR, task.success_R)
    known_N = np.isfinite(x_N) & np.isfinite(y_N)
    x_N, y_N, group_N = x_N[known_N], y_N[known_N], np.unique(of_N[known_N], return_inverse=True)[1].astype(np.int64)
    if len(x_N) and not x_N.any():  # as where every token is a hit: a sigmoid of nothing but 0
        return None, None, [Status.no_variation]
    anchor, chance = request.anchor, task.chance
    starts, bounds = request.starts, request.bounds
    fit = fit_sigmoid(x_N, y_N, chance, anchor, starts, bounds) if len(x_N) else None
    if fit is None:
        at = [run for training in trainings for run in training.at]
        return None, None, [Status.not_positive if np.isinf(values.x_R[at]).any() else Status.too_few_sizes]
    reasons = [] if fit.converged else [Status.not_converged]
    reasons += [Status.barely_determined] if fit.n_points - fit.n_free < _FEWEST_FREE else []
    noise, n_items = MINIMUM_SD, task.n_items
    if n_items is not None:  # how far above chance a model that knows nothing may be: the reach of Wilson's interval
        noise = Z**2 / n_items + Z * math.sqrt(chance * (1 - chance) / n_items)
    reasons += [Status.at_chance] if y_N.max() <= chance + noise else []
    n = independent_points(y_N - np.array([fit.sigmoid(x) for x in x_N]), group_N)
    return fit, plausible_curves(x_N, y_N, n, chance, anchor, N_CURVES, request.seed), reasons
