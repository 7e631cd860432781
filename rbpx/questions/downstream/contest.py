"""Ranks features by the errors of their predictions of held-out models, paired over items.

All features use the same models and the same bootstrap replicates of the items, so that common noise cancels in their
differences. Each replicate changes both steps: step 2 is refitted; step 1 is linearised in ln x at each training,
because refitting a model average takes seconds for a hundred replicates.

Shapes: B bootstrap replicates, M held-out models, R runs, T trainings, N points.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations, product
from typing import Final

import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, by_name, estimate, extended_to, of_share
from rbpx.laws.numeric import Floats
from rbpx.laws.prediction.prediction import predict_batch
from rbpx.laws.success.sigmoid import curves, refit_sigmoid
from rbpx.questions.downstream.steps import FeatureSteps, Task
from rbpx.questions.downstream.trainings import Split, ends, means, points
from rbpx.store.store import Record

Name = tuple[str, int | None, str]

TWO_STEPS: Final = "two steps"
STRAIGHT: Final = "straight"  # success straight from a share of hits, without a fitted second step
_STEP: Final = 1e-3  # of ln x, for derivatives
_REFERENCE: Final = ("cross_entropy", None, TWO_STEPS)

Errors = Mapping[Name, Floats]
"""Mean of |chained - actual| over the held-out models, of all items, then of each replicate. Keys: the name of a
feature, its k (None without one) and the way: `two steps`, or `straight`, where success is RBP_1 to the power of the
tokens of each target, or exact match."""


def feature_errors(task: Task, request: Request) -> Errors:
    """Returns the errors of the features of a task that predict every held-out model."""
    values, held_out, found = task.values, task.parts.held_out, dict[Name, Floats]()
    if not held_out or not values.has_success:
        return found
    actual_BM = means(ends(held_out, request.n_averaged), _all(values.success_R, values.success_BR))
    for each, way in product(task.steps, (TWO_STEPS, STRAIGHT)):
        predicted_BM = _predictions(task, each, request, way)
        if predicted_BM is not None:
            n = min(len(predicted_BM), len(actual_BM))  # no replicates where either has none
            found[(*each.name, way)] = np.abs(predicted_BM[:n] - actual_BM[:n]).mean(axis=1)
    return found


def mean_errors(errors_of_tasks: Sequence[Errors]) -> Errors:
    """Returns mean errors over several tasks, for features known in all tasks with errors; empty for a single task."""
    known, found = [errors for errors in errors_of_tasks if errors], dict[Name, Floats]()
    for name in known[0] if len(known) > 1 else ():
        of = [errors[name] for errors in known if name in errors]
        if len(of) == len(known):
            found[name] = np.mean([each[: min(map(len, of))] for each in of], axis=0)
    return found


def rank_features(errors: Errors, n_models: int) -> list[Record]:
    """Returns a row for each feature, smallest error first, with its difference from cross-entropy.

    Differences are from the first feature where cross-entropy is not known.
    """
    rows, reference = list[Record](), next((name for name in errors if name == _REFERENCE), next(iter(errors), None))
    for name, error_B in errors.items():
        apart = NO_ESTIMATE
        if reference is not None and name != reference:
            n = min(len(error_B), len(errors[reference]))
            apart = _estimate(error_B[:n] - errors[reference][:n])
        row: Record = {**dict(zip(("feature", "k", "way"), name, strict=True)), "n_models": n_models}
        rows.append(row | by_name(mean_error=_estimate(error_B), difference=apart, decisions=NO_ESTIMATE))
    return sorted(rows, key=lambda row: row["mean_error"])


def decisions(variants: Sequence[Sequence[FeatureSteps]]) -> dict[Name, Record]:
    """Returns, for each feature, the share of pairs of variants whose order at the held-out models it predicts.

    Args:
        variants: for each variant of one task, its features with both steps.
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


def _estimate(value_B: Floats) -> Estimate:
    """An error with its interval over replicates, extended to contain the error."""
    found = estimate(float(value_B[0]), value_B[1:], 2, Recipe.percentile)
    # An error is an absolute value: all replicates of a small one may be larger.
    return found if found.ends is None else Estimate(found.value, *extended_to(float(value_B[0]), found.ends))


def _all(of_R: Floats, of_BR: Floats | None) -> Floats:
    return of_R[None] if of_BR is None else np.vstack([of_R, of_BR])


def _predictions(task: Task, steps: FeatureSteps, request: Request, way: str) -> Floats | None:
    """Success of the held-out models, [B, M], of all items first; None if one of them has no prediction."""
    values, parts = task.values, task.parts
    x_M = np.array([row["step1_predicted"] for row in steps.rows[: len(parts.held_out)]], np.float64)  # None is NaN
    if not np.isfinite(x_M).all():
        return None
    x_BM = _all(x_M, None if steps.values.y_BN is None or steps.on_surface else _linearised(parts, steps, x_M, request))
    if way == STRAIGHT:
        if values.lengths_I is None or steps.values.k != 1:
            return None
        return _power(x_BM, values.lengths_I if steps.values.law == "rbp" else np.ones(1))
    if steps.sigmoid is None:
        return None
    theta_BP = steps.sigmoid.theta_P[None]
    if len(x_BM) > 1 and values.success_BR is not None and steps.values.y_BN is not None:
        of_N, _ = points(parts.fitted, request.drop, request.smooth)
        x_BN, y_BN = means(of_N, steps.values.y_BN), means(of_N, values.success_BR)
        usable_B = np.isfinite(x_BN).all(axis=1)
        again_BP = np.full((len(x_BN), 4), np.nan)
        found = refit_sigmoid(x_BN[usable_B], y_BN[usable_B], theta_BP[0], request.anchor, request.bounds)
        again_BP[usable_B] = found.theta_PB.T
        theta_BP = np.vstack([theta_BP, again_BP])
    return curves(theta_BP[:, None], x_BM[: len(theta_BP)])


def _power(x: Floats, lengths_I: Floats) -> Floats:
    """Mean over items of RBP_1^n, n the tokens of an item, for x = -ln RBP_1; lengths are not resampled."""
    n_L, items_L = np.unique(lengths_I, return_counts=True)
    return np.asarray(np.exp(-x[..., None] * n_L) @ (items_L / items_L.sum()))


def _linearised(parts: Split, steps: FeatureSteps, x_M: Floats, request: Request) -> Floats | None:
    """Prediction of step 1 in each replicate, [B, M]; None where a law has no derivative."""
    assert steps.values.y_BN is not None
    of_T = ends(parts.fitted, request.n_averaged)
    with np.errstate(divide="ignore"):  # all tokens of a replicate may be hits
        ln_x_T, ln_x_BT = np.log(means(of_T, steps.values.y_N)), np.log(means(of_T, steps.values.y_BN))
    S = [each.S for each in parts.fitted]
    up_down = np.vstack([ln_x_T + _STEP * np.eye(len(S)), ln_x_T - _STEP * np.eye(len(S))])
    moved = []
    for model, x in zip(parts.held_out, x_M, strict=True):
        # A feature that rises with size may have no derivative, and so no interval.
        with suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):
            ln_2T = np.log(predict_batch(S, np.exp(up_down), model.S)[:, 0]).reshape(2, -1)
            slope_T = (ln_2T[0] - ln_2T[1]) / (2 * _STEP)
            moved.append(x * np.exp((ln_x_BT - ln_x_T) @ slope_T))
    return np.column_stack(moved) if len(moved) == len(x_M) else None
