"""What the runs of a design can tell apart: whether size and tokens vary separately, and how well constants are known.

Shapes: N points, P numbers of theta.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats

_LEAST_APART: Final = 0.1  # of the residual sd of ln D on ln S: tokens are a function of size to 10 %
_LEAST_DIFFERENT: Final = 3
_ALIKE: Final = 0.01  # sizes, or tokens, that differ by less are the same


@dataclass(frozen=True)
class Design:
    """How the points lie.

    Attributes:
        n_S: different sizes.
        n_D: different numbers of tokens.
        sd_D: residual standard deviation of ln D on ln S; 0 where D is a power of S.
        sd_S: of ln S on ln D, which is small too where all sizes are nearly the same.
        along: the axis in which the points vary more, "S" or "D".
        slope: of the line in the other axis; 1 where D / S is fixed.
        intercept: of that line.
        condition: the condition number of the derivatives of ln y by the constants, each scaled to length 1; A and B
            are those at the mean of ln S and ln D. None where they are not known, or depend on each other exactly.
    """

    n_S: int
    n_D: int
    sd_D: float
    sd_S: float
    along: str
    slope: float
    intercept: float
    condition: float | None

    @property
    def sd(self) -> float:
        """The smaller of both deviations; 0 on a line."""
        return min(self.sd_D, self.sd_S)

    @property
    def is_line(self) -> bool:
        """Whether tokens are a function of size, or either hardly varies."""
        return self.sd < _LEAST_APART

    @property
    def is_collinear(self) -> bool:
        """Whether alpha cannot be told from beta: a line, or fewer than 3 different sizes or numbers of tokens."""
        return self.is_line or min(self.n_S, self.n_D) < _LEAST_DIFFERENT

    def away(self, S: float, D: float) -> float:
        """How far a point is from the line, in the logarithm of the axis that varies less."""
        along, other = (S, D) if self.along == "S" else (D, S)
        return abs(math.log(other) - self.intercept - self.slope * math.log(along))


def judge(S_N: Floats, D_N: Floats, J_PN: Floats | None = None) -> Design:
    """Judge at least one point, and the derivatives of ln y [P, N] where there are any."""
    ln_S_N, ln_D_N = np.log(S_N), np.log(D_N)
    along = "S" if ln_S_N.std() >= ln_D_N.std() else "D"
    on_S, on_D = _line(ln_S_N, ln_D_N), _line(ln_D_N, ln_S_N)
    slope, intercept, _ = on_S if along == "S" else on_D
    condition = None if J_PN is None else _condition(J_PN)
    return Design(n_different(ln_S_N), n_different(ln_D_N), on_S[2], on_D[2], along, slope, intercept, condition)


def _line(u_N: Floats, v_N: Floats) -> tuple[float, float, float]:
    """Slope, intercept and residual standard deviation of v on u; the slope is 0 where u does not vary."""
    about_N = u_N - u_N.mean()
    square = float(about_N @ about_N)
    slope = float(about_N @ v_N) / square if n_different(u_N) > 1 else 0.0
    left_N = v_N - v_N.mean() - slope * about_N
    return slope, float(v_N.mean() - slope * u_N.mean()), math.sqrt(float(left_N @ left_N) / max(len(u_N) - 2, 1))


def n_different(ln_N: Floats) -> int:
    """How many values differ by more than a hundredth from the next smaller one."""
    return 1 + int((np.diff(np.sort(ln_N)) > _ALIKE).sum()) if len(ln_N) else 0


def _condition(J_PN: Floats) -> float | None:
    length_P = np.linalg.norm(J_PN, axis=1)
    moving_PN = J_PN[length_P > 0] / length_P[length_P > 0, None]
    singular_P = np.linalg.svd(moving_PN, compute_uv=False)
    return float(singular_P[0] / singular_P[-1]) if singular_P[-1] > 0 else None
