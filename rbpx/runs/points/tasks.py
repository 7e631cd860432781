"""Computes features and success of the runs of one task, with bootstrap replicates of the items.

Every feature falls as models get better and is 0 for a perfect one: shares enter as -ln share. Shapes: R runs, I items,
B replicates.
"""

import math
from dataclasses import dataclass

import duckdb
import numpy as np
from scipy.sparse import csr_array
from scipy.special import entr

from rbpx.config.keys.laws import USUAL_K
from rbpx.config.keys.tasks import Tasks, chance_of
from rbpx.errors import RbpxError
from rbpx.laws.intervals.estimate import document_weights
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.runs.group import Group
from rbpx.runs.points.items import Answers, answers_of
from rbpx.runs.points.sizes import Points
from rbpx.spelling import typed


@dataclass(frozen=True, eq=False)
class TaskValues:
    """The features of a task and the success of its runs.

    Attributes:
        chance: success of guessing; None where no success is known.
        success_R: share of the items that each run gets right; NaN where unknown.
        features: those known for any run; NaN where unknown, infinite for a share of 0.
    """

    group: Group
    chance: float | None
    success_R: Floats
    n_items: int | None
    features: tuple[Points, ...]

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.group.first.dataset

    @property
    def has_success(self) -> bool:
        """Whether the success of any run is known."""
        return bool(np.isfinite(self.success_R).any())


def task_values(connection: duckdb.DuckDBPyConnection, group: Group, request: Tasks) -> TaskValues | None:
    """The features that are known; None for a measured text, which has no items; raises RbpxError without chance."""
    if group.is_measured:
        return _measured(connection, group, request)
    values = _imported(group, request)
    if values.has_success and values.chance is None:
        raise RbpxError(
            f"task {values.task} has no known chance, the success of guessing; give chance=0.25 (one over the number "
            f"of choices, 0 without any), or {typed(chance={values.task: 0.25})} for this one"
        )
    return values


# ------------------------------------------------------------------------------------------------ imported results


def _imported(group: Group, request: Tasks) -> TaskValues:
    runs, wanted = group.runs, request.features.names
    features = []
    for name, k in [("cross_entropy", None), ("bits_per_byte", None), *(("rbp", k) for k in group.stated_k(request))]:
        x_R = np.array([run.stated(name, k) for run in runs], np.float64)  # None is NaN
        if name in wanted and np.isfinite(x_R).any():
            features.append(Points(name, k, runs, neg_ln(x_R) if name == "rbp" else x_R, None))
    success_R = np.array([run.imported.get("accuracy", np.nan) for run in runs], np.float64)
    chance = chance_of(group.first.dataset, request.chance)
    return TaskValues(group, chance, success_R, None, tuple(features))


# --------------------------------------------------------------------------------------------------- measured items


def _measured(connection: duckdb.DuckDBPyConnection, group: Group, request: Tasks) -> TaskValues | None:
    answers = answers_of(connection, group)
    if not answers:
        return None
    first, n_items = answers[0], len(answers[0].nats_I)
    drawn_BI = document_weights(n_items, min(request.resamples, 200), request.seed).astype(np.float64)
    weights_BI = np.vstack([np.ones(n_items), drawn_BI])  # all items, then the replicates
    k_grid = request.k.grid(min(run.vocab_size or 2 for run in group.runs), USUAL_K)
    features = []
    for name in request.features.names:
        for k in k_grid if name in ("rbp", "exact_match") else [None]:
            x_BR = np.column_stack([_feature(name, each, weights_BI, k or 1) for each in answers])
            features.append(Points(name, k, group.runs, x_BR[0], x_BR[1:], None, n_items))
    success_R = np.array([each.right_I.sum() / n_items for each in answers])
    has_choices = bool(np.isfinite(first.chance_I).all())
    given = chance_of(group.first.dataset, request.chance) if request.chance is not None else None
    chance = (float(first.chance_I.mean()) if has_choices else 0.0) if given is None else given
    return TaskValues(group, chance, success_R, n_items, tuple(features))


def _feature(name: str, answers: Answers, weights_BI: Floats, k: int) -> Floats:
    nats_I, n_I = answers.nats_I, np.array([len(ranks) for ranks in answers.ranks], np.float64)
    if name == "error_entropy":
        return _error_entropy(answers, weights_BI)
    if name in ("cross_entropy", "bits_per_byte"):
        above_I, below_I = (nats_I, n_I) if name == "cross_entropy" else (nats_I / math.log(2), answers.bytes_I)
        return np.asarray((weights_BI @ above_I) / (weights_BI @ below_I))
    hits_I = np.array([np.count_nonzero(ranks <= k) for ranks in answers.ranks], np.float64)
    one_I = np.ones(len(n_I))
    above_I, below_I = {
        "rbp": (hits_I, n_I),
        "exact_match": ((hits_I == n_I).astype(np.float64), one_I),
        "soft_accuracy": (answers.probability_I, one_I),
    }[name]
    return neg_ln((weights_BI @ above_I) / (weights_BI @ below_I))


def _error_entropy(answers: Answers, weights_BI: Floats) -> Floats:
    item_T = np.repeat(np.arange(len(answers.ranks)), [len(ranks) for ranks in answers.ranks])
    _, column_T = np.unique(np.concatenate(answers.ranks), return_inverse=True)
    counts_IE = csr_array((np.ones(len(item_T)), (item_T, column_T)))
    counts_BE = np.asarray((counts_IE.T @ weights_BI.T).T)
    return np.asarray(entr(counts_BE / counts_BE.sum(axis=1, keepdims=True)).sum(axis=1))
