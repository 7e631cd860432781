"""How good predicted chances are: chances and truth of each token in, AUC, log loss and calibration with intervals out.

Tokens of a document are not independent, so every interval is from sums over documents: each measure is replaced by the
share that each document has in its change (its influence), which a resample of the documents moves.
Shapes: T tokens, D documents.

Source: Obuchowski, Biometrics 53 (1997), 567, for the AUC of clustered data.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.analyses.tokenwise.law import hit_chance, ln_hit_chance
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, from_influence
from rbpx.laws.numeric.arrays import Floats

Judgement = dict[str, Estimate]
"""Predictions compared with what happened; intervals over documents, none where there is one document.

auc: chance that a hit was given a higher chance than a miss; unknown where all tokens are hits or all misses.
log_loss_nats: mean of -ln of the chance given to what happened.
excess: mean predicted chance minus the share of hits.
"""

UNJUDGED: Final = dict.fromkeys(("auc", "log_loss_nats", "excess"), NO_ESTIMATE)


def judge(z_T: ArrayLike, hit_T: ArrayLike, document_T: ArrayLike) -> Judgement:
    """Judge predicted chances of a hit.

    Args:
        z_T: logits of the predicted chances, chance = 1 / (1 + exp(-z)).
        hit_T: whether each token is one.
        document_T: the document of each, whole numbers from 0.
    """
    z, hit = np.asarray(z_T, dtype=np.float64), np.asarray(hit_T, dtype=bool)
    given = np.asarray(document_T)
    document = (np.cumsum(np.bincount(given) > 0) - 1)[given]  # those with tokens
    loss_T = -ln_hit_chance(np.where(hit, z, -z))
    auc = _auc(z, hit, document) if 0 < hit.sum() < len(hit) else NO_ESTIMATE
    excess = _mean(hit_chance(z) - hit, document)
    return {"auc": auc, "log_loss_nats": _mean(loss_T, document), "excess": excess}


def _auc(z_T: Floats, hit_T: NDArray[np.bool_], document_T: NDArray[np.intp]) -> Estimate:
    n_hits, n_misses = int(hit_T.sum()), int((~hit_T).sum())
    _, group_T = np.unique(z_T, return_inverse=True)  # of equal chances, the smallest first; a tie counts half
    hits_G, misses_G = (np.bincount(group_T, of_T, minlength=int(group_T.max()) + 1) for of_T in (hit_T, ~hit_T))
    below_G, above_G = np.cumsum(misses_G) - misses_G / 2, n_hits - (np.cumsum(hits_G) - hits_G / 2)
    wins_T = np.where(hit_T, below_G[group_T] / n_misses, above_G[group_T] / n_hits)
    value = float(wins_T[hit_T].mean())
    return from_influence(value, np.bincount(document_T, (wins_T - value) / np.where(hit_T, n_hits, n_misses)))


def _mean(values_T: Floats, document_T: NDArray[np.intp]) -> Estimate:
    value = float(values_T.mean())
    return from_influence(value, np.bincount(document_T, (values_T - value) / len(values_T)))
