"""The forms that a law may have, on a grid: what each makes of the sizes, and of another size, before any y is seen.

    power    y = C S^-alpha
    offset   y = E + C S^-alpha, E on a grid from 0 to the smallest y
    bend     y = C S^-alpha with another exponent above one of three sizes (from 5 sizes on)

each with scatter of the models that is independent, or correlated between neighbouring sizes. The grid and its prior
weights were chosen by coverage and width (docs/explanation/uncertainty.md).

Models of one size that were trained more than once (equal S) have what is correlated in common, and the rest of their
scatter is their own: how large a share is common is averaged over too, since replicates say it.

Shapes: N models, T other sizes, G components (a form with its E or bend, and a correlation), R correlations.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.arrays import Floats

_MIN_SIZES_TO_BEND: Final = 5
_OFFSETS: Final = np.linspace(0, 0.98, 22)[1:]  # of the smallest y
_RATIOS: Final = {0.25: 1, 0.35: 2, 0.5: 4, 0.65: 4, 0.8: 4, 1.25: 4, 1.5: 3, 1.8: 2, 2.2: 1}  # of the exponents above
# a bend and below it: prior weight, in proportion
_BENDS: Final = (0.25, 0.5, 0.75)  # quantiles of ln S
_ROUNDING: Final = 0.5  # of ln S, the width of a bend
_HALF_DECADE: Final = 0.5 * math.log(10)
_CORRELATIONS: Final = {0.0: 0.4, 0.5: 0.3, 0.8: 0.3}  # of two models half a decade apart: prior weight
_COMMON: Final = (0.5, 0.8, 0.95, 0.99)  # share of the variance of replicates that they have in common, equally likely


class Shape(StrEnum):
    """The forms that are averaged."""

    power = "power"
    offset = "offset"
    bend = "bend"


_PRIOR: Final = {Shape.power: 0.25, Shape.offset: 0.45, Shape.bend: 0.3}


@dataclass(frozen=True, eq=False)
class Onward:
    """What the components say of other sizes, without the data.

    Attributes:
        u_TG: ln S of each, bent and centred as that of the sizes.
        carry_TGN: how residuals are carried over by the correlation.
        rest_TG: the variance of a new model that the correlation leaves.
    """

    u_TG: Floats
    carry_TGN: Floats
    rest_TG: Floats


@dataclass(frozen=True, eq=False)
class FormGrid:
    """The components at N models.

    Attributes:
        x_N: ln S.
        scatters: rho and the common share of each correlation.
        shape_G: the form of each.
        offset_G: E over the smallest y.
        prior_G: prior weight.
        bend_G: ln S of the bend.
        ratio_G: the exponent above it over the one below; 1 without a bend.
        middle_G: what ln S, bent, was centred by.
        u_GN: ln S, bent and centred.
        rho_G: correlation of two models half a decade apart.
        whiten_GNN: L of R^-1 = L L', with R the correlation of the scatter.
        ln_det_G: ln |R|.
    """

    x_N: Floats
    scatters: tuple[tuple[float, float], ...]
    shape_G: NDArray[np.str_]
    offset_G: Floats
    prior_G: Floats
    bend_G: Floats
    ratio_G: Floats
    middle_G: Floats
    u_GN: Floats
    rho_G: Floats
    whiten_GNN: Floats
    ln_det_G: Floats

    def onward(self, x_T: Floats) -> Onward:
        """To other sizes, given by ln S, shape [T]."""
        u_TG = _bent(x_T[:, None], self.bend_G, self.ratio_G) - self.middle_G
        # A new model of a size that was measured shares no more with that one than a neighbour half a decade away, or
        # than replicates do.
        R_RTN = np.array(
            [np.minimum(common * _correlation(x_T, self.x_N, rho), _most(rho, common)) for rho, common in self.scatters]
        )
        carry_RTN = R_RTN @ np.array([np.linalg.inv(_scatter(self.x_N, *each)) for each in self.scatters])
        rest_RT = 1 - (carry_RTN * R_RTN).sum(axis=2)
        n_forms = len(self.rho_G) // len(self.scatters)
        carry_TGN = np.repeat(carry_RTN, n_forms, axis=0).swapaxes(0, 1)
        return Onward(u_TG, carry_TGN, np.repeat(rest_RT, n_forms, axis=0).T)


@lru_cache(maxsize=128)
def form_grid(ln_S: tuple[float, ...]) -> FormGrid:
    """The components at some sizes.

    Args:
        ln_S: logarithms of the sizes, increasing, at least 3 different ones; equal ones are replicates.
    """
    x_N = np.array(ln_S)
    different = np.unique(x_N)
    forms: list[tuple[Shape, float, float, float, float]] = [(Shape.power, _PRIOR[Shape.power], 0.0, 0.0, 1.0)]
    forms += [(Shape.offset, _PRIOR[Shape.offset] / len(_OFFSETS), share, 0.0, 1.0) for share in _OFFSETS.tolist()]
    if len(different) >= _MIN_SIZES_TO_BEND:
        one = _PRIOR[Shape.bend] / len(_BENDS) / sum(_RATIOS.values())
        for at in np.quantile(different, _BENDS).tolist():
            forms += [(Shape.bend, one * weight, 0.0, at, ratio) for ratio, weight in _RATIOS.items()]
    prior_F, offset_F, bend_F, ratio_F = np.array([form[1:] for form in forms]).T
    u_FN = _bent(x_N, bend_F[:, None], ratio_F[:, None])
    middle_F = u_FN.mean(axis=1)
    weights = _scatters(replicated=len(different) < len(x_N))
    R_RNN = np.array([_scatter(x_N, *each) for each in weights])
    whiten_RNN, ln_det_R = np.linalg.cholesky(np.linalg.inv(R_RNN)), np.linalg.slogdet(R_RNN)[1]

    def of_form(column_F: Floats) -> Floats:
        return np.concatenate([column_F] * len(weights))

    def of_correlation(column_R: Floats) -> Floats:
        return np.repeat(column_R, len(forms), axis=0)

    return FormGrid(
        x_N=x_N,
        scatters=tuple(weights),
        shape_G=np.array([form[0] for form in forms] * len(weights)),
        offset_G=of_form(offset_F),
        prior_G=of_form(prior_F) * of_correlation(np.array(list(weights.values()))),
        bend_G=of_form(bend_F),
        ratio_G=of_form(ratio_F),
        middle_G=of_form(middle_F),
        u_GN=of_form(u_FN - middle_F[:, None]),
        rho_G=of_correlation(np.array([rho for rho, _ in weights])),
        whiten_GNN=of_correlation(whiten_RNN),
        ln_det_G=of_correlation(ln_det_R),
    )


def _scatters(replicated: bool) -> dict[tuple[float, float], float]:
    """Correlation, common share, and prior weight; without replicates nothing says that not all is common."""
    if not replicated:
        return {(rho, 1.0): weight for rho, weight in _CORRELATIONS.items()}
    return {
        (rho, common): weight / (len(_COMMON) if rho else 1)
        for rho, weight in _CORRELATIONS.items()
        for common in (_COMMON if rho else (1.0,))
    }


def _scatter(x_N: Floats, rho: float, common: float) -> Floats:
    """Correlation of the scatter of models: `common` rho^(half decades apart) of different ones; positive definite."""
    R_NN = common * _correlation(x_N, x_N, rho)
    np.fill_diagonal(R_NN, 1.0)
    return R_NN


def _most(rho: float, common: float) -> float:
    return rho if common == 1.0 else common


def _bent(x: Floats, bend: Floats, ratio: Floats) -> Floats:
    """Ln S, growing `ratio` times as fast above a bend."""
    return np.asarray(x + (ratio - 1) * _ROUNDING * np.logaddexp(0.0, (x - bend) / _ROUNDING))


def _correlation(x_T: Floats, x_N: Floats, rho: float) -> Floats:
    """Correlation rho^(half decades apart) of what models have in common, none for rho = 0; shape [T, N]."""
    apart_TN = np.abs(x_T[:, None] - x_N) / _HALF_DECADE
    return np.asarray(rho**apart_TN) if rho else np.zeros_like(apart_TN)
