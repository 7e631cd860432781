"""Fits rival distributions to the ranks of one run, and compares each with the best.

The curve of a distribution is -ln RBP_k at each k and then its entropy, shape [K + 1].

Shapes: D documents, R different ranks, K values of k, B resamples of the documents, P parameters, V the vocabulary.
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
from rbpx.store.store import Record

PAPER: Final = "lognormal_paper"
_TOKENS: Final = "tokens"


@dataclass(frozen=True, eq=False)
class Counted:
    """The ranks of one run.

    Attributes:
        rank_R: the ranks that occur, ascending.
        tokens_DR: the tokens of each in each document.
    """

    rank_R: Floats
    tokens_DR: csr_array

    @property
    def n_R(self) -> Floats:
        """The tokens of each rank."""
        return np.asarray(self.tokens_DR.sum(axis=0), np.float64)


def counted(counts: pa.Table, n_documents: int) -> Counted:
    """Put the columns doc_id, rank and n_tokens of `document_ranks` into a matrix."""
    rank_R, column = distinct_ranks(counts["rank"].to_numpy())
    doc, tokens = counts["doc_id"].to_numpy(), counts["n_tokens"].to_numpy().astype(np.float64)
    return Counted(rank_R, csr_array((tokens, (doc, column)), (n_documents, len(rank_R))))


@dataclass(frozen=True, eq=False)
class Rival:
    """One distribution, fitted to one run.

    Attributes:
        fit: the fit.
        implied: what its row has beside its parameters. is_best, by AIC among those over all ranks; what its curve is;
            nats_behind: nats per token that it loses against the best, with a 95 % interval over documents, None for
            `lognormal_paper`, which leaves rank 1 out; of that the ends of mu and sigma, where they are known.
        curve: -ln RBP_k at each k and the entropy, nats, by exact sums over 1..V; None without numbers.
        curve_B: the same of its refits to resampled documents; None where they are unknown.
        mu_sigma_B2: mu and sigma of the refits of `lognormal_paper`.
    """

    fit: RankFit
    implied: Record
    curve: Floats | None = None
    curve_B: Floats | None = None
    mu_sigma_B2: Floats | None = None


def compare(
    of: Counted, weights_BD: Floats | None, k_grid: Sequence[int], V: int, n_resampled: int
) -> dict[str, Rival]:
    """Fit `lognormal_paper` and every distribution over 1..V to one run; that is their order.

    Args:
        of: the ranks of the run.
        weights_BD: how often each document is drawn in each resample; None where there is only one document.
        k_grid: the k of the curves.
        V: width of the vocabulary.
        n_resampled: documents, or texts that several were cut from.
    """
    rank_R, tokens_DR = of.rank_R, of.tokens_DR
    sample = RankSample(rank_R, of.n_R, V, tuple(k_grid))
    paper, fits = fit_paper(rank_R, sample.n_R), fit_sample(DISTRIBUTIONS, sample)
    curves = {fit.distribution: rank_curve(fit, sample, k_grid) for fit in fits if fit.loglik is not None}
    aics = {fit.distribution: fit.aic for fit in fits if fit.aic is not None}
    best = min(aics, key=aics.__getitem__, default=None)
    # All sums over documents, for all distributions at once, so that resampling is one product.
    summed = {_TOKENS: np.ones((len(rank_R), 1))}
    if paper.status is Status.ok:
        summed[PAPER] = paper_slopes(paper, rank_R)
    for name, curve in curves.items():
        summed[name] = curve.influence
        summed[f"{name}_behind"] = (curves[best or name].ln_share - curve.ln_share)[:, None]
    sums_DC = np.asarray(tokens_DR @ np.hstack(list(summed.values())))
    sums_D = _split(sums_DC, summed)
    sums_B = None if weights_BD is None else _split(weights_BD @ sums_DC, summed)
    rivals = {PAPER: _paper(paper, sums_B, n_resampled, k_grid, V)}
    for fit in fits:
        name, implied = fit.distribution, {"is_best": fit.distribution == best}
        if name in curves:
            of_D, of_B = ((sums[f"{name}_behind"], sums[_TOKENS]) for sums in (sums_D, sums_B or sums_D))
            behind = by_name(nats_behind=ratio(of_D, of_B if sums_B else None, n_resampled))
            curve_B = None if sums_B is None else curves[name].curve + sums_B[name] @ curves[name].slopes
            derives = _derives(curves[name].curve, k_grid)
            rivals[name] = Rival(fit, implied | behind | derives, curves[name].curve, curve_B)
        else:
            rivals[name] = Rival(fit, implied)
    return rivals


def _derives(curve: Floats, k_grid: Sequence[int]) -> Record:
    of_k = dict(zip(map(str, k_grid), curve[:-1].tolist(), strict=True))
    return {"derived_neg_ln_rbp": of_k, "derived_entropy_nats": float(curve[-1])}


def ratio(sums_D: tuple[Any, Any], sums_B: tuple[Any, Any] | None, n_resampled: int, over: float = 1.0) -> Estimate:
    """The ratio of two sums over documents, with its interval over resampled documents.

    Args:
        sums_D: what is summed, of each document.
        sums_B: the two sums in each resample; None where there is only one document.
        n_resampled: documents, or texts that several were cut from.
        over: what the ratio is divided by.
    """
    value = float(sums_D[0].sum() / sums_D[1].sum() / over)
    if sums_B is None:
        return Estimate(value)
    with np.errstate(invalid="ignore"):  # a resample that draws no token has no mean, and is left out
        return estimate(value, np.ravel(sums_B[0] / sums_B[1] / over), n_resampled, Recipe.uncentred)


def _split(sums: Floats, summed: dict[str, Floats]) -> dict[str, Floats]:
    """The columns of each name."""
    ends = np.cumsum([columns.shape[1] for columns in summed.values()])[:-1]
    return dict(zip(summed, np.split(sums, ends, axis=1), strict=True))


def _paper(fit: RankFit, sums_B: dict[str, Floats] | None, n_documents: int, k_grid: Sequence[int], V: int) -> Rival:
    beta, gamma = fit.params["beta"], fit.params["gamma"]
    if beta is None or gamma is None:
        return Rival(fit, {"is_best": False})
    curve = _curve(np.array([beta]), np.array([gamma]), k_grid, V)[0]
    implied = {"is_best": False, **_derives(curve, k_grid)}
    if fit.status is not Status.ok or sums_B is None:
        return Rival(fit, implied, curve)
    mu_B, sigma_B = step_paper(fit, sums_B[PAPER]).T
    usable_B = np.isfinite(mu_B) & np.isfinite(sigma_B)
    curve_B = np.full((len(mu_B), len(curve)), np.nan)
    curve_B[usable_B] = _curve((1 - mu_B / sigma_B**2)[usable_B], (0.5 / sigma_B**2)[usable_B], k_grid, V)
    found_B2 = np.column_stack([mu_B, sigma_B])
    for at, name in enumerate(("mu", "sigma")):
        value = float(fit.params[name] or 0.0)
        ends = estimate(value, found_B2[usable_B, at], n_documents, Recipe.uncentred).ends
        implied |= {} if ends is None else {f"{name}_lo": ends[0], f"{name}_hi": ends[1]}
    return Rival(fit, implied, curve, curve_B, found_B2)


def _curve(beta_B: Floats, gamma_B: Floats, k_grid: Sequence[int], V: int) -> Floats:
    rbp_BK, derived = derived_curve(beta_B, gamma_B, V, k_grid)
    return np.column_stack([-np.log(rbp_BK), derived.cross_entropy_nats])
