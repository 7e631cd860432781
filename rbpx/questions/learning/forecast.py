"""Predicts which misses become hits over the next decade of x, with models learned at earlier points.

A logistic model of the chance that a miss is a hit a decade later is learned one decade before, and scored at the last
point, which it has not seen. Features are normal scores among the misses of a point, since losses shift between
decades. A chance p over the gap g becomes 1 - (1 - p)^(g'/g) over the gap g', a constant hazard in ln x, which also
turns chances into times.

Shapes: M tokens, T points, F features.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from rbpx.laws.counts.chances import (
    NO_SCORES,
    blocks_of,
    document_indices,
    hit_chance,
    learn,
    ln_hit_chance,
    mean_over_documents,
    score_chances,
)
from rbpx.laws.intervals.estimate import NO_ESTIMATE, TAILS, Estimate, by_name, flat
from rbpx.laws.learning.curves import FEWEST, fit_sigmoids
from rbpx.laws.numeric import Floats
from rbpx.runs.tokens import Ints, Tokens
from rbpx.status import Status
from rbpx.store.store import Record

DECADE: Final = float(np.log(10))
BASELINE: Final = "loss"
_SIGMOID: Final = "sigmoid"
LEARNERS: Final[Mapping[str, tuple[str, ...]]] = {
    "base rate": (),
    "frequency": ("frequency",),
    BASELINE: ("nats",),
    "slope": ("slope",),
    "loss, slope, frequency": ("nats", "slope", "frequency"),
    "rank": ("rank",),
    "rank and all three": ("rank", "nats", "slope", "frequency"),
    _SIGMOID: (_SIGMOID,),
}
"""The features of each model; sigmoid: the loss that the token's sigmoid so far predicts."""

_KNOWN: Final[Mapping[str, Callable[[Tokens, int], NDArray[np.generic]]]] = {
    "frequency": lambda of, at: np.bincount(of.token_id_M)[of.token_id_M],
    "nats": lambda of, at: of.nats_MT[:, at],
    "slope": lambda of, at: np.diff(of.nats_MT[:, at - 1 : at + 1].astype(np.float64))[:, 0],
    "rank": lambda of, at: of.rank_MT[:, at],
    _SIGMOID: lambda of, at: fit_sigmoids(of.x_T[: at + 1], of.nats_MT[:, : at + 1]).at(of.x_T[at] + [DECADE])[:, 0],
}
"""The features of tokens at a point; only their order among the misses counts."""

_CLIP: Final = 30.0  # of a logit


def forecast(tokens: Tokens, k: int, top: int) -> list[Record]:
    """Predicts the last decade and the next; empty unless the points span two decades, each with a slope.

    Keys of the summary:
    taught_lo, taught_hi: x at the start and the end of the decade from which the models learn.
    judged_lo, judged_hi: x at the start and the end of the decade on which they are scored.
    n_misses: misses at judged_lo; became: the share of them that are hits at the last point.
    best: the model with the least log loss, which predicts the next decade; None if none was scored.
    expected: share of all tokens that are misses at the last point and expected hits a decade later.

    Further rows: one for each model; one for each point with the expected and the observed share of hits; one for each
    of the likeliest misses (`_next`).

    Args:
        tokens: at all points.
        k: largest rank of a hit.
        top: tokens to name.
    """
    x_T, last = tokens.x_T, len(tokens.x_T) - 1
    now = _decade_before(x_T, last, 2)
    before = None if now is None else _decade_before(x_T, now, 1)
    if now is None or before is None:
        return []
    hit_MT = tokens.rank_MT <= k
    miss_M = ~hit_MT[:, now]
    is_hit_M, document_M = hit_MT[miss_M, last], document_indices(tokens.doc_M[miss_M])
    features = _Features(tokens, hit_MT)
    asked = {name: _logits(features, known, (before, now, now)) for name, known in LEARNERS.items()}
    longer = (x_T[last] - x_T[now]) / (x_T[now] - x_T[before])
    logits = {name: _over_gap(z_M, longer) for name, (status, z_M) in asked.items() if status is Status.ok}
    learners = {
        name: {"kind": "learner", "name": name, **_scored(name, logits, is_hit_M, document_M), "status": status}
        for name, (status, _) in asked.items()
    }
    best = min(logits, key=lambda name: learners[name]["log_loss_nats"], default=None)
    reached, expected, likeliest = [], None, list[Record]()
    if best is not None:
        expected, likeliest = _next(features, best, now, top)
        for at in range(now + 1, last + 1):
            share = (x_T[at] - x_T[now]) / (x_T[last] - x_T[now])
            row = {"kind": "reached", "x": float(np.exp(x_T[at]))}
            row["expected"] = float(hit_chance(_over_gap(logits[best], share)).mean())
            observed = mean_over_documents(hit_MT[miss_M, at].astype(np.float64), document_M)
            reached.append(row | by_name(observed=observed))
    x = np.exp(x_T).tolist()
    found = {"kind": "forecast", "taught_lo": x[before], "taught_hi": x[now], "judged_lo": x[now], "judged_hi": x[last]}
    found |= {"n_misses": len(is_hit_M), "became": float(is_hit_M.mean()) if len(is_hit_M) else None}
    found |= {"best": best, "expected": expected}
    return [{**row, "k": k} for row in (found, *learners.values(), *reached, *likeliest)]


