"""Values under resampled documents, with the mean and covariance of their logarithms: all that linear laws need.

Shapes: N sizes, B resamples, K linear combinations of ln y.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.bootstrap import MIN_RESAMPLES
from rbpx.laws.intervals.estimate import few_documents
from rbpx.laws.numeric.arrays import Floats


@dataclass(frozen=True, eq=False)
class Resampled:
    """A positive quantity at N sizes under resampled documents, the same ones for every size.

    Attributes:
        y_BN: all values.
        ln_y_BN: logarithms of the resamples whose values are all positive and finite, as far from their mean as other
            documents would be: sqrt(D / (D - 1)) times as far as resamples of D documents are.
        mean_N: of these.
        covariance_NN: of these, the sum of squares over their number less 1.
        n_documents: D; None where they are not counted.
    """

    y_BN: Floats
    ln_y_BN: Floats
    mean_N: Floats
    covariance_NN: Floats
    n_documents: int | None = None

    @classmethod
    def of(cls, y: ArrayLike, n_documents: int | None = None) -> "Resampled":
        """Of values [B, N]; resamples with one that is not positive and finite are left out."""
        y_BN = np.asarray(y, dtype=np.float64)
        if y_BN.size and y_BN.min() > 0 and y_BN.max() < math.inf:  # quicker than by rows, and nearly always so
            return cls._of_logarithms(y_BN, np.log(y_BN), n_documents)
        return cls._of_logarithms(y_BN, np.log(y_BN[np.all((y_BN > 0) & np.isfinite(y_BN), axis=1)]), n_documents)

    @classmethod
    def of_logarithms(cls, ln_y: ArrayLike, n_documents: int | None = None) -> "Resampled":
        """Of ln y, [B, N]; resamples with one that is not finite are left out."""
        ln_y_BN = np.asarray(ln_y, dtype=np.float64)
        return cls._of_logarithms(np.exp(ln_y_BN), ln_y_BN[np.isfinite(ln_y_BN).all(axis=1)], n_documents)

    @classmethod
    def _of_logarithms(cls, y_BN: Floats, ln_y_BN: Floats, n_documents: int | None) -> "Resampled":
        if len(ln_y_BN) == 0:
            nothing_N = np.full(y_BN.shape[1], math.nan)
            return cls(y_BN, ln_y_BN, nothing_N, np.full((len(nothing_N),) * 2, math.nan), n_documents)
        mean_N = ln_y_BN.mean(axis=0)
        about_BN = ln_y_BN - mean_N
        if n_documents is not None:
            about_BN *= math.sqrt(few_documents(n_documents))
            ln_y_BN = mean_N + about_BN
        return cls(y_BN, ln_y_BN, mean_N, about_BN.T @ about_BN / max(len(about_BN) - 1, 1), n_documents)

    @property
    def n_left_out(self) -> int:
        """Number of resamples with a value that is not positive and finite."""
        return len(self.y_BN) - len(self.ln_y_BN)

    @property
    def suffices(self) -> bool:
        """Whether enough resamples are left for an interval."""
        return len(self.ln_y_BN) >= MIN_RESAMPLES

    def smallest(self, m: int) -> "Resampled":
        """The same at the first m sizes."""
        if self.n_left_out:  # one that is unusable may be so at a larger size
            return Resampled.of(self.y_BN[:, :m], self.n_documents)
        of_m = self.y_BN[:, :m], self.ln_y_BN[:, :m], self.mean_N[:m], self.covariance_NN[:m, :m]
        return Resampled(*of_m, self.n_documents)

    def covariance_of(self, of_KN: Floats) -> Floats:
        """Covariance over the resamples of linear combinations of ln y, [K, K]."""
        return np.asarray(of_KN @ self.covariance_NN @ of_KN.T)

    def mean_squares_of(self, of_KN: Floats) -> Floats:
        """Mean square over the resamples of each linear combination about its mean, [K]."""
        n = len(self.ln_y_BN)
        squares_K = np.einsum("kn,nm,km->k", of_KN, self.covariance_NN, of_KN) * ((n - 1) / n)
        return np.asarray(np.maximum(squares_K, 0.0))  # rounding of what is exactly 0 may be below it
