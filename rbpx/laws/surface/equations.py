"""Equations for y(S, D): constants, ln y with its derivatives at many sets of them, and starts of a search.

A search moves theta, numbers of the order of 1: the constants at the reference point of the coordinates, with y in
units of its geometric mean. For fixed exponents y is linear in the constants, so the best of them need no search
(`non_negative`).

A form has

    names                   constants, as their source prints them
    logarithmic, saturating those whose interval is symmetric in the logarithm, or in 1 / (1 + R)
    exponents               those of S and D
    lower_P, upper_P        bounds of theta; an exponent beyond `STEEPEST` is a step between two sizes
    upper_PB                upper bounds by the least ln y of each search
    y_ref                   unit of y in theta
    evaluate                ln(y / y_ref) at each point, [B, N], and its derivatives by theta, [B, P, N]
    curvature               sum over points of pull times the second derivatives of ln y, [B, P, P]
    starts                  starts of a search, [B, P]; where there are hundreds, the most promising first
    prior_sd                prior standard deviation of theta about the optimum, [P]: 1 for logarithms, .3 for exponents
    constants               each constant in the units of its source, [B]; not finite where it has no value
    reference               for fixed constants: ln S_ref or ln D_ref at which one is a number of theta
    fixed_numbers           those numbers of theta
    unidentified            names of constants on which no point depends

Shapes: B sets of constants or of exponents, N points, P numbers of theta, T terms.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit, xlogy

from rbpx.laws.numeric import Floats
from rbpx.laws.surface.runs import Coordinates

STEEPEST: Final = 4.0  # of an exponent

_STEP: Final = 1e-6  # for differences, whose error only slows a search


def non_negative(terms_BTN: Floats, y_N: Floats) -> Floats:
    """Coefficients >= 0, [B, T], of the sum of terms with the least squared relative error."""
    return np.array([nnls((terms_TN / y_N).T, np.ones(len(y_N)))[0] for terms_TN in terms_BTN])


def curvature_by_differences(
    form: "SurfaceForm", x: Coordinates, theta_BP: Floats, J_BPN: Floats, pull_BN: Floats
) -> Floats:
    """The curvature of a form without a closed one, by differences of J."""
    P = theta_BP.shape[1]
    bend_BPP = np.empty((len(theta_BP), P, P))
    g_BP = (J_BPN @ pull_BN[..., None])[..., 0]
    for p in range(P):
        step_BP = np.zeros_like(theta_BP)
        step_BP[:, p] = np.where(theta_BP[:, p] + _STEP > form.upper_P[p], -_STEP, _STEP)
        moved_BP = (form.evaluate(x, theta_BP + step_BP)[1] @ pull_BN[..., None])[..., 0]
        bend_BPP[:, p] = (moved_BP - g_BP) / step_BP[:, p, None]
    return (bend_BPP + bend_BPP.swapaxes(1, 2)) / 2


_EXPONENTS: Final = (0.03, 0.1, 0.2, 0.35, 0.55, 0.9, 1.5)


_OF_EXPONENT: Final = 0.3  # prior standard deviation
_LEAST_TERM: Final = 0.02  # of y, for a term at 0
_LEAST_E: Final = 0.1  # of y


@dataclass(frozen=True)
class Chinchilla:
    """The sum of a term in size, a term in tokens, and an irreducible loss.

    theta is A S_ref^-alpha / y_ref, B D_ref^-beta / y_ref, E / y_ref, alpha, beta.
    """

    y_ref: float

    name = "chinchilla"
    equation = "y = E + A S^−α + B D^−β"
    source = "arXiv 2203.15556, eq. 10"
    names: ClassVar[tuple[str, ...]] = ("A", "B", "E", "alpha", "beta")
    exponents = ("alpha", "beta")
    logarithmic = ("A", "B")
    saturating: ClassVar[tuple[str, ...]] = ()
    lower_P: ClassVar[Floats] = np.zeros(5)
    upper_P: ClassVar[Floats] = np.array([np.inf, np.inf, np.inf, STEEPEST, STEEPEST])

    def evaluate(self, x: Coordinates, theta_BP: Floats) -> tuple[Floats, Floats]:
        """Ln y and its derivatives."""
        of_s_BN, of_d_BN = np.exp(-theta_BP[:, 3:4] * x.s_N), np.exp(-theta_BP[:, 4:5] * x.d_N)
        law_BN = theta_BP[:, :1] * of_s_BN + theta_BP[:, 1:2] * of_d_BN + theta_BP[:, 2:3]
        J_BPN = np.empty((len(theta_BP), 5, x.s_N.shape[-1]))
        np.divide(of_s_BN, law_BN, out=J_BPN[:, 0])
        np.divide(of_d_BN, law_BN, out=J_BPN[:, 1])
        np.divide(1.0, law_BN, out=J_BPN[:, 2])
        J_BPN[:, 3] = J_BPN[:, 0] * -x.s_N * theta_BP[:, :1]
        J_BPN[:, 4] = J_BPN[:, 1] * -x.d_N * theta_BP[:, 1:2]
        return np.log(law_BN), J_BPN

    def upper_PB(self, ln_least_B: Floats) -> Floats:
        """E is at most the least y."""
        upper_PB = np.repeat(self.upper_P[:, None], len(ln_least_B), axis=1)
        upper_PB[2] = np.exp(ln_least_B)
        return upper_PB

    def curvature(self, x: Coordinates, theta_BP: Floats, J_BPN: Floats, pull_BN: Floats) -> Floats:
        """In closed form."""
        bend_BPP = -(J_BPN * pull_BN[:, None]) @ J_BPN.swapaxes(1, 2)
        for constant, exponent, along_N in ((0, 3, x.s_N), (1, 4, x.d_N)):
            pulled_BN = J_BPN[:, constant] * pull_BN * along_N
            mixed_B = pulled_BN.sum(axis=1)  # a matrix product would round depending on B
            bend_BPP[:, constant, exponent] -= mixed_B
            bend_BPP[:, exponent, constant] -= mixed_B
            bend_BPP[:, exponent, exponent] += theta_BP[:, constant] * (pulled_BN * along_N).sum(axis=1)
        return np.asarray(bend_BPP)

    def starts(self, x: Coordinates, ln_y_N: Floats) -> Floats:
        """The best constants for each pair of exponents."""
        alpha_B, beta_B = (each.ravel() for each in np.meshgrid(_EXPONENTS, _EXPONENTS))
        falling = [np.exp(-alpha_B[:, None] * x.s_N), np.exp(-beta_B[:, None] * x.d_N)]
        terms_BTN = np.stack([*falling, np.ones_like(falling[0])], axis=1)
        return np.column_stack([non_negative(terms_BTN, np.exp(ln_y_N)), alpha_B, beta_B])

    def prior_sd(self, theta_P: Floats) -> Floats:
        """Scales with A, B and E, which theta holds without logarithms."""
        scales = np.maximum(theta_P[:3], [_LEAST_TERM, _LEAST_TERM, _LEAST_E])
        return np.append(scales, np.full(len(theta_P) - 3, _OF_EXPONENT))

    def constants(self, x: Coordinates, theta_BP: Floats) -> dict[str, Floats]:
        """In the unit of y at S = 1 and D = 1."""
        A_B, B_B, E_B, alpha_B, beta_B = theta_BP.T
        with np.errstate(over="ignore", invalid="ignore"):
            A_B, B_B = A_B * np.exp(alpha_B * x.ln_S_ref), B_B * np.exp(beta_B * x.ln_D_ref)
            terms = (self.y_ref * each_B for each_B in (A_B, B_B, E_B))
            return dict(zip(Chinchilla.names, (*terms, alpha_B, beta_B), strict=True))

    def reference(self, given: Mapping[str, float]) -> dict[str, float]:
        """A is a term of y at S = 1, B at D = 1."""
        return {axis: 0.0 for name, axis in (("A", "S"), ("B", "D")) if name in given}

    def fixed_numbers(self, given: Mapping[str, float]) -> dict[str, float]:
        """In units of y_ref."""
        return {name: at / self.y_ref if name in ("A", "B", "E") else at for name, at in given.items()}

    def unidentified(self, x: Coordinates, theta_P: Floats) -> tuple[str, ...]:
        """The exponent of a term that is 0, and both constants of an axis with a single value, and then E."""
        terms = (("A", "alpha", theta_P[0], x.s_N), ("B", "beta", theta_P[1], x.d_N))
        alone = [name for *names, _, at_N in terms if np.ptp(at_N) == 0 for name in names]
        without_E = (*alone, "E") if alone else ()
        return (*without_E, *(name for _, name, constant, _ in terms if constant == 0 and name not in alone))


_ALPHAS_D: Final = (0.03, 0.07, 0.15, 0.3, 0.6)
_LEAST: Final = 1e-3  # of alpha_D; y is then the greater of two power laws to .1 %


@dataclass(frozen=True)
class Kaplan:
    """Two power laws, in size and in data, with a smooth transition and no irreducible loss.

    theta is alpha_N ln(N_c / S_ref) - ln y_ref, alpha_D ln(D_c / D_ref) - ln y_ref, alpha_N, alpha_D.
    """

    y_ref: float

    name = "kaplan"
    equation = "y = ((N_c / S)^(α_N / α_D) + D_c / D)^α_D"
    source = "arXiv 2001.08361, eq. 1.5"
    names = ("N_c", "D_c", "alpha_N", "alpha_D")
    exponents = ("alpha_N", "alpha_D")
    logarithmic = ("N_c", "D_c")
    saturating: ClassVar[tuple[str, ...]] = ()
    lower_P = np.array([-np.inf, -np.inf, 0.0, _LEAST])  # logarithms are unbounded
    upper_P = np.array([np.inf, np.inf, STEEPEST, STEEPEST])

    def evaluate(self, x: Coordinates, theta_BP: Floats) -> tuple[Floats, Floats]:
        """Ln y and its derivatives."""
        alpha_D_B1 = theta_BP[:, 3:]
        by_size_BN = theta_BP[:, :1] - theta_BP[:, 2:3] * x.s_N
        by_data_BN = theta_BP[:, 1:2] - alpha_D_B1 * x.d_N
        share_BN = expit((by_size_BN - by_data_BN) / alpha_D_B1)
        mixing_BN = -xlogy(share_BN, share_BN) - xlogy(1 - share_BN, 1 - share_BN)
        ln_y_BN = alpha_D_B1 * np.logaddexp(by_size_BN / alpha_D_B1, by_data_BN / alpha_D_B1)
        rest_BN = 1 - share_BN
        J_BPN = np.stack([share_BN, rest_BN, -x.s_N * share_BN, mixing_BN - x.d_N * rest_BN], axis=1)
        return ln_y_BN, J_BPN

    def starts(self, x: Coordinates, ln_y_N: Floats) -> Floats:
        """The best constants for each pair of exponents: y^(1 / alpha_D) is linear in two terms."""
        starts = []
        for alpha_D in _ALPHAS_D:
            root_N = np.exp(ln_y_N / alpha_D)
            of_s_BN = np.exp(-np.array(_ALPHAS_D)[:, None] / alpha_D * x.s_N)
            terms_BTN = np.stack([of_s_BN, np.broadcast_to(np.exp(-x.d_N), of_s_BN.shape)], axis=1)
            # A term that is 0 in least squares starts at a thousandth of y, where a search can change it.
            constant_BT = np.maximum(non_negative(terms_BTN, root_N), 1e-3)
            starts.append(
                [[*(alpha_D * np.log(both)), a, alpha_D] for both, a in zip(constant_BT, _ALPHAS_D, strict=True)]
            )
        return np.concatenate([np.array(each, dtype=np.float64) for each in starts])

    def prior_sd(self, theta_P: Floats) -> Floats:
        """Two logarithms and two exponents."""
        return np.array([1.0, 1.0, _OF_EXPONENT, _OF_EXPONENT])

    def constants(self, x: Coordinates, theta_BP: Floats) -> dict[str, Floats]:
        """N_c is in parameters, D_c in tokens."""
        size_B, data_B, alpha_N_B, alpha_D_B = theta_BP.T
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            N_c_B = np.exp((size_B + np.log(self.y_ref)) / alpha_N_B + x.ln_S_ref)
            D_c_B = np.exp((data_B + np.log(self.y_ref)) / alpha_D_B + x.ln_D_ref)
        return dict(zip(self.names, (N_c_B, D_c_B, alpha_N_B, alpha_D_B), strict=True))

    def reference(self, given: Mapping[str, float]) -> dict[str, float]:
        """The term in size is 1 at S = N_c, the term in data at D = D_c."""
        return {axis: math.log(given[name]) for name, axis in (("N_c", "S"), ("D_c", "D")) if name in given}

    def fixed_numbers(self, given: Mapping[str, float]) -> dict[str, float]:
        """N_c and D_c are the references."""
        return {name: -math.log(self.y_ref) if name in ("N_c", "D_c") else at for name, at in given.items()}

    def unidentified(self, x: Coordinates, theta_P: Floats) -> tuple[str, ...]:
        """N_c where y does not depend on S."""
        return ("N_c",) if theta_P[2] == 0 else ()

    def upper_PB(self, ln_least_B: Floats) -> Floats:
        """The same for all."""
        return self.upper_P[:, None]

    curvature = curvature_by_differences


SurfaceForm = Chinchilla | Kaplan


def constants_at_bounds(form: SurfaceForm, theta_P: Floats) -> tuple[str, ...]:
    """The names of the constants at their bounds."""
    at_P = (theta_P <= form.lower_P) | (theta_P >= form.upper_P)
    return tuple(name for name, at in zip(form.names, at_P, strict=True) if at)
