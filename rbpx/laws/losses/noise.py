"""Estimates the covariance of a model's errors in ln x and ln y: from seeds, from documents, or assumed.

Errors in variables need only its shape, the ratio of variances and the correlation; the points give the size.

Shapes: N models, B bootstrap replicates of the documents; the last axis of z has ln x and ln y.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats

_FEWEST: Final = 3  # degrees of freedom of a covariance that is estimated


class NoiseSource(StrEnum):
    """What a covariance was estimated from."""

    seeds = "seeds"
    documents = "documents"
    assumed = "assumed"


@dataclass(frozen=True, eq=False)
class Noise:
    """The covariance of the errors of ln x and ln y of a model, up to a factor."""

    C_22: Floats
    source: NoiseSource

    @property
    def correlation(self) -> float:
        """Of both errors; 0 where one of them is 0."""
        scale = float(np.sqrt(self.C_22[0, 0] * self.C_22[1, 1]))
        return float(self.C_22[0, 1]) / scale if scale > 0 else 0.0

    @property
    def ratio(self) -> float:
        """The standard deviation of ln x over that of ln y."""
        return float(np.sqrt(self.C_22[0, 0] / self.C_22[1, 1])) if self.C_22[1, 1] > 0 else np.inf


EQUAL: Final = Noise(np.eye(2), NoiseSource.assumed)
"""Equal relative errors of both, independent."""
NONE_IN_X: Final = Noise(np.diag([0.0, 1.0]), NoiseSource.assumed)
"""x is exact, as in a regression of y on x."""
NONE_IN_Y: Final = Noise(np.diag([1.0, 0.0]), NoiseSource.assumed)


def noise_of(z_N2: Floats, model_N: Sequence[object], z_BN2: Floats | None = None, is_same_text: bool = False) -> Noise:
    """Estimates it from seeds where at least three models were trained again, else from documents, else assumes it.

    Runs of one model, by `model_N`, differ in their seed. Errors on two texts, unlike on the same, are independent.
    """
    return _of_seeds(z_N2, model_N) or _of_documents(z_N2, z_BN2, is_same_text) or EQUAL


def _of_seeds(z_N2: Floats, model_N: Sequence[object]) -> Noise | None:
    _, of_N = np.unique([str(model) for model in model_N], return_inverse=True)
    n_N = np.bincount(of_N)
    dof = int((n_N - 1).sum())
    if dof < _FEWEST:
        return None
    mean_M2 = np.stack([np.bincount(of_N, column) for column in z_N2.T], axis=1) / n_N[:, None]
    about_N2 = z_N2 - mean_M2[of_N]
    return _where_both_vary(about_N2.T @ about_N2 / dof, NoiseSource.seeds)


def _of_documents(z_N2: Floats, z_BN2: Floats | None, is_same_text: bool) -> Noise | None:
    """Covariance due to documents that differs between models.

    A replicate that moves all models by a line in ln x moves the law, so that line is removed from each replicate.
    """
    n, dof = len(z_N2), len(z_N2) - 2
    if z_BN2 is None or dof < _FEWEST or np.ptp(z_N2[:, 0]) == 0:
        return None
    about_BN2 = z_BN2 - z_BN2.mean(axis=0)
    line_N2 = np.linalg.qr(np.column_stack([np.ones(n), z_N2[:, 0]]))[0]
    own_BN2 = about_BN2 - np.einsum("np,mp,bmc->bnc", line_N2, line_N2, about_BN2)
    C_22 = np.einsum("bnc,bnd->cd", own_BN2, own_BN2) / (len(z_BN2) * dof)
    if not is_same_text:
        C_22 = np.diag(np.diag(C_22))
    return _where_both_vary(C_22, NoiseSource.documents)


def _where_both_vary(C_22: Floats, source: NoiseSource) -> Noise | None:
    known = np.all(np.isfinite(C_22)) and C_22[0, 0] > 0 and C_22[1, 1] > 0
    return Noise(C_22, source) if known else None
