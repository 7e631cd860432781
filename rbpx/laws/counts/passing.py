"""Likelihood of counts of sequences that pass, all their tokens being hits, its maximum, and the scatter of the models.

RBP_k = q(S) = exp(-exp(mu)) with mu = ln C_ref - alpha x, x = ln(S / S_ref). A sequence of N tokens passes with p_N = q
prod_{i=1}^{N-1} (q + (i - q) r) / (1 + (i - 1) r): beta-binomial hits with correlation r within the sequence. At r = 0,
p_N = q^N, a complementary log-log regression of failure.

Counts of a cell that varies more than independent sequences are divided by the ratio of the variances (Wedderburn,
Biometrika 61, 1974, 439). Models scatter about the law with variance tau^2 in mu, by moments from the excess variance
of the sizes' scores: DerSimonian and Laird, Controlled Clinical Trials 7 (1986), 177; Knapp and Hartung, Statistics in
Medicine 22 (2003), 2693.

Shapes: C cells, each one size and one N; P parameters, ln C_ref, alpha and, where it is fitted, r; B sets of counts; M
sizes.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import few_documents, half_width
from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, Sets, StoppingRule, diagonal, minimise

_AT_A_TIME: Final = 16384  # chances of single tokens, which fit in the cache of a core
_ROUNDING: Final = 1e-14  # of a likelihood
_END: Final = StoppingRule(step=1e-9, most_steps=100)
_LARGEST_R: Final = 0.999


@dataclass(frozen=True, eq=False)
class PassCounts:
    """Outcomes of many sequences.

    Attributes:
        x_C: ln(S / S_ref).
        N_C: tokens of a sequence; 1 where it counts as one token of its own law.
        r_BC: known correlation of the hits of a sequence; None where it is fitted.
    """

    x_C: Floats
    N_C: Floats
    passed_BC: Floats
    trials_BC: Floats
    r_BC: Floats | None

    def of(self, sets_B: NDArray[Any]) -> "PassCounts":
        """Some of the sets of counts."""
        r_BC = None if self.r_BC is None else self.r_BC[sets_B]
        return replace(self, passed_BC=self.passed_BC[sets_B], trials_BC=self.trials_BC[sets_B], r_BC=r_BC)

    @property
    def design_CP(self) -> Floats:
        """Derivatives of mu by ln C_ref and alpha."""
        return np.column_stack([np.ones(len(self.x_C)), -self.x_C])


@dataclass(frozen=True, eq=False)
class Slopes:
    """The likelihood and its derivatives at some parameters.

    Attributes:
        error_BC: passes minus those expected, over the chance to fail; times d ln p_N it is the score.
        weight_BC: trials p / (1 - p); times (d ln p_N)^2 it is Fisher's information.
        by_theta_BCP: d ln p_N / d theta.
    """

    ln_likelihood_B: Floats
    error_BC: Floats
    weight_BC: Floats
    by_theta_BCP: Floats
    by_mu_BC: Floats

    def of(self, sets_B: NDArray[Any]) -> "Slopes":
        """Some of the sets of counts."""
        return Slopes(*(getattr(self, each.name)[sets_B] for each in fields(self)))

    @property
    def score_BP(self) -> Floats:
        """Gradient of the log-likelihood."""
        return np.asarray(np.einsum("bc,bcp->bp", self.error_BC, self.by_theta_BCP))

    @property
    def information_BPP(self) -> Floats:
        """Fisher's information."""
        return np.asarray(np.einsum("bc,bcp,bcq->bpq", self.weight_BC, self.by_theta_BCP, self.by_theta_BCP))


