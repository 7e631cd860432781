"""y = E + A S^-alpha + B D^-beta.

theta is A S_ref^-alpha / y_ref, B D_ref^-beta / y_ref, E / y_ref, alpha, beta.
"""

from typing import ClassVar, Final

import numpy as np

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.surface.equations.equation import STEEPEST, Form, non_negative
from rbpx.laws.surface.runs import Coordinates

_EXPONENTS: Final = (0.03, 0.1, 0.2, 0.35, 0.55, 0.9, 1.5)


class Chinchilla(Form):
    """The sum of what a model of size S lacks, what D tokens lack, and what is left of both."""

    name = "chinchilla"
    equation = "y = E + A S^−α + B D^−β"
    source = "arXiv 2203.15556, eq. 10"
    names: ClassVar[tuple[str, ...]] = ("A", "B", "E", "alpha", "beta")
    exponents = ("alpha", "beta")
    logarithmic = ("A", "B")
    lower_P: ClassVar[Floats] = np.zeros(5)
    upper_P: ClassVar[Floats] = np.array([np.inf, np.inf, np.inf, STEEPEST, STEEPEST])

    def evaluate(self, x: Coordinates, theta_BP: Floats) -> tuple[Floats, Floats]:
        """As `Form.evaluate`."""
        of_s_BN, of_d_BN, law_BN = self._parts(x, theta_BP)
        J_BPN = np.empty((len(theta_BP), 5, x.s_N.shape[-1]))
        np.divide(of_s_BN, law_BN, out=J_BPN[:, 0])
        np.divide(of_d_BN, law_BN, out=J_BPN[:, 1])
        np.divide(1.0, law_BN, out=J_BPN[:, 2])
        J_BPN[:, 3] = J_BPN[:, 0] * -x.s_N * theta_BP[:, :1]
        J_BPN[:, 4] = J_BPN[:, 1] * -x.d_N * theta_BP[:, 1:2]
        return np.log(law_BN), J_BPN

    def bend(self, x: Coordinates, theta_BP: Floats, J_BPN: Floats, pull_BN: Floats) -> Floats:
        """As `Form.bend`, in closed form."""
        bend_BPP = -(J_BPN * pull_BN[:, None]) @ J_BPN.swapaxes(1, 2)
        for constant, exponent, along_N in ((0, 3, x.s_N), (1, 4, x.d_N)):
            pulled_BN = J_BPN[:, constant] * pull_BN * along_N
            mixed_B = pulled_BN.sum(axis=1)  # a product with along_N would round by how many searches there are
            bend_BPP[:, constant, exponent] -= mixed_B
            bend_BPP[:, exponent, constant] -= mixed_B
            bend_BPP[:, exponent, exponent] += theta_BP[:, constant] * (pulled_BN * along_N).sum(axis=1)
        return np.asarray(bend_BPP)

    def starts(self, x: Coordinates, ln_y_N: Floats) -> Floats:
        """The best constants for each pair of a grid of exponents."""
        alpha_B, beta_B = (each.ravel() for each in np.meshgrid(_EXPONENTS, _EXPONENTS))
        terms_BTN = np.stack(
            [
                np.exp(-alpha_B[:, None] * x.s_N),
                np.exp(-beta_B[:, None] * x.d_N),
                np.ones((len(alpha_B), x.s_N.shape[-1])),
            ],
            axis=1,
        )
        return np.column_stack([non_negative(terms_BTN, np.exp(ln_y_N)), alpha_B, beta_B])

    def constants(self, x: Coordinates, theta_BP: Floats) -> dict[str, Floats]:
        """As `Form.constants`: A, B and E have the unit of y at S = 1 and D = 1."""
        A_B, B_B, E_B, alpha_B, beta_B = theta_BP.T
        with np.errstate(over="ignore", invalid="ignore"):
            return {
                "A": self.y_ref * A_B * np.exp(alpha_B * x.ln_S_ref),
                "B": self.y_ref * B_B * np.exp(beta_B * x.ln_D_ref),
                "E": self.y_ref * E_B,
                "alpha": alpha_B,
                "beta": beta_B,
            }

    def unidentified(self, x: Coordinates, theta_P: Floats) -> tuple[str, ...]:
        """As `Form.unidentified`: the exponent of a term that is 0, both constants of an axis without two places.

        The term of such an axis is a constant, as E is, and nothing says how the two share what is left.
        """
        terms = (("A", "alpha", theta_P[0], x.s_N), ("B", "beta", theta_P[1], x.d_N))
        alone = [name for *names, _, at_N in terms if np.ptp(at_N) == 0 for name in names]
        without_E = (*alone, "E") if alone else ()
        return (*without_E, *(name for _, name, constant, _ in terms if constant == 0 and name not in alone))

    def _parts(self, x: Coordinates, theta_BP: Floats) -> tuple[Floats, Floats, Floats]:
        """S^-alpha and D^-beta about the reference, and y."""
        of_s_BN = np.exp(-theta_BP[:, 3:4] * x.s_N)
        of_d_BN = np.exp(-theta_BP[:, 4:5] * x.d_N)
        return of_s_BN, of_d_BN, theta_BP[:, :1] * of_s_BN + theta_BP[:, 1:2] * of_d_BN + theta_BP[:, 2:3]
