"""Rival distributions of the ranks of one run: each fitted and compared with the best.

Shapes: D documents, R different ranks, K values of k, B resamples of the documents, P parameters, V the vocabulary. The
curve of a distribution is -ln RBP_k at each k and then its entropy, shape [K + 1].
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.derived import derived_power_law, derived_rbp
from rbpx.laws.distribution import DISTRIBUTIONS, fit_distributions, ln_shares, parameter_influence
from rbpx.laws.lognormal import fit_paper, paper_slopes, step_paper
from rbpx.laws.rank_fit import RankFit
from rbpx.status import Status

__all__ = ["Rival", "best", "compare"]

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]

_MU_SIGMA = ("mu", "sigma")


@dataclass(frozen=True, eq=False)
class Rival:
    """One distribution, fitted to one run.

    Attributes:
        fit: the fit.
        curve: -ln RBP_k at each k and the entropy, nats, by exact sums over 1..V; None without numbers.
        curve_B: the same of its refits to resampled documents; None where they are unknown.
        mu_sigma_B2: mu and sigma of the refits of `lognormal_paper`.
        n_documents: number of resampled documents.
        behind: nats per token that it loses against the best of the same coverage, and its 95 % interval over
            documents; None for `lognormal_paper`, which leaves rank 1 out.
    """

    fit: RankFit
    curve: Floats | None
    curve_B: Floats | None
    mu_sigma_B2: Floats | None = None
    n_documents: int = 1
    behind: tuple[float, Interval | None] | None = None

    @property
    def interval(self) -> dict[str, Interval]:
        """95 % intervals of mu and sigma over documents, where they are known."""
        if self.mu_sigma_B2 is None or self.fit.params["mu"] is None:
            return {}
        usable_B2 = self.mu_sigma_B2[np.isfinite(self.mu_sigma_B2).all(axis=1)]
        intervals = {}
        for at, name in enumerate(_MU_SIGMA):
            value = float(self.fit.params[name] or 0.0)
            ends = estimate(value, usable_B2[:, at], self.n_documents, Recipe.uncentred).ends
            if ends is not None:
                intervals[name] = ends
        return intervals


def compare(counts: pa.Table, weights_BD: Floats | None, k_grid: Sequence[int], V: int) -> list[Rival]:
    """Fit `lognormal_paper` and every distribution over 1..V to one run.

    Args:
        counts: doc_id, rank, n_tokens (`document_ranks`).
        weights_BD: how often each document is drawn in each resample; None where there is only one document.
        k_grid: the k of the curves.
        V: width of the vocabulary.
    """
    sorted_counts = _sort(counts, weights_BD)
    fits = fit_distributions(DISTRIBUTIONS, sorted_counts.rank_R, sorted_counts.tokens_R, V)
    rivals = [_paper(sorted_counts, k_grid, V), *(_over_all(fit, sorted_counts, k_grid, V) for fit in fits)]
    top = best(rivals)
    if top is None:
        return rivals
    best_V = ln_shares(top.fit, V)
    compared = []
    for rival in rivals:
        behind = None
        if rival.fit.distribution in DISTRIBUTIONS and rival.fit.loglik is not None:
            behind = _behind(sorted_counts, best_V - ln_shares(rival.fit, V))
        compared.append(replace(rival, behind=behind))
    return compared


def best(rivals: Sequence[Rival]) -> Rival | None:
    """The one with the smallest AIC among those that cover all ranks; None where none has numbers."""
    aics = [
        (r.fit.aic, n) for n, r in enumerate(rivals) if r.fit.distribution in DISTRIBUTIONS and r.fit.aic is not None
    ]
    return rivals[min(aics)[1]] if aics else None


@dataclass(frozen=True, eq=False)
class _Counts:
    """Counts of ranks of one run, and how often each document is drawn; no weights where there is only one document."""

    rank_R: Floats
    tokens_DR: csr_array
    weights_BD: Floats | None

    @cached_property
    def tokens_R(self) -> Floats:
        return np.asarray(self.tokens_DR.sum(axis=0), float)

    @property
    def at_R(self) -> npt.NDArray[np.int64]:
        """Indices of the ranks in 1..V."""
        return self.rank_R.astype(np.int64) - 1


def _sort(counts: pa.Table, weights_BD: Floats | None) -> _Counts:
    rank_R, column = np.unique(counts["rank"].to_numpy(), return_inverse=True)
    doc, tokens = counts["doc_id"].to_numpy(), counts["n_tokens"].to_numpy().astype(np.float64)
    n_documents = int(doc.max()) + 1 if weights_BD is None else weights_BD.shape[1]
    return _Counts(rank_R, csr_array((tokens, (doc, column)), (n_documents, len(rank_R))), weights_BD)


def _paper(counts: _Counts, k_grid: Sequence[int], V: int) -> Rival:
    fit = fit_paper(counts.rank_R, counts.tokens_R)
    beta, gamma = fit.params["beta"], fit.params["gamma"]
    if beta is None or gamma is None:
        return Rival(fit, None, None)
    curve = _curve(np.array([beta]), np.array([gamma]), k_grid, V)[0]
    if fit.status is not Status.ok or counts.weights_BD is None:
        return Rival(fit, curve, None)
    sums_D6 = counts.tokens_DR @ paper_slopes(fit, counts.rank_R)
    mu_B, sigma_B = step_paper(fit, counts.weights_BD @ sums_D6).T
    usable_B = np.isfinite(mu_B) & np.isfinite(sigma_B)
    curve_B = np.full((len(mu_B), len(curve)), np.nan)
    curve_B[usable_B] = _curve((1 - mu_B / sigma_B**2)[usable_B], (0.5 / sigma_B**2)[usable_B], k_grid, V)
    return Rival(fit, curve, curve_B, np.column_stack([mu_B, sigma_B]), counts.weights_BD.shape[1])


def _curve(beta_B: Floats, gamma_B: Floats, k_grid: Sequence[int], V: int) -> Floats:
    rbp_BK = derived_rbp(beta_B, gamma_B, V, k_grid)
    entropy_B = derived_power_law(beta_B, gamma_B, V).cross_entropy_nats
    return np.column_stack([-np.log(rbp_BK), entropy_B])


def _over_all(fit: RankFit, counts: _Counts, k_grid: Sequence[int], V: int) -> Rival:
    """A distribution over 1..V. Its curve moves with the documents as its parameters do, to first order."""
    if fit.loglik is None:
        return Rival(fit, None, None)
    ln_p_V = ln_shares(fit, V)
    p_V, last_K = np.exp(ln_p_V), np.minimum(k_grid, V) - 1
    rbp_K = np.minimum(np.cumsum(p_V)[last_K], 1.0)
    curve = np.append(-np.log(rbp_K), -p_V @ ln_p_V)
    if counts.weights_BD is None:
        return Rival(fit, curve, None)
    influence_RP, score_PV = parameter_influence(fit, counts.rank_R, counts.tokens_R, V)
    moved_BP = counts.weights_BD @ np.asarray(counts.tokens_DR @ influence_RP)
    by_theta_PK = -np.cumsum(score_PV * p_V, axis=1)[:, last_K] / rbp_K
    slopes_PK1 = np.column_stack([by_theta_PK, -(score_PV * p_V) @ ln_p_V])
    return Rival(fit, curve, curve + moved_BP @ slopes_PK1)


def _behind(counts: _Counts, lost_V: Floats) -> tuple[float, Interval | None]:
    """Mean loss per token, and its interval over documents."""
    lost_D, tokens_D = counts.tokens_DR @ lost_V[counts.at_R], np.asarray(counts.tokens_DR.sum(axis=1), float)
    value = float(lost_D.sum() / tokens_D.sum())
    if counts.weights_BD is None:
        return value, None
    with np.errstate(invalid="ignore"):  # a resample that draws no token has no mean, and is left out
        lost_B = (counts.weights_BD @ lost_D) / (counts.weights_BD @ tokens_D)
    return value, estimate(value, lost_B, len(lost_D), Recipe.uncentred).ends