def ln_pass(mu_BC: Floats, r_BC: Floats, N_C: Floats) -> tuple[Floats, Floats, Floats]:
    """Ln p_N and its derivatives by mu and r; NaN where r is too negative for that probability."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # steps that go too far; negative probabilities
        ln_q_BC = -np.exp(mu_BC)
        q_BC = np.exp(ln_q_BC)
        # At r = 0 p_N = q^N needs no product.
        ln_p, by_q, by_r = N_C * ln_q_BC, N_C * np.ones_like(q_BC), N_C * (N_C - 1) / 2 * (1 - q_BC) / q_BC
        for N in np.unique(N_C[(N_C > 1) & (r_BC != 0).any(axis=0)]):
            at = N_C == N
            q, r = q_BC[:, at], r_BC[:, at]
            gained, share, turn = np.zeros_like(q), np.zeros_like(q), np.zeros_like(q)
            step = max(1, _AT_A_TIME // max(q.size, 1))
            for begin in range(1, int(N), step):
                i = np.arange(begin, min(begin + step, int(N)))[:, None, None]
                chance, urn = q + (i - q) * r, 1 + (i - 1) * r
                gained += np.log(chance / urn).sum(axis=0)
                share += (1 / chance).sum(axis=0)
                turn += ((i - q) / chance - (i - 1) / urn).sum(axis=0)
            depends = r != 0
            of_product = ln_q_BC[:, at] + gained, 1 + q * (1 - r) * share, turn
            for terms, product in zip((ln_p, by_q, by_r), of_product, strict=True):
                terms[:, at] = np.where(depends, product, terms[:, at])
        return ln_p, ln_q_BC * by_q, by_r


def slopes(theta_BP: Floats, tally: PassCounts) -> Slopes:
    """Evaluates the likelihood and its derivatives."""
    r_BC = np.broadcast_to(theta_BP[:, -1:], tally.passed_BC.shape) if tally.r_BC is None else tally.r_BC
    design_CP = tally.design_CP
    mu_BC = theta_BP[:, : design_CP.shape[1]] @ design_CP.T
    ln_p, by_mu, by_r = ln_pass(mu_BC, r_BC, tally.N_C)
    p, q = np.exp(ln_p), -np.expm1(ln_p)
    failed_BC = tally.trials_BC - tally.passed_BC
    with np.errstate(
        divide="ignore", over="ignore", invalid="ignore"
    ):  # cells without sequences; steps that go too far
        ln_fail = np.where(p < 0.5, np.log1p(-p), np.log(q))  # each exact where the other rounds
        value_BC = np.where(tally.passed_BC > 0, tally.passed_BC * ln_p, 0.0)
        value_BC = value_BC + np.where(failed_BC > 0, failed_BC * ln_fail, 0.0)
        error_BC, weight_BC = (tally.passed_BC - tally.trials_BC * p) / q, tally.trials_BC * p / q
    by_theta = [by_mu[..., None] * design_CP, *([by_r[..., None]] if tally.r_BC is None else [])]
    return Slopes(value_BC.sum(axis=1), error_BC, weight_BC, np.concatenate(by_theta, axis=-1), by_mu)


def separated(tally: PassCounts) -> NDArray[np.bool_]:
    """Which counts have no maximum: sizes with a pass and sizes with a failure overlap in at most one size."""
    counts = tally.passed_BC > 0, tally.trials_BC > tally.passed_BC
    (first, last), (first_failed, last_failed) = (
        (np.where(has_BC, tally.x_C, np.inf).min(axis=1), np.where(has_BC, tally.x_C, -np.inf).max(axis=1))
        for has_BC in counts
    )
    return np.asarray((first >= last_failed) | (first_failed >= last) | np.isinf(first) | np.isinf(first_failed))


def maximise_likelihood(tally: PassCounts, start_BP: Floats) -> tuple[Floats, Floats]:
    """Maximises the likelihood by Fisher scoring, r kept within its limits; `separated` counts have no maximum.

    Returns the parameters, [B, P], NaN without a maximum, and the log-likelihood, [B].
    """
    theta_BP, value_B = np.full_like(start_BP, np.nan), np.full(len(start_BP), np.nan)
    of_B = np.flatnonzero(~separated(tally))

    def objective(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
        at = slopes(theta_PB.T, tally.of(of_B[sets]))
        information_PPB = np.moveaxis(at.information_BPP, 0, -1)
        rounding_B = _ROUNDING * np.abs(at.ln_likelihood_B)
        return LocalQuadratic(
            -at.ln_likelihood_B, -at.score_BP.T, information_PPB, diagonal(information_PPB), rounding_B
        )

    P = start_BP.shape[1]
    lower_P, upper_P = np.full(P, -np.inf), np.full(P, np.inf)
    if tally.r_BC is None:
        lower_P[-1], upper_P[-1] = 0.0, _LARGEST_R
    found = minimise(objective, start_BP[of_B].T, lower_P, upper_P, _END)
    ended_B = found.converged_B
    theta_BP[of_B[ended_B]], value_B[of_B[ended_B]] = found.theta_PB.T[ended_B], -found.value_B[ended_B]
    return theta_BP, value_B


def correlation(tokens: Floats, hits: Floats, pairs: Floats, hit_pairs: Floats, hits_of_pairs: Floats) -> Floats:
    """The mean correlation of two tokens of a sequence being hits, over ordered pairs; NaN where undefined.

    `hits_of_pairs` are pairs whose first token is a hit, `hit_pairs` those of two hits.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        q = hits / tokens
        return np.asarray((hit_pairs - 2 * q * hits_of_pairs + q**2 * pairs) / (pairs * q * (1 - q)))


