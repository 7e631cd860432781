"""y = ((N_c / S)^(alpha_N / alpha_D) + D_c / D)^alpha_D.

theta is alpha_N ln(N_c / S_ref) - ln y_ref, alpha_D ln(D_c / D_ref) - ln y_ref, alpha_N, alpha_D: the logarithms of
what y tends to for endless data and for an endless model, at the reference, and their slopes.
"""

from typing import Final

import numpy as np
from scipy.special import expit, xlogy

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.surface.equations.equation import STEEPEST, Form, non_negative
from rbpx.laws.surface.runs import Coordinates

_ALPHAS_D: Final = (0.03, 0.07, 0.15, 0.3, 0.6)
_LEAST: Final = 1e-3  # of alpha_D: y is then the greater of two power laws, to a thousandth


class Kaplan(Form):
    """Two power laws, of size and of data, with a bend between them and nothing left at the end."""

    name = "kaplan"
    equation = "y = ((N_c / S)^(α_N / α_D) + D_c / D)^α_D"
    source = "arXiv 2001.08361, eq. 1.5"
    names = ("N_c", "D_c", "alpha_N", "alpha_D")
    exponents = ("alpha_N", "alpha_D")
    logarithmic = ("N_c", "D_c")
    lower_P = np.array([-np.inf, -np.inf, 0.0, _LEAST])  # logarithms have no bound
    upper_P = np.array([np.inf, np.inf, STEEPEST, STEEPEST])

    def evaluate(self, x: Coordinates, theta_BP: Floats) -> tuple[Floats, Floats]:
        """As `Form.evaluate`."""
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
        """The best constants for each pair of a grid of exponents: y^(1 / alpha_D) is linear in two terms."""
        starts = []
        for alpha_D in _ALPHAS_D:
            root_N = np.exp(ln_y_N / alpha_D)
            of_s_BN = np.exp(-np.array(_ALPHAS_D)[:, None] / alpha_D * x.s_N)
            terms_BTN = np.stack([of_s_BN, np.broadcast_to(np.exp(-x.d_N), of_s_BN.shape)], axis=1)
            # A term that least squares leaves out is put back at a thousandth of y, where a search can find it.
            constant_BT = np.maximum(non_negative(terms_BTN, root_N), 1e-3)
            starts.append(
                [[*(alpha_D * np.log(both)), a, alpha_D] for both, a in zip(constant_BT, _ALPHAS_D, strict=True)]
            )
        return np.concatenate([np.array(each, dtype=np.float64) for each in starts])

    def constants(self, x: Coordinates, theta_BP: Floats) -> dict[str, Floats]:
        """As `Form.constants`; N_c and D_c are in parameters and tokens."""
        size_B, data_B, alpha_N_B, alpha_D_B = theta_BP.T
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return {
                "N_c": np.exp((size_B + np.log(self.y_ref)) / alpha_N_B + x.ln_S_ref),
                "D_c": np.exp((data_B + np.log(self.y_ref)) / alpha_D_B + x.ln_D_ref),
                "alpha_N": alpha_N_B,
                "alpha_D": alpha_D_B,
            }

    def unidentified(self, x: Coordinates, theta_P: Floats) -> tuple[str, ...]:
        """As `Form.unidentified`: without a slope in S there is no N_c."""
        return ("N_c",) if theta_P[2] == 0 else ()
