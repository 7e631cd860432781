"""Which misses become hits over the next decade of x, foretold for the last points by what earlier points teach.

A logistic model of the chance that a miss now is a hit a decade on is learned one decade earlier, and judged at the
last point, which nothing has seen. The models differ in what they know of a token, each as a normal score among the
misses of its time. A chance p over the gap g becomes 1 - (1 - p)^(g'/g) over another gap g', the law of a constant
hazard in ln x, which also makes times of chances.

Shapes: M tokens, T points, F features.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from rbpx.laws.counts.chances import (
    UNJUDGED,
    blocks_of,
    hit_chance,
    judge,
    learn,
    ln_hit_chance,
    mean_over_documents,
    numbered,
)
from rbpx.laws.intervals.estimate import NO_ESTIMATE, TAILS, Estimate, by_name, flat
from rbpx.laws.learning.curves import FEWEST, fit_sigmoids
from rbpx.laws.numeric import Floats
from rbpx.questions.learning.losses import Over
from rbpx.questions.learning.tokens import Tokens
from rbpx.status import Status
from rbpx.store.store import Record

DECADE: Final = float(np.log(10))
BASELINE: Final = "loss"
LEARNERS: Final[Mapping[str, tuple[str, ...]]] = {
    "base rate": (),
    "frequency": ("ln_frequency",),
    BASELINE: ("nats",),
    "slope": ("slope",),
    "loss, slope, frequency": ("nats", "slope", "ln_frequency"),
    "rank": ("ln_rank",),
    "rank and all three": ("ln_rank", "nats", "slope", "ln_frequency"),
    "sigmoid": ("sigmoid_nats",),
}
"""What each model knows of a token; sigmoid: what its sigmoid so far foretells it to lose."""

_CLIP: Final = 30.0  # of a logit


def forecast(over: Over, k: int, top: int) -> list[Record]:
    """Foretell the last decade, and the next; nothing where the points reach over no two decades, each with a slope.

    taught_lo, taught_hi: x of where now was when the models learned, and of the decade's end, which is now when they
        are judged.
    judged_lo, judged_hi: x of now and of the last point.
    n_misses: tokens that are misses now; became: their share that are hits at the last point.
    best: the model of the least log loss there, which foretells the next decade; None where none was judged.
    expected: share of all tokens that are misses at the last point and are expected to be hits a decade on.

    A row for each model; for each point that the best foretold, with the share of the misses that it expects to be hits
    there and the share there is; for each of the misses at the last point that are likeliest to become hits (`_next`).

    Args:
        over: the tokens.
        k: rank that makes a hit.
        top: tokens to name.
    """
    tokens, x_T = over.tokens, over.tokens.x_T
    last = len(x_T) - 1
    now = _decade_before(x_T, last, 2)
    before = None if now is None else _decade_before(x_T, now, 1)
    if now is None or before is None:
        return []
    hit_MT = tokens.rank_MT <= k
    miss_M = ~hit_MT[:, now]
    is_hit_M = hit_MT[miss_M, last]
    document_M = numbered(tokens.doc_M[miss_M]) if miss_M.any() else np.empty(0, np.intp)
    taught, judged = (_features(tokens, at) for at in (before, now))
    gaps = x_T[now] - x_T[before], x_T[last] - x_T[now]
    statuses: dict[str, Status] = {}
    logits: dict[str, Floats] = {}
    for name, features in LEARNERS.items():
        statuses[name], z_M = _logits(features, (taught, ~hit_MT[:, before], hit_MT[:, now]), (judged, miss_M))
        if statuses[name] is Status.ok:
            logits[name] = _over_gap(z_M, gaps[1] / gaps[0])
    learners = [
        {"kind": "learner", "name": name, **_scored(name, logits, is_hit_M, document_M), "status": status}
        for name, status in statuses.items()
    ]
    losses = {row["name"]: row["log_loss_nats"] for row in learners if row["log_loss_nats"] is not None}
    best = min(losses, key=losses.__getitem__, default=None)
    reached, expected, likeliest = [], None, list[Record]()
    if best is not None:
        expected, likeliest = _next(over, best, judged, hit_MT, (now, last), top)
        for at in range(now + 1, last + 1):
            chance = hit_chance(_over_gap(logits[best], (x_T[at] - x_T[now]) / gaps[1])).mean()
            observed = by_name(observed=mean_over_documents(hit_MT[miss_M, at].astype(np.float64), document_M))
            reached.append({"kind": "reached", "x": float(np.exp(x_T[at])), "expected": float(chance), **observed})
    x = np.exp(x_T).tolist()
    found = {"kind": "forecast", "taught_lo": x[before], "taught_hi": x[now], "judged_lo": x[now], "judged_hi": x[last]}
    found |= {"n_misses": len(is_hit_M), "became": float(is_hit_M.mean()) if len(is_hit_M) else float("nan")}
    found |= {"best": best, "expected": expected}
    return [{**row, "k": k} for row in (found, *learners, *reached, *likeliest)]


def _decade_before(x_T: Floats, at: int, least: int) -> int | None:
    """The point from which on it is nearest to a decade to another one; None where fewer than `least` lie before it."""
    return least + int(np.abs(x_T[at] - x_T[least:at] - DECADE).argmin()) if at > least else None


def _features(tokens: Tokens, at: int) -> Mapping[str, Floats]:
    """What is known of each token at a point."""
    x_T, nats_MT = tokens.x_T, tokens.nats_MT.astype(np.float64)
    _, of_M, n_V = np.unique(tokens.token_id_M, return_inverse=True, return_counts=True)
    features = {
        "nats": nats_MT[:, at],
        "slope": (nats_MT[:, at] - nats_MT[:, at - 1]) / (x_T[at] - x_T[at - 1]),
        "ln_frequency": np.log(n_V[of_M]),
        "ln_rank": np.log(tokens.rank_MT[:, at].astype(np.float64)),
    }
    if at + 1 >= FEWEST - 2:
        sigmoids = fit_sigmoids(x_T[: at + 1], nats_MT[:, : at + 1])
        features["sigmoid_nats"] = sigmoids.at(x_T[at : at + 1] + DECADE)[:, 0]
    return features


def _known(known: Mapping[str, Floats], features: Sequence[str], of_M: NDArray[np.bool_]) -> Floats:
    """Normal scores of some features among some tokens, beside a constant, [M, F + 1].

    Losses of one decade are not those of the next, so a token is described by its place among the misses of its time.
    """
    n = int(of_M.sum())
    scores = [ndtri((rankdata(known[name][of_M]) - 0.5) / n) for name in features]
    return np.column_stack([np.ones(n), *scores])


def _logits(
    features: Sequence[str],
    taught: tuple[Mapping[str, Floats], NDArray[np.bool_], NDArray[np.bool_]],
    judged: tuple[Mapping[str, Floats], NDArray[np.bool_]],
) -> tuple[Status, Floats]:
    """Learn from features, misses and later hits at one time; the status, and the logits of misses at another time."""
    known, miss_M, hit_M = taught
    if not known.keys() >= set(features):  # a sigmoid needs more points
        return Status.not_identified, np.empty(0)
    if not miss_M.any() or not judged[1].any():
        return Status.one_outcome, np.empty(0)
    design_MF = _known(known, features, miss_M)
    varies_F = np.concatenate([[True], np.ptp(design_MF[:, 1:], axis=0) > 0])
    found = learn(blocks_of(design_MF[:, None, varies_F], hit_M[miss_M]))
    if found.status is not Status.ok:
        return found.status, np.empty(0)
    return Status.ok, np.clip(_known(*(judged[0], features, judged[1]))[:, varies_F] @ found.theta_F, -_CLIP, _CLIP)


def _over_gap(z_M: Floats, ratio: float) -> Floats:
    """The logits over a gap that is so many times as long, at a constant hazard."""
    ln_still_M = ratio * ln_hit_chance(-z_M)
    return np.asarray(np.log(-np.expm1(ln_still_M)) - ln_still_M)


def _scored(name: str, logits: Mapping[str, Floats], hit_M: NDArray[np.bool_], document_M: NDArray[np.intp]) -> Record:
    """How the chances of one model are judged at the last point.

    auc, log_loss_nats, excess: as `rbpx.laws.counts.chances.judge` finds them; brier: mean squared error.
    gain: log loss of the model of the present loss less its own, nats a token, in pairs.
    found: share of the new hits among the tenth of misses that it takes to be likeliest.
    """
    row: Record = {**UNJUDGED, "brier": NO_ESTIMATE, "gain": NO_ESTIMATE, "found": None}
    if name not in logits:
        return flat(row)
    z_M = logits[name]
    row |= judge(z_M, hit_M, document_M)
    row["brier"] = mean_over_documents((hit_chance(z_M) - hit_M) ** 2, document_M)
    if np.ptp(z_M) == 0:
        row["auc"] = NO_ESTIMATE
    elif hit_M.any():
        tenth = np.argsort(-z_M, kind="stable")[: max(len(z_M) // 10, 1)]
        row["found"] = float(hit_M[tenth].sum() / hit_M.sum())
    if BASELINE in logits and name != BASELINE:
        more_M = ln_hit_chance(np.where(hit_M, z_M, -z_M))
        more_M -= ln_hit_chance(np.where(hit_M, logits[BASELINE], -logits[BASELINE]))
        row["gain"] = mean_over_documents(more_M, document_M)
    return flat(row)


def _next(
    over: Over, name: str, known: Mapping[str, Floats], hit_MT: NDArray[np.bool_], points: tuple[int, int], top: int
) -> tuple[float | None, list[Record]]:
    """The share of tokens that the next decade makes hits, and the likeliest of the misses, by the last decade.

    There are none where the base rate is the best that is known. Of each: chance, of being a hit ten times x on; time,
    x at which it is as likely as not to be one, with ends between which 95 % of such times would lie.
    """
    tokens, (now, last) = over.tokens, points
    x_T, miss_M = tokens.x_T, ~hit_MT[:, last]
    taught = known, ~hit_MT[:, now], hit_MT[:, last]
    status, z_M = _logits(LEARNERS[name], taught, (_features(tokens, last), miss_M))
    if status is not Status.ok:
        return None, []
    z_M = _over_gap(z_M, DECADE / (x_T[last] - x_T[now]))
    chance_M, hazard_M = hit_chance(z_M), -ln_hit_chance(-z_M) / DECADE
    found = []
    at_M = np.flatnonzero(miss_M)
    for place in np.argsort(-z_M, kind="stable")[: top if np.ptp(z_M) > 0 else 0]:
        at, hazard = at_M[place], hazard_M[place]
        row: Record = {"kind": "next", "doc_id": int(tokens.doc_M[at]), "position": int(tokens.position_M[at])}
        row |= {"token_id": int(tokens.token_id_M[at]), "nats": float(tokens.nats_MT[at, last])}
        times = (float(np.exp(x_T[last] - np.log1p(-share) / hazard)) for share in (0.5, *TAILS))
        row |= {"rank": float(tokens.rank_MT[at, last]), "chance": float(chance_M[place])}
        found.append(row | by_name(time=Estimate(*times)))
    return float(chance_M.sum() / len(miss_M)), found
