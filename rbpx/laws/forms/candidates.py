"""The forms that a law may have, on a grid, each fitted to series of values and weighed by how well it fits.

    power    y = C S^-alpha
    offset   y = E + C S^-alpha, E on a grid from 0 to the smallest y
    bend     y = C S^-alpha with another exponent above one of three sizes, or one that slowly becomes another towards
             the largest sizes (from 5 sizes on)

each with scatter of the models (`rbpx.laws.forms.scatters`) that is independent, or correlated between neighbouring
sizes, or departs from both.

For a given E, a given bend and a given correlation two parameters are left, and a new model has Student's t as
predictive distribution of ln y, with n - 2 degrees of freedom. The weight of each is
prior SSE^(-(n-2)/2) |R|^(-1/2) |J' R^-1 J|^-.25, with R the covariance of the scatter and J the derivatives of ln y.
The last exponent would be 1/2 if every exponent alpha were as likely beforehand, and 0 if every slope of ln y were. The
grid, the prior weights and that number were chosen by coverage and width (docs/explanation/uncertainty.md).

Constants may be given (`rbpx.laws.pins`): forms have that E; an exponent or a C is held, without bends.

Shapes: B series, N models, T other sizes, G components (a form with its E or bend, and a correlation), R correlations,
H held numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.forms.scatters import carried, correlations, scatter_of
from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.misfit import Covariance
from rbpx.laws.numeric import Floats
from rbpx.laws.pins import Given

_MIN_SIZES_TO_BEND: Final = 5
_OFFSETS: Final = np.linspace(0, 0.98, 22)[1:]  # of the smallest y
_RATIOS: Final = {0.25: 1, 0.35: 2, 0.5: 4, 0.65: 4, 0.8: 4, 1.25: 4, 1.5: 3, 1.8: 2, 2.2: 1}  # of the exponents above
# a bend and below it: prior weight, in proportion
_BENDS: Final = (0.25, 0.5, 0.75)  # quantiles of ln S
_ROUNDING: Final = 0.5  # of ln S, the width of a bend
_SLOW_RATIOS: Final = {0.35: 1, 0.5: 2, 0.7: 2, 1.4: 3, 1.8: 3, 2.5: 2, 3.5: 1}  # as above, of an exponent that becomes
# another slowly, about the last of these places
_SLOW: Final = 0.5  # of the prior weight of bends
_SLOWLY: Final = 0.25  # of the span of ln S, the width of such a bend
_FLATNESS: Final = 0.25  # exponent of 1 / |J' R^-1 J|
_STEPS: Final = 4  # of Gauss-Newton: each form has two parameters, and starts at its own weighted line
_SINGULAR: Final = 8 * float(np.finfo(np.float64).eps)  # of a determinant
_EXACT: Final = 1e-13  # relative to |ln y|: residuals below it are rounding, so the form is exact


_HOLD: Final = 1e8  # models that a held number counts for


@dataclass(frozen=True)
class Constants:
    """Given constants of the forms, one set of their values.

    Attributes:
        share: E over the smallest y; None where it is not given.
        alpha: None where it is not given.
        ln_C: at S = 1; None where it is not given.
        prior: of this set.
    """

    share: float | None = None
    alpha: float | None = None
    ln_C: float | None = None
    prior: float = 1.0

    @classmethod
    def of(cls, given: Given, smallest: float) -> "Constants":
        """Those of a set of values by name, for points of which the smallest is given."""
        E, C = given.values.get("E"), given.values.get("C")
        share, ln_C = None if E is None else E / smallest, None if C is None else math.log(C)
        return cls(share, given.values.get("alpha"), ln_C, given.prior)

    @property
    def n_held(self) -> int:
        """Numbers of a power law that are given."""
        return sum(each is not None for each in (self.alpha, self.ln_C))


class Shape(StrEnum):
    """The forms that are averaged."""

    power = "power"
    offset = "offset"
    bend = "bend"


_PRIOR: Final = {Shape.power: 0.35, Shape.offset: 0.35, Shape.bend: 0.3}


@dataclass(frozen=True, eq=False)
class Onward:
    """What the components say of other sizes, without the data.

    Attributes:
        u_TG: ln S of each, bent and centred as that of the sizes.
        carry_TGN: how residuals are carried over by the correlation.
        rest_TG: the variance of a new model that the points leave, over that of the scatter.
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
        departs: covariances of scatter that departs, which come after these.
        evidence: what the likelihood counts for.
        flatness: exponent of 1 / |J' R^-1 J|.
        shape_G: the form of each.
        offset_G: E over the smallest y.
        prior_G: prior weight.
        bend_G: ln S of the bend.
        ratio_G: the exponent above it over the one below; 1 without a bend.
        rounding_G: of ln S, the width of the bend.
        middle_G: what ln S, bent, was centred by.
        u_GN: ln S, bent and centred.
        rho_G: correlation of two models half a decade apart.
        whiten_GNN: L of R^-1 = L L', with R the covariance of the scatter.
        ln_det_G: ln |R|.
        held_GH2: what is held, as a combination of the two parameters.
        held_GH: its value.
    """

    x_N: Floats
    scatters: tuple[tuple[float, float], ...]
    departs: tuple[Covariance, ...]
    evidence: float
    flatness: float
    shape_G: NDArray[np.str_]
    offset_G: Floats
    prior_G: Floats
    bend_G: Floats
    ratio_G: Floats
    rounding_G: Floats
    middle_G: Floats
    u_GN: Floats
    rho_G: Floats
    whiten_GNN: Floats
    ln_det_G: Floats
    held_GH2: Floats
    held_GH: Floats

    @property
    def dof(self) -> int:
        """Degrees of freedom that the models leave."""
        return len(self.x_N) - 2 + int(self.held_GH.shape[1])

    def placed(self, x_T: Floats) -> Floats:
        """Ln S, bent and centred as that of the sizes, [T, G]."""
        return np.asarray(_bent(x_T[:, None], self.bend_G, self.ratio_G, self.rounding_G) - self.middle_G)

    @property
    def n_forms(self) -> int:
        """Components with one scatter."""
        return len(self.rho_G) // (len(self.scatters) + len(self.departs))

    def onward(self, x_T: Floats) -> Onward:
        """To other sizes, given by ln S, shape [T]."""
        u_TG = self.placed(x_T)
        carry_RTN, rest_RT = carried(x_T, self.x_N, self.scatters)
        carry_RTN = np.concatenate([carry_RTN, np.zeros((len(self.departs), *carry_RTN.shape[1:]))])
        rest_RT = np.concatenate([rest_RT, *(each.of_new(x_T, self.x_N)[None] for each in self.departs)])
        carry_TGN = np.repeat(carry_RTN, self.n_forms, axis=0).swapaxes(0, 1)
        return Onward(u_TG, carry_TGN, np.repeat(rest_RT, self.n_forms, axis=0).T)


_Form = tuple[Shape, float, float, float, float, float]  # with its prior, share of E, bend, ratio, width of the bend


@lru_cache(maxsize=128)
def form_grid(ln_S: tuple[float, ...], given: tuple[Constants, ...] = (Constants(),)) -> FormGrid:
    """The components at some sizes.

    Args:
        ln_S: logarithms of the sizes, increasing, at least 3 different ones; equal ones are replicates.
        given: sets of values of the constants that are given, the same ones in each.
    """
    x_N = np.array(ln_S)
    different = np.unique(x_N)
    bends = np.quantile(different, _BENDS).tolist() if len(different) >= _MIN_SIZES_TO_BEND else []
    slowly = _SLOWLY * (ln_S[-1] - ln_S[0])
    each = [_forms(of, [] if of.n_held else bends, slowly) for of in given]
    forms = [form for of_set in each for form in of_set]
    held_F = [of for of, of_set in zip(given, each, strict=True) for _ in of_set]
    prior_F, offset_F, bend_F, ratio_F, rounding_F = np.array([form[1:] for form in forms]).T
    u_FN = _bent(x_N, bend_F[:, None], ratio_F[:, None], rounding_F[:, None])
    middle_F = u_FN.mean(axis=1)
    weights = correlations(has_repeats=len(different) < len(x_N))
    R_RNN = np.array([scatter_of(x_N, *each) for each in weights])
    whiten_RNN, ln_det_R = np.linalg.cholesky(np.linalg.inv(R_RNN)), np.linalg.slogdet(R_RNN)[1]

    def of_form(column_F: Floats) -> Floats:
        return np.concatenate([column_F] * len(weights))

    def of_correlation(column_R: Floats) -> Floats:
        return np.repeat(column_R, len(forms), axis=0)

    return FormGrid(
        x_N=x_N,
        scatters=tuple(weights),
        departs=(),
        evidence=1.0,
        flatness=_FLATNESS,
        shape_G=np.array([form[0] for form in forms] * len(weights)),
        offset_G=of_form(offset_F),
        prior_G=of_form(prior_F) * of_correlation(np.array(list(weights.values()))),
        bend_G=of_form(bend_F),
        ratio_G=of_form(ratio_F),
        rounding_G=of_form(rounding_F),
        middle_G=of_form(middle_F),
        u_GN=of_form(u_FN - middle_F[:, None]),
        rho_G=of_correlation(np.array([rho for rho, _ in weights])),
        whiten_GNN=of_correlation(whiten_RNN),
        ln_det_G=of_correlation(ln_det_R),
        held_GH2=of_form(np.array([_held(of, at)[0] for of, at in zip(held_F, middle_F, strict=True)])),
        held_GH=of_form(np.array([_held(of, at)[1] for of, at in zip(held_F, middle_F, strict=True)])),
    )


def _forms(given: Constants, bends: Sequence[float], slowly: float) -> list[_Form]:
    """The forms with one set of given constants."""
    prior = {shape: given.prior * weight for shape, weight in _PRIOR.items()}
    share = given.share or 0.0
    if given.share is None:
        forms: list[_Form] = [(Shape.power, prior[Shape.power], 0.0, 0.0, 1.0, 1.0)]
        forms += [(Shape.offset, prior[Shape.offset] / len(_OFFSETS), at, 0.0, 1.0, 1.0) for at in _OFFSETS.tolist()]
    else:
        forms = [(Shape.offset, prior[Shape.power] + prior[Shape.offset], share, 0.0, 1.0, 1.0)]
    sudden = (1 - _SLOW) * prior[Shape.bend] / len(_BENDS)
    kinds = [(at, sudden, _RATIOS, _ROUNDING) for at in bends]
    kinds += [(at, _SLOW * prior[Shape.bend], _SLOW_RATIOS, slowly) for at in bends[-1:]]
    return forms + [
        (Shape.bend, weight * of_ratio / sum(ratios.values()), share, at, ratio, width)
        for at, weight, ratios, width in kinds
        for ratio, of_ratio in ratios.items()
    ]


def _held(given: Constants, middle: float) -> tuple[Floats, Floats]:
    """What is held of ln C at the middle of the sizes and alpha, [H, 2], and its values [H]."""
    rows = [] if given.alpha is None else [([0.0, 1.0], given.alpha)]
    rows += [] if given.ln_C is None else [([1.0, middle], given.ln_C)]
    return np.array([row for row, _ in rows]).reshape(-1, 2), np.array([value for _, value in rows])


def _bent(x: Floats, bend: Floats, ratio: Floats, rounding: Floats) -> Floats:
    """Ln S, growing `ratio` times as fast above a bend."""
    return np.asarray(x + (ratio - 1) * rounding * np.logaddexp(0.0, (x - bend) / rounding))


@dataclass(frozen=True, eq=False)
class FormFits:
    """The components, fitted.

    Attributes:
        grid: the components.
        E_BG: the offset of each.
        theta_BG2: ln C at the middle of the sizes, and alpha.
        residual_BGN: ln y less ln of the law.
        share_BGN: of the power law in the law, the derivative of ln y by ln C.
        A_BG22: J' R^-1 J.
        sigma2_BG: variance of a model about the law.
        weight_BG: of each component; they sum to 1.
    """

    grid: FormGrid
    E_BG: Floats
    theta_BG2: Floats
    residual_BGN: Floats
    share_BGN: Floats
    A_BG22: Floats
    sigma2_BG: Floats
    weight_BG: Floats

    def at(self, x_T: Floats) -> TMixture:
        """The predictive distribution of ln y of new models, [B, T] mixtures.

        Args:
            x_T: ln S of each.
        """
        onward = self.grid.onward(x_T)
        ln_power_BTG = self.theta_BG2[:, None, :, 0] - self.theta_BG2[:, None, :, 1] * onward.u_TG
        ln_law_BTG = _ln_sum(ln_power_BTG, self.E_BG[:, None])
        share_BTG = np.exp(ln_power_BTG - ln_law_BTG)

        def carried(column_BGN: Floats) -> Floats:
            return np.asarray(np.einsum("bgn,tgn->btg", column_BGN, onward.carry_TGN))

        of_first_BTG = share_BTG - carried(self.share_BGN)
        of_slope_BTG = -share_BTG * onward.u_TG + carried(self.share_BGN * self.grid.u_GN)
        spread_BTG = _spread(of_first_BTG, of_slope_BTG, self.A_BG22[:, None])
        scale_BTG = np.sqrt(self.sigma2_BG[:, None] * (onward.rest_TG + spread_BTG))
        weight_BTG = np.broadcast_to(self.weight_BG[:, None], scale_BTG.shape)
        centre_BTG = ln_law_BTG + carried(self.residual_BGN)
        return TMixture(centre_BTG, scale_BTG, weight_BTG, self.grid.dof)


def _spread(first_BTG: Floats, second_BTG: Floats, A_BTG22: Floats) -> Floats:
    """The form g' A^-1 g of g = (first, second) as a sum of squares: never negative, infinite where A leaves g open."""
    A_11, A_12, A_22 = A_BTG22[..., 0, 0], A_BTG22[..., 0, 1], A_BTG22[..., 1, 1]
    left_22 = A_22 - A_12**2 / A_11  # what is known of the second beside the first
    beside_BTG = second_BTG - first_BTG * A_12 / A_11
    undetermined = np.where(beside_BTG == 0, 0.0, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        return first_BTG**2 / A_11 + np.where(left_22 > 0, beside_BTG**2 / left_22, undetermined)


def fit_forms(grid: FormGrid, ln_y_BN: Floats) -> FormFits:
    """Fit every component of a grid to each series, by Gauss-Newton in ln y."""
    n = ln_y_BN.shape[1]
    ln_y_B1N = ln_y_BN[:, None]
    y_B1N = np.exp(ln_y_B1N)
    E_BG = grid.offset_G * y_B1N.min(axis=2)
    share_BGN = 1 - E_BG[:, :, None] / y_B1N
    start_BG2 = np.zeros((*E_BG.shape, 2))
    theta_BG2 = _solve(grid, share_BGN, share_BGN * np.log(y_B1N - E_BG[:, :, None]), start_BG2)[0]
    theta_BG2, law_BGN, share_BGN, sse_BG = _improve(grid, E_BG, ln_y_B1N, theta_BG2)
    A_BG22 = _solve(grid, share_BGN, law_BGN, theta_BG2)[1]

    rounding_B1 = n * (_EXACT * np.maximum(1.0, np.abs(ln_y_BN).max(axis=1, keepdims=True))) ** 2
    exact_BG = sse_BG <= rounding_B1
    with np.errstate(divide="ignore"):
        ln_likelihood_BG = -grid.dof / 2 * np.log(sse_BG) - grid.ln_det_G / 2
        ln_det_BG = np.where(_tells_both(A_BG22), np.linalg.slogdet(A_BG22)[1], np.inf)  # which then has no weight
    ln_weight_BG = np.log(grid.prior_G) + grid.evidence * ln_likelihood_BG - grid.flatness * ln_det_BG
    # Forms that pass through all points leave nothing to weigh: the first of them, the simplest, answers.
    simplest_BG = np.where(np.arange(exact_BG.shape[1]) == np.argmax(exact_BG, axis=1)[:, None], 0.0, -np.inf)
    ln_weight_BG = np.where(exact_BG.any(axis=1, keepdims=True), simplest_BG, ln_weight_BG)
    weight_BG = np.exp(ln_weight_BG - ln_weight_BG.max(axis=1, keepdims=True))
    weight_BG = weight_BG / weight_BG.sum(axis=1, keepdims=True)
    sigma2_BG = np.where(exact_BG, 0.0, sse_BG / grid.dof)
    return FormFits(grid, E_BG, theta_BG2, ln_y_B1N - law_BGN, share_BGN, A_BG22, sigma2_BG, weight_BG)


def _improve(grid: FormGrid, E_BG: Floats, ln_y_B1N: Floats, theta_BG2: Floats) -> tuple[Floats, ...]:
    """Gauss-Newton in ln y from the weighted line through ln(y - E), where a step that gains nothing is not taken.

    Returns:
        The parameters, ln of the law, the share of the power law in it, and the whitened sum of squares.
    """

    def at(theta_BG2: Floats) -> tuple[Floats, Floats, Floats]:
        ln_power_BGN = theta_BG2[..., :1] - theta_BG2[..., 1:] * grid.u_GN
        law_BGN = _ln_sum(ln_power_BGN, E_BG[..., None])
        white_BGN = np.einsum("bgn,gnm->bgm", ln_y_B1N - law_BGN, grid.whiten_GNN)
        return law_BGN, np.exp(ln_power_BGN - law_BGN), (white_BGN**2).sum(2)

    law_BGN, share_BGN, sse_BG = at(theta_BG2)
    for _ in range(_STEPS):
        new_theta_BG2 = theta_BG2 + _solve(grid, share_BGN, ln_y_B1N - law_BGN, theta_BG2)[0]
        new_law_BGN, new_share_BGN, new_sse_BG = at(new_theta_BG2)
        better_BG = new_sse_BG < sse_BG
        theta_BG2 = np.where(better_BG[..., None], new_theta_BG2, theta_BG2)
        law_BGN = np.where(better_BG[..., None], new_law_BGN, law_BGN)
        share_BGN = np.where(better_BG[..., None], new_share_BGN, share_BGN)
        sse_BG = np.where(better_BG, new_sse_BG, sse_BG)
    return theta_BG2, law_BGN, share_BGN, sse_BG


def _solve(grid: FormGrid, share_BGN: Floats, target_BGN: Floats, theta_BG2: Floats) -> tuple[Floats, Floats]:
    """Least squares of the target on (share, -share u), whitened, from some parameters on: the step, and J' R^-1 J."""
    J_BG2N = np.stack([share_BGN, -share_BGN * grid.u_GN], axis=2) @ grid.whiten_GNN
    white_BGN = np.einsum("bgn,gnm->bgm", target_BGN, grid.whiten_GNN)
    A_BG22, toward_BG21 = J_BG2N @ J_BG2N.swapaxes(2, 3), J_BG2N @ white_BGN[..., None]
    if grid.held_GH.size:
        left_BGH = grid.held_GH - np.einsum("ghp,bgp->bgh", grid.held_GH2, theta_BG2)
        A_BG22 = A_BG22 + _HOLD * grid.held_GH2.swapaxes(1, 2) @ grid.held_GH2
        toward_BG21 = toward_BG21 + _HOLD * np.einsum("ghp,bgh->bgp", grid.held_GH2, left_BGH)[..., None]
    told_BG11 = _tells_both(A_BG22)[..., None, None]
    coefficients_BG21 = np.linalg.solve(np.where(told_BG11, A_BG22, np.eye(2)), toward_BG21)
    return np.where(told_BG11, coefficients_BG21, 0.0)[..., 0], A_BG22


def _tells_both(A_BG22: Floats) -> NDArray[np.bool_]:
    """Whether the points tell both parameters of a component; not where its power law is but at one of the sizes."""
    A_11, A_12, A_22 = A_BG22[..., 0, 0], A_BG22[..., 0, 1], A_BG22[..., 1, 1]
    return np.asarray(A_11 * A_22 - A_12**2 > _SINGULAR * A_11 * A_22)


def _ln_sum(ln_power: Floats, E: Floats) -> Floats:
    """ln(E + exp(ln_power)), E >= 0."""
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
        return np.asarray(np.logaddexp(ln_power, np.log(E)))
