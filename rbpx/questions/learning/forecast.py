"""Which misses become hits over the next decade of x, foretold for the last points by what earlier points teach.

A logistic model of the chance that a miss now is a hit a decade on is learned one decade earlier, and judged at the
last point, which nothing has seen. The models differ in what they know of a token, each as a normal score among the
misses of its time. A chance p over the gap g becomes 1 - (1 - p)^(g'/g) over another gap g', the law of a constant
hazard in ln x, which also makes times of chances.

Shapes: M tokens, T points, F features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from rbpx.laws.counts.chances import (
    UNJUDGED,
    Judgement,
    blocks_of,
    hit_chance,
    judge,
    learn,
    ln_hit_chance,
    mean_over_documents,
    numbered,
)
from rbpx.laws.intervals.estimate import NO_ESTIMATE, TAILS, Estimate
from rbpx.laws.learning.curves import FEWEST, fit_sigmoids
from rbpx.laws.numeric import Floats
from rbpx.questions.learning.losses import Over
from rbpx.questions.learning.tokens import Tokens
from rbpx.status import Status

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


@dataclass(frozen=True)
class Scored:
    """One model, judged at the last point.

    Attributes:
        name: of `LEARNERS`.
        judgement: AUC, log loss and mean excess of its chances.
        brier: mean squared error of its chances.
        gain: log loss of the model of the present loss less its own, nats a token, in pairs.
        found: share of the new hits among the tenth of misses that it takes to be likeliest.
        status: ok; not_identified where a sigmoid has too few points; one_outcome; not_converged.
    """

    name: str
    judgement: Judgement
    brier: Estimate = NO_ESTIMATE
    gain: Estimate = NO_ESTIMATE
    found: float | None = None
    status: Status = Status.ok


@dataclass(frozen=True)
class Reached:
    """How many of the misses are hits by a point that was foretold: x, the share expected and the share there is."""

    x: float
    expected: float
    observed: Estimate


@dataclass(frozen=True)
class Next:
    """A miss at the last point that is likeliest to become a hit.

    Attributes:
        doc_id: its document.
        position: its place there.
        token_id: its id.
        nats: its loss at the last point.
        rank: its rank there.
        chance: of being a hit ten times x on.
        time: x at which it is as likely as not to be one; ends between which 95 % of such times would lie.
    """

    doc_id: int
    position: int
    token_id: int
    nats: float
    rank: float
    chance: float
    time: Estimate


@dataclass(frozen=True, eq=False)
class Forecast:
    """What was foretold of the last decade, and what is of the next.

    Attributes:
        k: rank that makes a hit.
        taught: x of where now was when the models learned, and of the decade's end, which is now when they are judged.
        judged: x of now and of the last point.
        n_misses: tokens that are misses now.
        became: their share that are hits at the last point.
        learners: each judged.
        best: the model of the least log loss there, which foretells the next decade; None where none was judged.
        reached: by each point that was foretold, by that model.
        expected: share of all tokens that are misses at the last point and are expected to be hits a decade on.
        next: the likeliest of them; none where the base rate is the best that is known.
    """

    k: int
    taught: tuple[float, float]
    judged: tuple[float, float]
    n_misses: int
    became: float
    learners: tuple[Scored, ...]
    best: str | None
    reached: tuple[Reached, ...]
    expected: float | None
    next: tuple[Next, ...]


def forecast(over: Over, k: int, top: int) -> Forecast | None:
    """Foretell the last decade, and the next; None where the points reach over no two decades, each with a slope.

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
        return None
    hit_MT = tokens.rank_MT <= k
    miss_M = ~hit_MT[:, now]
    is_hit_M = hit_MT[miss_M, last]
    document_M = numbered(tokens.doc_M[miss_M]) if miss_M.any() else np.empty(0, np.intp)
    taught, judged = (_features(tokens, at) for at in (before, now))
    gaps = x_T[now] - x_T[before], x_T[last] - x_T[now]
    logits: dict[str, Floats] = {}
    found = []
    for name, features in LEARNERS.items():
        if "sigmoid_nats" in features and before + 1 < FEWEST - 2:
            found.append(Scored(name, UNJUDGED, status=Status.not_identified))
            continue
        status, z_M = _logits(features, (taught, ~hit_MT[:, before], hit_MT[:, now]), (judged, miss_M))
        if status is not Status.ok:
            found.append(Scored(name, UNJUDGED, status=status))
            continue
        logits[name] = _over_gap(z_M, gaps[1] / gaps[0])
        found.append(_scored(name, logits[name], is_hit_M, document_M))
    found = [_with_gain(each, logits, is_hit_M, document_M) for each in found]
    reached, best = [], _best(found)
    if best is not None:
        for at in range(now + 1, last + 1):
            chance = hit_chance(_over_gap(logits[best], (x_T[at] - x_T[now]) / gaps[1])).mean()
            observed = mean_over_documents(hit_MT[miss_M, at].astype(np.float64), document_M)
            reached.append(Reached(float(np.exp(x_T[at])), float(chance), observed))
    expected, likeliest = (None, ()) if best is None else _next(over, best, judged, hit_MT, (now, last), top)
    x = np.exp(x_T).tolist()
    became = float(is_hit_M.mean()) if len(is_hit_M) else float("nan")
    about = (x[before], x[now]), (x[now], x[last])
    return Forecast(k, *about, len(is_hit_M), became, tuple(found), best, tuple(reached), expected, likeliest)


