"""Judges which feature predicts success best: by the errors on held-out models, paired over the items.

Every feature is judged on the same models and the same resamples of the items, so that what they have in common cancels
in their differences. Each resample moves both steps: step 2 is fitted again; step 1 is moved along its derivatives by
ln x at each training, because refitting its mixture over forms takes seconds for a hundred resamples and the mixture is
smooth. Shapes: B resamples, M models held out, R runs, T trainings, N points.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final

import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, by_name, estimate, of_share, reaching
from rbpx.laws.numeric import Floats
from rbpx.laws.prediction.prediction import predict_batch
from rbpx.laws.success.sigmoid import curves, refit_sigmoid
from rbpx.questions.downstream.steps import FeatureSteps, Task
from rbpx.questions.downstream.trainings import Split, averages, means, points
from rbpx.store.store import Record

Name = tuple[str, int | None, str]

TWO_STEPS: Final = "two steps"
STRAIGHT: Final = "straight"  # from a share of hits to success, without a second step that is fitted
_STEP: Final = 1e-3  # of ln x, for derivatives
_REFERENCE: Final = ("cross_entropy", None, TWO_STEPS)


@dataclass(frozen=True, eq=False)
class Contestant:
    """One feature on one task, or on all of them.

    Attributes:
        name: its name, its k (None where it has none), and the way: `two steps`, or `straight`: success is RBP_1 to the
            power of the tokens of each target, or exact match.
        error: mean of |chained - actual| over the held-out models that it predicts.
        errors_B: the same under each resample of the items; None without items.
        n_models: how many models these are.
        difference: that error minus the error of cross-entropy (of the first feature, where that is not known).
    """

    name: Name
    error: float
    errors_B: Floats | None
    n_models: int
    difference: Estimate = NO_ESTIMATE

    def record(self) -> Record:
        """It as a row, with 95 % intervals over items; no pairs of variants are decided."""
        row: Record = {**dict(zip(("feature", "k", "way"), self.name, strict=True)), "n_models": self.n_models}
        error = _estimate(self.error, self.errors_B)
        return row | by_name(mean_error=error, difference=self.difference, decisions=NO_ESTIMATE)


def contest(task: Task, request: Request) -> list[Contestant]:
    """The features of a task that predict every held-out model, the best first."""
    values, held_out = task.values, task.parts.held_out
    if not held_out or not values.has_success:
        return []
    of_MR, found = averages(held_out, len(values.success_R), request.n_averaged), list[Contestant]()
    actual_M = means(of_MR, values.success_R)
    actual_BM = None if values.success_BR is None else means(of_MR, values.success_BR)
    for each, way in product(task.steps, (TWO_STEPS, STRAIGHT)):
        predicted = _predictions(task, each, request, way)
        if predicted is not None:
            value_M, value_BM = predicted
            errors_B = None if value_BM is None or actual_BM is None else np.abs(value_BM - actual_BM).mean(axis=1)
            error = float(np.abs(value_M - actual_M).mean())
            found.append(Contestant((*each.name, way), error, errors_B, len(value_M)))
    return _judged(found)


def overall(contests: Sequence[Sequence[Contestant]]) -> list[Contestant]:
    """The means over several tasks, of the features that all tasks with any have; empty for a single task."""
    named = [{each.name: each for each in contestants} for contestants in contests if contestants]
    found = []
    for name in named[0] if len(named) > 1 else ():
        of = [each[name] for each in named if name in each]
        if len(of) == len(named):
            all_B = [each.errors_B for each in of if each.errors_B is not None]
            errors_B = np.mean(all_B, axis=0) if len(all_B) == len(of) and len({*map(len, all_B)}) == 1 else None
            error = float(np.mean([each.error for each in of]))
            found.append(Contestant(name, error, errors_B, sum(each.n_models for each in of)))
    return _judged(found)


def decisions(variants: Sequence[Sequence[FeatureSteps]]) -> dict[Name, Record]:
    """For each feature, the share of pairs of variants of one task whose order at the models held out it predicts.

    Args:
        variants: the features of each variant, with both steps.
    """
    found: dict[Name, list[bool]] = {}
    for one, other in combinations(variants, 2):
        theirs = {each.name: each.rows for each in other}
        for each in one:
            for pair in zip(each.rows, theirs.get(each.name, ()), strict=False):
                (a, b), (true_a, true_b) = ([row[key] for row in pair] for key in ("chained_predicted", "actual"))
                if None not in (a, b, true_a, true_b) and true_a != true_b:
                    found.setdefault((*each.name, TWO_STEPS), []).append((a > b) == (true_a > true_b))
    return {name: by_name(decisions=of_share(sum(right), len(right))) for name, right in found.items()}


def _judged(found: Sequence[Contestant]) -> list[Contestant]:
    """Contestants with their differences to the reference, the best first."""
    compared = []
    for each in found:
        reference = next((of for of in found if of.name == _REFERENCE), found[0])
        if each is not reference:
            both = each.errors_B, reference.errors_B
            differences_B = None if both[0] is None or both[1] is None else both[0] - both[1]
            each = replace(each, difference=_estimate(each.error - reference.error, differences_B))
        compared.append(each)
    return sorted(compared, key=lambda each: each.error)


def _estimate(value: float, values_B: Floats | None) -> Estimate:
    """An error with its interval over resamples, which is extended to the error where it would leave it out."""
    if values_B is None:
        return Estimate(value, None, None)
    found = estimate(value, values_B, 2, Recipe.percentile)
    # An error is an absolute value: all resamples of a small one may be larger.
    return found if found.ends is None else Estimate(value, *reaching(value, found.ends))


def _predictions(task: Task, steps: FeatureSteps, request: Request, way: str) -> tuple[Floats, Floats | None] | None:
    """Predicted success of the held-out models, [M] and [B, M]; None where one of them has no prediction."""
    values, parts = task.values, task.parts
    x_M = np.array([row["step1_predicted"] for row in steps.rows[: len(parts.held_out)]], np.float64)  # None is NaN
    if not np.isfinite(x_M).all():
        return None
    x_BM = None if steps.values.x_BR is None or steps.on_surface else _moved(parts, steps, x_M, request)
    if way == STRAIGHT:
        if values.lengths_I is None or steps.values.k != 1:
            return None
        lengths_I = values.lengths_I if steps.values.name == "rbp" else np.ones(1)
        return _power(x_M, lengths_I), None if x_BM is None else _power(x_BM, lengths_I)
    if steps.sigmoid is None:
        return None
    value_M = np.array([steps.sigmoid.sigmoid(x) for x in x_M])
    if x_BM is None or values.success_BR is None or steps.values.x_BR is None:
        return value_M, None
    x_NR, _ = points(parts.fitted, len(values.success_R), request.drop, request.smooth)
    x_BN, y_BN = means(x_NR, steps.values.x_BR), means(x_NR, values.success_BR)
    usable_B = np.isfinite(x_BN).all(axis=1)
    theta_BP = np.full((len(x_BN), 4), np.nan)
    start_P, anchor, bounds = steps.sigmoid.theta_P, request.anchor, request.bounds
    theta_BP[usable_B] = refit_sigmoid(x_BN[usable_B], y_BN[usable_B], start_P, anchor, bounds)
    return value_M, np.column_stack([curves(theta_BP, x_B) for x_B in x_BM.T])


def _power(x: Floats, lengths_I: Floats) -> Floats:
    """The mean over items of RBP_1 to the power of an item's tokens, for x = -ln RBP_1; lengths are not resampled."""
    n_L, items_L = np.unique(lengths_I, return_counts=True)
    return np.asarray(np.exp(-x[..., None] * n_L) @ (items_L / items_L.sum()))


def _moved(parts: Split, steps: FeatureSteps, x_M: Floats, request: Request) -> Floats | None:
    """What step 1 predicts under each resample, [B, M]; None where a law has no derivative."""
    assert steps.values.x_BR is not None
    last_TR = averages(parts.fitted, len(steps.values.x_R), request.n_averaged)
    ln_x_T = np.log(means(last_TR, steps.values.x_R))
    with np.errstate(divide="ignore"):  # a resample may have nothing but hits
        ln_x_BT = np.log(means(last_TR, steps.values.x_BR))
    S = [each.S for each in parts.fitted]
    up_down = np.vstack([ln_x_T + _STEP * np.eye(len(S)), ln_x_T - _STEP * np.eye(len(S))])
    moved = []
    for model, x in zip(parts.held_out, x_M, strict=True):
        # A feature that rises with size may have no derivative, and then it has no interval.
        with suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):
            ln_2T = np.log(predict_batch(S, np.exp(up_down), model.S)[:, 0]).reshape(2, -1)
            slope_T = (ln_2T[0] - ln_2T[1]) / (2 * _STEP)
            moved.append(x * np.exp((ln_x_BT - ln_x_T) @ slope_T))
    return np.column_stack(moved) if len(moved) == len(x_M) else None
