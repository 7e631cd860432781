"""The form y = E + A N'^-alpha + B D'^-beta: repeated tokens and excess parameters count less.

    D' = U + U R_D (1 - exp(-(D / U - 1) / R_D))               U = min(U, D)
    N' = U_N + U_N R_N (1 - exp(-(S / U_N - 1) / R_N))         U_N = min(S, (U G)^(beta / alpha) G)
    G  = (alpha A / (beta B))^(1 / (alpha + beta))

Excess parameters are those beyond U_N, the optimum for the unique tokens. theta is that of chinchilla, then 1 / (1 +
R_D) and 1 / (1 + R_N): at 0 a repeated token is worth a new one and N' = S, near 1 it is worth nothing and N' = U_N.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.numeric import Floats
from rbpx.laws.surface.equations import Chinchilla, curvature_by_differences
from rbpx.laws.surface.runs import Coordinates

_MOST_EXCESS: Final = 300.0  # of ln(S / U_N), whose square a search must not overflow
_LEAST_R: Final = 1e-4  # R = 0 has a kink at S = U_N; here N' is min(S, U_N) to 1e-4
_IMAGINARY: Final = 1e-30j  # so small that derivatives are exact
_EXPONENTS: Final = (0.1, 0.2, 0.35, 0.55, 0.9, 1.6, 4.0)
_CALLED: Final = (0.02, 0.25, 0.5, 0.75, 0.98)  # quantiles of S, for U_N
_SHARES: Final = (0.02, 0.1, 0.3, 0.6, 0.98)  # 1 / (1 + R)


@dataclass(frozen=True)
class DataConstrained(Chinchilla):
    """Chinchilla's form of the effective tokens and parameters."""

    name = "data_constrained"
    equation = "y = E + A N'^−α + B D'^−β"
    source = "arXiv 2305.16264, eqs. 5, 6 and 11"
    names: ClassVar[tuple[str, ...]] = (*Chinchilla.names, "R_D", "R_N")
    saturating = ("R_D", "R_N")
    lower_P = np.zeros(7)  # R_D and R_N may be infinite
    upper_P = np.append(Chinchilla.upper_P, np.full(2, 1 / (1 + _LEAST_R)))

    def evaluate(self, x: Coordinates, theta_BP: Floats) -> tuple[Floats, Floats]:
        """Ln y and its derivatives."""
        inner_BP, v_D_B1, v_N_B1 = theta_BP[:, :5], theta_BP[:, 5:6], theta_BP[:, 6:7]
        u_N = x.u_N
        gain_BN, _, gain_by_v_BN = _worth(np.exp(x.d_N - u_N) - 1, v_D_B1)
        d_BN = u_N + np.log1p(gain_BN)
        ln_called_BN, called_by_BPN = self._called_for(x, inner_BP)
        excess_BN = _excess(x.s_N, ln_called_BN)
        more_BN, more_by_t_BN, more_by_v_BN = _worth(excess_BN, v_N_B1)
        s_BN = np.minimum(ln_called_BN, x.s_N) + np.log1p(more_BN)
        # d ln N' / d ln U_N = 1 - (S / U_N) h' / (1 + h), which is 0 where S is not beyond U_N.
        s_by_called_BN = 1 - (1 + excess_BN) * more_by_t_BN / (1 + more_BN)
        of_s_BN, of_d_BN = np.exp(-inner_BP[:, 3:4] * s_BN), np.exp(-inner_BP[:, 4:5] * d_BN)
        law_BN = inner_BP[:, :1] * of_s_BN + inner_BP[:, 1:2] * of_d_BN + inner_BP[:, 2:3]
        by_s_BN = -inner_BP[:, 3:4] * inner_BP[:, :1] * of_s_BN / law_BN
        by_d_BN = -inner_BP[:, 4:5] * inner_BP[:, 1:2] * of_d_BN / law_BN
        J_BPN = np.zeros((len(theta_BP), 7, x.s_N.shape[-1]))
        J_BPN[:, 0], J_BPN[:, 1], J_BPN[:, 2] = of_s_BN / law_BN, of_d_BN / law_BN, 1 / law_BN
        J_BPN[:, 3], J_BPN[:, 4] = -s_BN * inner_BP[:, :1] * J_BPN[:, 0], -d_BN * inner_BP[:, 1:2] * J_BPN[:, 1]
        J_BPN[:, :5] += (by_s_BN * s_by_called_BN)[:, None] * called_by_BPN
        J_BPN[:, 5] = by_d_BN * gain_by_v_BN / (1 + gain_BN)
        J_BPN[:, 6] = by_s_BN * more_by_v_BN / (1 + more_BN)
        return np.log(law_BN), J_BPN

    def fixed_numbers(self, given: Mapping[str, float]) -> dict[str, float]:
        """R_D and R_N as 1 / (1 + R)."""
        return {
            name: 1 / (1 + given[name]) if name in self.saturating else at
            for name, at in super().fixed_numbers(given).items()
        }

    curvature = curvature_by_differences

    def starts(self, x: Coordinates, ln_y_N: Floats) -> Floats:
        """The best B and E for a grid of exponents, R_D, R_N and U_N at the mean of ln U, the best first.

        U_N determines A / B. Without repeated tokens the form is chinchilla's.
        """
        if not _repeats(x):
            inner_BP = super().starts(x, ln_y_N)
            return np.hstack([inner_BP, np.zeros((len(inner_BP), 2))])
        s_N, d_N, u_N = x.s_N, x.d_N, x.u_N
        choices = np.meshgrid(_EXPONENTS, _EXPONENTS, np.quantile(s_N, _CALLED), _SHARES, _SHARES)
        alpha_B1, beta_B1, called_B1, v_D_B1, v_N_B1 = (each.reshape(-1, 1) for each in choices)
        ln_called_BN = called_B1 + beta_B1 / alpha_B1 * (u_N - u_N.mean())
        d_BN = u_N + np.log1p(_worth(np.exp(d_N - u_N) - 1, v_D_B1)[0])
        s_BN = np.minimum(ln_called_BN, s_N) + np.log1p(_worth(_excess(s_N, ln_called_BN), v_N_B1)[0])
        # At the optimum one more FLOP gains as much from parameters as from tokens: alpha A U_N^-alpha =
        # beta B U^-beta.
        A_of_B_B1 = beta_B1 / alpha_B1 * np.exp(alpha_B1 * called_B1 - beta_B1 * u_N.mean())
        falling_BN = A_of_B_B1 * np.exp(-alpha_B1 * s_BN) + np.exp(-beta_B1 * d_BN)
        both_B2 = _non_negative(falling_BN, np.exp(ln_y_N))
        B_B1, E_B1 = both_B2[:, :1], both_B2[:, 1:]
        misfit_B = np.abs(np.log(B_B1 * falling_BN + E_B1) - ln_y_N).sum(axis=1)
        theta_BP = np.hstack([A_of_B_B1 * B_B1, B_B1, E_B1, alpha_B1, beta_B1, v_D_B1, v_N_B1])
        return theta_BP[np.argsort(misfit_B)]

    def constants(self, x: Coordinates, theta_BP: Floats) -> dict[str, Floats]:
        """R_D and R_N are infinite where a repeated token or an excess parameter is worth a new one."""
        with np.errstate(divide="ignore"):
            R_BR = (1 - theta_BP[:, 5:]) / theta_BP[:, 5:]
        return {**super().constants(x, theta_BP[:, :5]), "R_D": R_BR[:, 0], "R_N": R_BR[:, 1]}

    def unidentified(self, x: Coordinates, theta_P: Floats) -> tuple[str, ...]:
        """R_D and R_N where no token was repeated, R_N where no model is beyond U_N."""
        inner = super().unidentified(x, theta_P[:5])
        if not _repeats(x):
            return (*inner, "R_D", "R_N")
        beyond_N = x.s_N > self._called_for(x, theta_P[None, :5])[0][0]
        without_D = ("R_D",) if theta_P[1] * theta_P[4] == 0 else ()
        return (*inner, *without_D, *(() if np.any(beyond_N) else ("R_N",)))

    def _called_for(self, x: Coordinates, inner_BP: Floats) -> tuple[Floats, Floats]:
        """Ln(U_N / S_ref) for the unique tokens, infinite without an optimum, and its derivatives by complex steps."""

        def level_and_slope(of_BP: NDArray[Any]) -> NDArray[Any]:
            A_B, B_B, _, alpha_B, beta_B = of_BP.T
            ln_A_B, ln_B_B = np.log(A_B) + alpha_B * x.ln_S_ref, np.log(B_B) + beta_B * x.ln_D_ref
            ln_G_B = (np.log(alpha_B / beta_B) + ln_A_B - ln_B_B) / (alpha_B + beta_B)
            return np.stack([(beta_B / alpha_B + 1) * ln_G_B - x.ln_S_ref, beta_B / alpha_B])

        known_B, ln_U_N = inner_BP[:, [0, 1, 3, 4]].min(axis=1) > 0, x.u_N + x.ln_D_ref
        of_BP = np.where(known_B[:, None], inner_BP, 1.0)
        level_B1, slope_B1 = level_and_slope(of_BP)[..., None]
        steps = [level_and_slope(of_BP + _IMAGINARY * each_P).imag / abs(_IMAGINARY) for each_P in np.eye(5)]
        level_BP1, slope_BP1 = np.stack(steps, axis=-1)[..., None]
        by_BPN = np.where(known_B[:, None, None], level_BP1 + slope_BP1 * ln_U_N[..., None, :], 0.0)
        return np.where(known_B[:, None], level_B1 + slope_B1 * ln_U_N, np.inf), by_BPN


