"""Fits laws of several series, y = E + C_f x^(-alpha_f), with E shared or one each.

Shapes: F series, M points of all of them, P parameters: ln C at the reference of each series, exponents, offsets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.intervals.estimate import Replicates
from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, Sets, StoppingRule, minimise, squares

_SHARES_OF_OFFSET: Final = (0.0, 0.3, 0.6, 0.9)  # of the smallest y, where the search for an offset starts
_END: Final = StoppingRule(step=1e-10, most_steps=1000)


@dataclass(frozen=True, eq=False)
class SeriesPoints:
    """Points of the series, one after the other.

    Attributes:
        x_M: ln(S / S_ref).
        change_BM: change of ln y under bootstrap replicates of the same documents for all series.
    """

    x_M: Floats
    ln_S_ref: float
    ln_y_M: Floats
    family_M: NDArray[np.intp]
    change_BM: Floats | None
    n_effective: float | None


def stack(
    S_F: Sequence[ArrayLike],
    y_F: Sequence[ArrayLike],
    y_replicates_F: Sequence[ArrayLike | None] = (),
    n_effective: float | None = None,
) -> SeriesPoints:
    """Concatenates series; replicates, [B, N_f], are used where all have them."""
    ln_S_M, ln_y_M = (np.log(np.concatenate([np.asarray(each, np.float64) for each in of])) for of in (S_F, y_F))
    family_M, ln_S_ref, change_BM = np.repeat(np.arange(len(S_F)), list(map(np.size, S_F))), float(ln_S_M.mean()), None
    known = [np.asarray(y, np.float64) for y in y_replicates_F if y is not None]
    if len(known) == len(S_F) and len(set(map(len, known))) == 1:
        replicates = Replicates.of(np.concatenate(known, axis=1), n_effective)
        change_BM = replicates.ln_y_BN - ln_y_M if replicates.suffices else None
    return SeriesPoints(ln_S_M - ln_S_ref, ln_S_ref, ln_y_M, family_M, change_BM, n_effective)


@dataclass(frozen=True, eq=False)
class SeriesLaw:
    """A law of several series.

    Attributes:
        n_E: number of offsets: none, 1, or one for each series.
        E: the fixed offset of all series, where none is a parameter.
    """

    points: SeriesPoints
    theta_P: Floats
    n_E: int = 0
    E: float = 0.0

    def places(self, of: Any) -> tuple[Any, Any, Any]:
        """Indices in theta of ln C, alpha and E of one or many series."""
        n = int(self.points.family_M.max()) + 1
        return of, n + of, 2 * n + of * (self.n_E > 1)

    def constants(self, of: Any) -> tuple[Any, Any, Any]:
        """Ln C at the reference, alpha and E of one or many series."""
        ln_C, alpha, E = self.places(of)
        return self.theta_P[ln_C], self.theta_P[alpha], self.theta_P[E] if self.n_E else self.E

    @property
    def ln_law_M(self) -> Floats:
        """Fitted ln y."""
        ln_C_M, alpha_M, E_M = self.constants(self.points.family_M)
        with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
            return np.asarray(np.logaddexp(ln_C_M - alpha_M * self.points.x_M, np.log(E_M)))

    @property
    def residual_M(self) -> Floats:
        """Measured minus fitted ln y."""
        return self.points.ln_y_M - self.ln_law_M

    @property
    def squares(self) -> float:
        """Sum of the squared residuals."""
        return float(self.residual_M @ self.residual_M)

    @property
    def jacobian_MP(self) -> Floats:
        """Derivatives of ln y; those by E also at E = 0, whose bound leaves it uncertain upwards."""
        ln_C_M, alpha_M, _ = self.constants(self.points.family_M)
        x_M, ln_law_M = self.points.x_M, self.ln_law_M
        share_M = np.exp(ln_C_M - alpha_M * x_M - ln_law_M)
        J_MP = np.zeros((len(x_M), len(self.theta_P)))
        columns = (share_M, -x_M * share_M, np.exp(-ln_law_M))[: 3 if self.n_E else 2]
        for at, column_M in zip(self.places(self.points.family_M), columns, strict=False):
            J_MP[np.arange(len(x_M)), at] = column_M
        return J_MP


def fit_series(points: SeriesPoints, n_E: int = 0, E: float = 0.0) -> SeriesLaw:
    """Fits the law by least squares of ln y with E from 0 to the smallest y, the best of several searches."""
    line = _through(points, n_E, E)
    if not n_E and E == 0:
        return line
    smallest = float(np.exp(points.ln_y_M.min()))
    starts = [_through(points, n_E, share * smallest) for share in _SHARES_OF_OFFSET[: None if n_E else 0]]
    start_PB = np.array([each.theta_P for each in starts or [line]]).T
    lower_P = np.array([-np.inf] * (len(start_PB) - n_E) + [0.0] * n_E)
    upper_P = np.full(len(start_PB), np.inf)
    of_each = [points.family_M == f for f in range(n_E)] if n_E > 1 else [np.s_[:]]
    upper_P[len(start_PB) - n_E :] = [np.exp(points.ln_y_M[of].min()) for of in of_each][:n_E]

    def objective(theta_PB: Floats, _: Sets) -> LocalQuadratic:
        laws = [replace(line, theta_P=theta_P) for theta_P in theta_PB.T]
        residual_MB = np.stack([-law.residual_M for law in laws], axis=-1)
        return squares(residual_MB, np.stack([law.jacobian_MP.T for law in laws], axis=-1))

    found = minimise(objective, start_PB, lower_P, upper_P, _END)
    return replace(line, theta_P=found.theta_PB[:, found.best])


def _through(points: SeriesPoints, n_E: int, E: float) -> SeriesLaw:
    of_family, x_M1 = np.eye(points.family_M.max() + 1)[points.family_M], points.x_M[:, None]
    theta_P = np.linalg.lstsq(np.hstack([of_family, -x_M1 * of_family]), np.log(np.exp(points.ln_y_M) - E))[0]
    return SeriesLaw(points, np.append(theta_P, [E] * n_E), n_E, E)
