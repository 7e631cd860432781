"""Scatter of the models about a law that is fitted to counts: its variance, and what it adds to an interval.

mu_m = law(S_m) + u_m, u_m with variance tau^2 over models. Method of moments, as in a meta-regression: the scores of
the sizes vary more than their sequences alone let them, and tau^2 accounts for the excess; 0 where there is none.

Shapes: M sizes, C cells, P parameters, B resamples. Source: DerSimonian and Laird, Controlled Clinical Trials 7 (1986),
177; Student's t for few studies, Knapp and Hartung, Statistics in Medicine 22 (2003), 2693.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbpx.laws.counts.passing import Slopes
from rbpx.laws.intervals.estimate import Z, document_t, few_documents, half_width, student_t
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.power.uncertainty import as_plain


@dataclass(frozen=True, eq=False)
class Scatter:
    """Sources of error of the parameters of one fit.

    Attributes:
        sequences_PP: covariance from the choice of the sequences or documents.
        apart_PP: the part of it that differs between sizes, which the scatter of the sizes also includes.
        spread_PP: covariance for models that scatter about the law with variance 1 in ln(-ln RBP_k).
        variance: tau^2; None where there are no more sizes than the law has to itself.
        ratio: squares of the sizes about the law, over what the sequences let one expect.
        dof: number of sizes minus 2.
        n_documents: that were resampled; None for independent sequences, or where documents are not counted.
    """

    sequences_PP: Floats
    apart_PP: Floats
    spread_PP: Floats
    variance: float | None
    ratio: float
    dof: int
    n_documents: int | None = None

    def half_width(self, gradient_P: Floats) -> float:
        """Half of the 95 % interval over sequences (or documents) and models of a function of the parameters."""
        sequences, apart, spread = (
            float(gradient_P @ known_PP @ gradient_P) for known_PP in (self.sequences_PP, self.apart_PP, self.spread_PP)
        )
        if self.variance is None:
            return half_width(sequences, n_documents=self.n_documents)
        scatter = math.sqrt(min(self.ratio, 1.0) * apart + self.variance * spread)
        shared = max(sequences - apart, 0.0)
        return half_width(shared, scatter, self.dof, own=math.sqrt(apart), n_documents=self.n_documents)

    def variance_of(self, gradient_P: Floats) -> float:
        """Variance over sequences (or documents) and models of a function of the parameters."""
        models = 0.0 if self.variance is None else self.variance * float(gradient_P @ self.spread_PP @ gradient_P)
        return float(gradient_P @ self.sequences_PP @ gradient_P) + models

    def region_PP(self) -> Floats:
        """The matrix whose quadratic form in a gradient is the squared `half_width` or a little more, for Fieller."""
        t_D = document_t(self.n_documents)
        if self.variance is None:
            return t_D**2 * self.sequences_PP
        t = student_t(self.dof)
        values, vectors = np.linalg.eigh(self.sequences_PP - self.apart_PP)
        shared_PP = (vectors * np.maximum(values, 0.0)) @ vectors.T
        of_apart = max(t**2 * min(self.ratio, 1.0), Z**2)
        return np.asarray(of_apart * self.apart_PP + t**2 * self.variance * self.spread_PP + t_D**2 * shared_PP)

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return as_plain(self)


def model_scatter(
    x_C: Floats,
    at: Slopes,
    fisher_PP: Floats,
    resampled: tuple[Slopes, Floats] | None,
    n_documents: int | None = None,
) -> Scatter:
    """Noise of the sequences and variance of the models about the law, by moments.

    Args:
        x_C: which size each cell is of.
        at: slopes at the fitted law, one set of counts.
        fisher_PP: inverse of Fisher's information, 0 for a parameter at its bound.
        resampled: slopes at the same law with the counts of resampled documents, and the covariance of the refits to
            them; None if sequences are independent.
        n_documents: that were resampled; None where they are not counted.
    """
    _, size_C = np.unique(x_C, return_inverse=True)
    of_CM = np.eye(size_C.max() + 1)[size_C]
    by_mu_C, by_theta_CP, weight_C = at.by_mu_BC[0], at.by_theta_BCP[0], at.weight_BC[0]
    weight_M = (weight_C * by_mu_C**2) @ of_CM
    known_M = weight_M > 0
    cross_MP = of_CM.T @ ((weight_C * by_mu_C)[:, None] * by_theta_CP)
    moves_PM = fisher_PP @ cross_MP.T
    left_MM = np.diag(weight_M) - cross_MP @ moves_PM  # covariance of the scores that the law leaves to the sizes
    spread_PP, dof = moves_PM @ moves_PM.T, int(known_M.sum()) - 2
    sequences_PP = fisher_PP if resampled is None else few_documents(n_documents) * resampled[1]
    if dof < 1:
        return Scatter(sequences_PP, fisher_PP, spread_PP, None, 0.0, 0, n_documents)
    score_M = (at.error_BC[0] * by_mu_C) @ of_CM
    independent = expected = float((np.diag(left_MM)[known_M] / weight_M[known_M]).sum())
    if resampled is not None:
        change_BM = (resampled[0].error_BC * by_mu_C) @ of_CM - score_M - resampled[0].score_BP @ moves_PM
        squares = float((change_BM[:, known_M] ** 2 / weight_M[known_M]).sum(axis=1).mean())
        expected = few_documents(n_documents) * squares
    observed = float((score_M[known_M] ** 2 / weight_M[known_M]).sum())
    by_models = float((left_MM[:, known_M] ** 2 / weight_M[known_M]).sum())
    apart_PP = fisher_PP * (expected / independent)
    variance = max((observed - expected) / by_models, 0.0)
    ratio = observed / expected if expected > 0 else 1.0  # documents that are all alike scatter nothing
    return Scatter(sequences_PP, apart_PP, spread_PP, variance, ratio, dof, n_documents)
