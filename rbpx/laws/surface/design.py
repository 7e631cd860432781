"""What a design determines: whether size and tokens vary separately, and how well the constants are conditioned.

Shapes: N points, P numbers of theta.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats

_LEAST_APART: Final = 0.1  # residual sd of a line; below it tokens are a function of size to 10 %
_LEAST_DIFFERENT: Final = 3
_FEWEST_OF_BUDGET: Final = 4  # sizes
_OFF_SLOPE: Final = 0.1
_ALIKE: Final = 0.01  # relative; values that differ by less are the same


@dataclass(frozen=True)
class Design:
    """Position of the points in ln S and ln D.

    Attributes:
        n_S: different sizes, `n_D` token counts.
        sd_D: residual standard deviation of ln D on ln S, `sd_S` of ln S on ln D.
        along: the axis in which the points vary more, "S" or "D"; the line is that of the other on it.
        condition: of the derivatives of ln y by the constants, each scaled to length 1; None if unknown or singular.
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
        """The smaller of both; 0 on a line."""
        return min(self.sd_D, self.sd_S)

    @property
    def is_line(self) -> bool:
        """Whether tokens are a function of size, or one of them hardly varies."""
        return self.sd < _LEAST_APART

    @property
    def is_budget(self) -> bool:
        """Whether the line is that of one budget, S D hardly varying, where y has its minimum if sizes straddle it."""
        return self.is_line and abs(self.slope + 1) < _OFF_SLOPE and min(self.n_S, self.n_D) >= _FEWEST_OF_BUDGET

    @property
    def is_collinear(self) -> bool:
        """Whether alpha and beta cannot be separated: a line, or fewer than 3 sizes or token counts."""
        return self.is_line or min(self.n_S, self.n_D) < _LEAST_DIFFERENT

    def away(self, S: float, D: float) -> float:
        """The distance of a point from the line, in the logarithm of the axis that varies less."""
        along, other = (S, D) if self.along == "S" else (D, S)
        return abs(math.log(other) - self.intercept - self.slope * math.log(along))


def judge_design(S_N: Floats, D_N: Floats, J_PN: Floats | None = None) -> Design:
    """Describes a design of at least one point, with its condition if the derivatives of ln y are given."""
    ln_S_N, ln_D_N = np.log(S_N), np.log(D_N)
    along = "S" if ln_S_N.std() >= ln_D_N.std() else "D"
    on_S, on_D = _line(ln_S_N, ln_D_N), _line(ln_D_N, ln_S_N)
    slope, intercept, _ = on_S if along == "S" else on_D
    condition = None if J_PN is None else _condition(J_PN)
    return Design(n_different(ln_S_N), n_different(ln_D_N), on_S[2], on_D[2], along, slope, intercept, condition)


def _line(u_N: Floats, v_N: Floats) -> tuple[float, float, float]:
    about_N = u_N - u_N.mean()
    square = float(about_N @ about_N)
    slope = float(about_N @ v_N) / square if n_different(u_N) > 1 else 0.0
    left_N = v_N - v_N.mean() - slope * about_N
    return slope, float(v_N.mean() - slope * u_N.mean()), math.sqrt(float(left_N @ left_N) / max(len(u_N) - 2, 1))


def n_different(ln_N: Floats) -> int:
    """How many values differ by more than 1 % from the next smaller one."""
    return 1 + int((np.diff(np.sort(ln_N)) > _ALIKE).sum()) if len(ln_N) else 0


def _condition(J_PN: Floats) -> float | None:
    length_P = np.linalg.norm(J_PN, axis=1)
    moving_PN = J_PN[length_P > 0] / length_P[length_P > 0, None]
    singular_P = np.linalg.svd(moving_PN, compute_uv=False)
    return float(singular_P[0] / singular_P[-1]) if singular_P[-1] > 0 else None