@dataclass(frozen=True, eq=False)
class Scatter:
    """Sources of error of the parameters of one fit.

    Attributes:
        sequences_PP: covariance from the choice of the sequences or documents.
        apart_PP: the part of it that differs between sizes, which the scatter of the sizes also includes.
        spread_PP: covariance for models that scatter with variance 1 in ln(-ln RBP_k).
        variance: tau^2; None where dof is 0.
        ratio: observed squares of the sizes about the law, over those expected from the sequences.
    """

    sequences_PP: Floats
    apart_PP: Floats
    spread_PP: Floats
    variance: float | None
    ratio: float
    dof: int
    n_effective: float | None = None

    def half_width(self, gradient_P: Floats) -> float:
        """Half the 95 % interval of a linear function of the parameters."""
        sequences, apart, spread = (
            float(gradient_P @ known_PP @ gradient_P) for known_PP in (self.sequences_PP, self.apart_PP, self.spread_PP)
        )
        if self.variance is None:
            return half_width(sequences, n_effective=self.n_effective)
        scatter = math.sqrt(min(self.ratio, 1.0) * apart + self.variance * spread)
        shared = max(sequences - apart, 0.0)
        return half_width(shared, scatter, self.dof, own=math.sqrt(apart), n_effective=self.n_effective)


def model_scatter(
    x_C: Floats,
    at: Slopes,
    fisher_PP: Floats,
    replicates: tuple[Slopes, Floats] | None,
    n_effective: float | None = None,
) -> Scatter:
    """Estimates the noise of the sequences and the variance of the models about the law, by moments.

    `at` are slopes at the fitted law; `fisher_PP` is the inverse of Fisher's information, 0 for a parameter at its
    bound; `replicates` are slopes with the counts of each replicate, and the covariance of the fits to them.
    """
    _, size_C = np.unique(x_C, return_inverse=True)
    of_CM = np.eye(size_C.max() + 1)[size_C]
    by_mu_C, by_theta_CP, weight_C = at.by_mu_BC[0], at.by_theta_BCP[0], at.weight_BC[0]
    weight_M = (weight_C * by_mu_C**2) @ of_CM
    known_M = weight_M > 0
    cross_MP = of_CM.T @ ((weight_C * by_mu_C)[:, None] * by_theta_CP)
    moves_PM = fisher_PP @ cross_MP.T
    left_MM = np.diag(weight_M) - cross_MP @ moves_PM  # covariance of the sizes' scores about the law
    spread_PP, dof = moves_PM @ moves_PM.T, int(known_M.sum()) - 2
    sequences_PP = fisher_PP if replicates is None else few_documents(n_effective) * replicates[1]
    if dof < 1:
        return Scatter(sequences_PP, fisher_PP, spread_PP, None, 0.0, 0, n_effective)
    score_M = (at.error_BC[0] * by_mu_C) @ of_CM
    independent = expected = float((np.diag(left_MM)[known_M] / weight_M[known_M]).sum())
    if replicates is not None:
        change_BM = (replicates[0].error_BC * by_mu_C) @ of_CM - score_M - replicates[0].score_BP @ moves_PM
        squares = float((change_BM[:, known_M] ** 2 / weight_M[known_M]).sum(axis=1).mean())
        expected = few_documents(n_effective) * squares
    observed = float((score_M[known_M] ** 2 / weight_M[known_M]).sum())
    by_models = float((left_MM[:, known_M] ** 2 / weight_M[known_M]).sum())
    apart_PP = fisher_PP * (expected / independent)
    variance = max((observed - expected) / by_models, 0.0)
    ratio = observed / expected if expected > 0 else 1.0  # identical documents have no scatter
    return Scatter(sequences_PP, apart_PP, spread_PP, variance, ratio, dof, n_effective)