def _best(found: Sequence[Scored]) -> str | None:
    """The model of the least log loss; None where none was judged."""
    scored = {each.name: loss for each in found if (loss := each.judgement["log_loss_nats"].value) is not None}
    return min(scored, key=scored.__getitem__, default=None)


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


def _scored(name: str, z_M: Floats, hit_M: NDArray[np.bool_], document_M: NDArray[np.intp]) -> Scored:
    if not len(hit_M):
        return Scored(name, UNJUDGED, status=Status.one_outcome)
    brier = mean_over_documents((hit_chance(z_M) - hit_M) ** 2, document_M)
    tenth = np.argsort(-z_M, kind="stable")[: max(len(z_M) // 10, 1)]
    share = float(hit_M[tenth].sum() / hit_M.sum()) if hit_M.any() and np.ptp(z_M) > 0 else None
    judgement = judge(z_M, hit_M, document_M)
    if np.ptp(z_M) == 0:
        judgement = judgement | {"auc": NO_ESTIMATE}
    return Scored(name, judgement, brier, NO_ESTIMATE, share)


def _with_gain(
    each: Scored, logits: Mapping[str, Floats], hit_M: NDArray[np.bool_], document_M: NDArray[np.intp]
) -> Scored:
    if each.name not in logits or BASELINE not in logits or not len(hit_M):
        return each
    loss = {name: -ln_hit_chance(np.where(hit_M, logits[name], -logits[name])) for name in (each.name, BASELINE)}
    gain = NO_ESTIMATE if each.name == BASELINE else mean_over_documents(loss[BASELINE] - loss[each.name], document_M)
    return Scored(each.name, each.judgement, each.brier, gain, each.found, each.status)


def _next(
    over: Over, name: str, known: Mapping[str, Floats], hit_MT: NDArray[np.bool_], points: tuple[int, int], top: int
) -> tuple[float | None, tuple[Next, ...]]:
    """The share of tokens that the next decade makes hits, and the likeliest of the misses, by the last decade."""
    tokens, (now, last) = over.tokens, points
    x_T, miss_M = tokens.x_T, ~hit_MT[:, last]
    taught = known, ~hit_MT[:, now], hit_MT[:, last]
    status, z_M = _logits(LEARNERS[name], taught, (_features(tokens, last), miss_M))
    if status is not Status.ok:
        return None, ()
    z_M = _over_gap(z_M, DECADE / (x_T[last] - x_T[now]))
    chance_M, hazard_M = hit_chance(z_M), -ln_hit_chance(-z_M) / DECADE
    found = []
    at_M = np.flatnonzero(miss_M)
    for place in np.argsort(-z_M, kind="stable")[: top if np.ptp(z_M) > 0 else 0]:
        at, hazard = at_M[place], hazard_M[place]
        time, lo, hi = (float(np.exp(x_T[last] - np.log1p(-share) / hazard)) for share in (0.5, *TAILS))
        found.append(
            Next(
                int(tokens.doc_M[at]), int(tokens.position_M[at]), int(tokens.token_id_M[at]),
                float(tokens.nats_MT[at, last]), float(tokens.rank_MT[at, last]), float(chance_M[place]),
                Estimate(time, lo, hi),
            )
        )  # fmt: skip
    return float(chance_M.sum() / len(miss_M)), tuple(found)
