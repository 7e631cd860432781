"""Fits rival distributions to the ranks of one run, and compares each with the best.

A curve is -ln RBP_k at each k and then the entropy, shape [K + 1]. Shapes: D documents, R ranks, K values of k, B
replicates, P parameters, V the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from rbpx.laws.intervals.estimate import Estimate, Recipe, by_name, estimate
from rbpx.laws.numeric import Floats
from rbpx.laws.ranks.distribution import DISTRIBUTIONS, RankSample, fit_sample, rank_curve
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.ranks.lognormal import derived_curve, fit_paper, paper_slopes, step_paper
from rbpx.runs.documents import distinct_ranks
from rbpx.status import Status
from rbpx.store.columns import numbers
from rbpx.store.store import Record

PAPER: Final = "lognormal_paper"
_LOGNORMAL: Final = ("mu", "sigma")
_TOKENS: Final = "tokens"


@dataclass(frozen=True, eq=False)
class DocumentRanks:
    """The ranks of one run that occur, ascending, and the tokens of each in each document."""

    rank_R: Floats
    tokens_DR: csr_array

    @property
    def n_R(self) -> Floats:
        """The number of tokens of each rank."""
        return np.asarray(self.tokens_DR.sum(axis=0), np.float64)


def ranks_by_document(counts: pa.Table, n_documents: int) -> DocumentRanks:
    """Puts the columns doc_id, rank and n_tokens of `document_ranks` into a matrix."""
    rank_R, column = distinct_ranks(numbers(counts["rank"]))
    doc, tokens = numbers(counts["doc_id"]), numbers(counts["n_tokens"]).astype(np.float64)
    return DocumentRanks(rank_R, csr_array((tokens, (doc, column)), (n_documents, len(rank_R))))


@dataclass(frozen=True, eq=False)
class Rival:
    """One distribution, fitted to one run.

    Attributes:
        implied: keys of its row besides parameters: is_best, by AIC among those over all ranks; its curve; nats_behind
            the best per token, None for `lognormal_paper`, which leaves rank 1 out; the ends of mu and sigma.
        curve: by exact sums over 1..V; for `lognormal_paper` with exp(mu) and exp(sigma).
    """

    fit: RankFit
    implied: Record
    curve: Floats | None = None
    curve_B: Floats | None = None


def compare(
    of: DocumentRanks, weights_BD: Floats | None, k_grid: Sequence[int], V: int, n_effective: float
) -> dict[str, Rival]:
    """Fits `lognormal_paper` and every distribution over 1..V to one run; a single document has no weights."""
    rank_R, tokens_DR = of.rank_R, of.tokens_DR
    sample = RankSample(rank_R, of.n_R, V, tuple(k_grid))
    paper, fits = fit_paper(rank_R, sample.n_R), fit_sample(DISTRIBUTIONS, sample)
    curves = {fit.distribution: rank_curve(fit, sample) for fit in fits if fit.loglik is not None}
    aics = {fit.distribution: fit.aic for fit in fits if fit.aic is not None}
    best = min(aics, key=aics.__getitem__, default=None)
    # Sums over documents of all distributions at once: the bootstrap is then one matrix product.
    summed = {_TOKENS: np.ones((len(rank_R), 1))}
    if paper.status is Status.ok:
        summed[PAPER] = paper_slopes(paper, rank_R)
    for name, curve in curves.items():
        summed[name] = curve.influence
        summed[f"{name}_behind"] = (curves[best or name].ln_share - curve.ln_share)[:, None]
    sums_DC = np.asarray(tokens_DR @ np.hstack(list(summed.values())))
    sums_D = _split(sums_DC, summed)
    sums_B = None if weights_BD is None else _split(weights_BD @ sums_DC, summed)
    rivals = {PAPER: _paper(paper, sums_B, n_effective, k_grid, V)}
    for fit in fits:
        name, implied = fit.distribution, {"is_best": fit.distribution == best}
        if name in curves:
            lost = ratio(sums_D[f"{name}_behind"], sums_D[_TOKENS], weights_BD, n_effective)
            behind = by_name(nats_behind=lost)
            curve_B = None if sums_B is None else curves[name].curve + sums_B[name] @ curves[name].slopes
            derives = _derives(curves[name].curve, k_grid)
            rivals[name] = Rival(fit, implied | behind | derives, curves[name].curve, curve_B)
        else:
            rivals[name] = Rival(fit, implied)
    return rivals


def _derives(curve: Floats, k_grid: Sequence[int]) -> Record:
    of_k = dict(zip(map(str, k_grid), curve[:-1].tolist(), strict=True))
    return {"derived_neg_ln_rbp": of_k, "derived_entropy_nats": float(curve[-1])}


def ratio(above_D: Any, below_D: Any, weights_BD: Floats | None, n_effective: float, over: float = 1.0) -> Estimate:
    """The ratio of two sums over documents, divided by `over`."""
    value = float(above_D.sum() / below_D.sum() / over)
    if weights_BD is None:
        return Estimate(value)
    with np.errstate(invalid="ignore"):  # a replicate without tokens has no mean, and is left out
        of_B = np.ravel((weights_BD @ above_D) / (weights_BD @ below_D) / over)
    return estimate(value, of_B, n_effective, Recipe.uncentred)


def _split(sums: Floats, summed: dict[str, Floats]) -> dict[str, Floats]:
    ends = np.cumsum([columns.shape[1] for columns in summed.values()])[:-1]
    return dict(zip(summed, np.split(sums, ends, axis=1), strict=True))


def _paper(fit: RankFit, sums_B: dict[str, Floats] | None, n_effective: float, k_grid: Sequence[int], V: int) -> Rival:
    beta, gamma, *found = (
        np.nan if (of := fit.params[name]) is None else of for name in ("beta", "gamma", *_LOGNORMAL)
    )
    if not np.isfinite(beta):
        return Rival(fit, {"is_best": False})
    curve, curve_B = derived_curve(np.array([beta]), np.array([gamma]), V, k_grid)[0], None
    implied: Record = {"is_best": False, **_derives(curve, k_grid)}
    if fit.status is Status.ok and sums_B is not None:
        found_B2 = step_paper(fit, sums_B[PAPER])
        mu_B, sigma_B = found_B2.T
        with np.errstate(over="ignore"):  # a replicate with a huge mu is infinite, and left out
            of_B = derived_curve(1 - mu_B / sigma_B**2, 0.5 / sigma_B**2, V, k_grid)
            curve_B = np.column_stack([of_B, np.exp(found_B2)])
        for name, value, of_B in zip(_LOGNORMAL, found, found_B2.T, strict=True):
            ends = estimate(value, of_B, n_effective, Recipe.uncentred).ends
            implied |= {} if ends is None else {f"{name}_lo": ends[0], f"{name}_hi": ends[1]}
    return Rival(fit, implied, np.append(curve, np.exp(found)), curve_B)