def _decade_before(x_T: Floats, at: int, least: int) -> int | None:
    """Returns the point nearest to a decade before another; None where fewer than `least` points lie before it."""
    return least + int(np.abs(x_T[at] - x_T[least:at] - DECADE).argmin()) if at > least else None


class _Features:
    def __init__(self, tokens: Tokens, hit_MT: NDArray[np.bool_]) -> None:
        self.tokens, self.hit_MT, self._scores = tokens, hit_MT, dict[tuple[str, int], Floats]()

    def of(self, known: Sequence[str], at: int) -> Floats:
        """Returns a column of ones and the normal scores of features among the misses at a point, [M, F]."""
        is_miss_M = ~self.hit_MT[:, at]
        for name in known:
            if (name, at) not in self._scores:
                value_M = _KNOWN[name](self.tokens, at)[is_miss_M]
                self._scores[name, at] = ndtri((rankdata(value_M) - 0.5) / len(value_M))
        return np.column_stack([np.ones(is_miss_M.sum()), *(self._scores[name, at] for name in known)])


def _logits(features: _Features, known: Sequence[str], points: tuple[int, int, int]) -> tuple[Status, Floats]:
    """Returns logits of the misses at the last of three points, learned between the first two."""
    (taught, then, now), hit_MT = points, features.hit_MT
    is_taught_M, is_asked_M, none = ~hit_MT[:, taught], ~hit_MT[:, now], np.empty(0)
    if _SIGMOID in known and taught + 1 < FEWEST - 2:
        return Status.not_identified, none
    if not is_taught_M.any() or not is_asked_M.any():
        return Status.one_outcome, none
    taught_MF, asked_MF = (features.of(known, at) for at in (taught, now))
    varies_F = np.concatenate([[True], np.ptp(taught_MF[:, 1:], axis=0) > 0])
    found = learn(blocks_of(taught_MF[:, None, varies_F], hit_MT[is_taught_M, then]))
    if found.status is not Status.ok:
        return found.status, none
    return Status.ok, np.clip(asked_MF[:, varies_F] @ found.theta_F, -_CLIP, _CLIP)


def _over_gap(z_M: Floats, ratio: float) -> Floats:
    """Rescales logits to a gap `ratio` times as long."""
    ln_still_M = ratio * ln_hit_chance(-z_M)
    return np.asarray(np.log(-np.expm1(ln_still_M)) - ln_still_M)


def _scored(name: str, logits: Mapping[str, Floats], hit_M: NDArray[np.bool_], document_M: Ints) -> Record:
    """Returns the scores of one model at the last point.

    auc, log_loss_nats, excess: as `rbpx.laws.counts.chances.score_chances` finds them; brier: mean squared error.
    gain: log loss of the model of the present loss less its own, nats a token, in pairs.
    found: share of the new hits among the tenth of misses that it takes to be likeliest.
    """
    row: Record = {**NO_SCORES, "brier": NO_ESTIMATE, "gain": NO_ESTIMATE, "found": None}
    if name not in logits:
        return flat(row)
    z_M = logits[name]
    row |= score_chances(z_M, hit_M, document_M)
    row["brier"] = mean_over_documents((hit_chance(z_M) - hit_M) ** 2, document_M)
    if np.ptp(z_M) == 0:
        row["auc"] = NO_ESTIMATE
    elif hit_M.any():
        row["found"] = float(hit_M[np.argsort(-z_M, kind="stable")[: max(len(z_M) // 10, 1)]].sum() / hit_M.sum())
    if BASELINE in logits and name != BASELINE:
        ln_own_M, ln_base_M = (ln_hit_chance(np.where(hit_M, of_M, -of_M)) for of_M in (z_M, logits[BASELINE]))
        row["gain"] = mean_over_documents(ln_own_M - ln_base_M, document_M)
    return flat(row)


def _next(features: _Features, name: str, now: int, top: int) -> tuple[float | None, list[Record]]:
    """Returns the share of tokens that the next decade makes hits, and the likeliest of the misses.

    Empty where the base rate is the best model. chance: of being a hit at ten times x; time: x at which the chance is
    one half, and the ends between which 95 % of such times lie.
    """
    tokens, hit_MT = features.tokens, features.hit_MT
    x_T, last = tokens.x_T, len(tokens.x_T) - 1
    status, z_M = _logits(features, LEARNERS[name], (now, last, last))
    if status is not Status.ok:
        return None, []
    z_M = _over_gap(z_M, DECADE / (x_T[last] - x_T[now]))
    chance_M, hazard_M = hit_chance(z_M), -ln_hit_chance(-z_M) / DECADE
    found, at_M = [], np.flatnonzero(~hit_MT[:, last])
    for place in np.argsort(-z_M, kind="stable")[: top if np.ptp(z_M) > 0 else 0].tolist():
        at = at_M[place]
        row: Record = {"kind": "next", "doc_id": int(tokens.doc_M[at]), "position": int(tokens.position_M[at])}
        row |= {"token_id": int(tokens.token_id_M[at]), "nats": float(tokens.nats_MT[at, last])}
        row |= {"rank": float(tokens.rank_MT[at, last]), "chance": float(chance_M[place])}
        after = (float(np.exp(x_T[last] - np.log1p(-share) / hazard_M[place])) for share in (0.5, *TAILS))
        found.append(row | by_name(time=Estimate(*after)))
    return float(chance_M.sum() / len(hit_MT)), found