def _non_negative(falling_BN: Floats, y_N: Floats) -> Floats:
    """`non_negative` for thousands of terms at once."""
    terms_B2N = np.stack([falling_BN / y_N, np.broadcast_to(1 / y_N, falling_BN.shape)], axis=1)
    square_B2, sum_B2 = (terms_B2N**2).sum(axis=2), terms_B2N.sum(axis=2)
    mixed_B1 = terms_B2N.prod(axis=1).sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        both_B2 = sum_B2 * square_B2[:, ::-1] - sum_B2[:, ::-1] * mixed_B1
        both_B2 /= square_B2.prod(axis=1, keepdims=True) - mixed_B1**2
    negative_B2 = ~(both_B2 >= 0)
    return np.where(negative_B2[:, ::-1], sum_B2 / square_B2, np.where(negative_B2, 0.0, both_B2))


def _repeats(x: Coordinates) -> bool:
    return bool(np.any(x.d_N > x.u_N + 1e-6))


def _excess(s_N: Floats, ln_called_BN: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(s_N - ln_called_BN, 0.0, _MOST_EXCESS)) - 1)


def _worth(t: Floats, v_B1: Floats) -> tuple[Floats, Floats, Floats]:
    """Worth of t repetitions, R (1 - exp(-t / R)), and its derivatives by t and by v = 1 / (1 + R) < 1."""
    q_B1 = v_B1 / (1 - v_B1)  # 1 / R
    z = t * q_B1
    decay = np.exp(-z)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        h = np.where(v_B1 > 0, -np.expm1(-z) / q_B1, t)
        # Below 1e-4 the difference loses digits, and two terms of the series are exact to 1e-9.
        by_v = np.where(z > 1e-4, (z * decay + np.expm1(-z)) / v_B1**2, -((t / (1 - v_B1)) ** 2) * (0.5 - z / 3))
    return h, decay, by_v
