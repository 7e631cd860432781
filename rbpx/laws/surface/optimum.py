"""The size and the number of tokens that reach the least y under a budget of compute.

For chinchilla's form and C = 6 S D in closed form, otherwise by a search along each budget. Shapes: B sets of
constants, G points of a grid.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.surface.equations import Chinchilla
from rbpx.laws.surface.runs import Coordinates, six_S
from rbpx.laws.surface.surface import Surface, exponential

_REACH: Final = math.log(1e6)  # how far beyond the sizes of the runs, to either side, a search looks
_COARSE: Final = 601
_FINE: Final = 41
_ROUNDS: Final = 6  # each narrows the bracket by a factor of 20


@dataclass(frozen=True)
class Optimum:
    """The best of a budget; None where there is no optimum, or none that was found.

    Attributes:
        C: training FLOPs.
        S: size.
        D: tokens.
        y: the quantity there.
    """

    C: float
    S: Estimate
    D: Estimate
    y: Estimate


def optima(
    surface: Surface,
    budgets: Sequence[float],
    flops_per_token: Callable[[Floats], Floats] = six_S,
    U: float | None = None,
) -> list[Optimum]:
    """The optimum of each budget, with 95 % intervals over runs.

    Args:
        surface: fitted.
        budgets: training FLOPs.
        flops_per_token: of a size; 6 S unless the head counts, as in small models: then 6 times all parameters.
        U: unique tokens that there are, for `data_constrained`; tokens beyond are repeated. None for no limit.

    Returns:
        An optimum for each budget. S, D and y are None where A, B, alpha or beta is at its bound, or no minimum lies
        within a factor of 1e6 of the sizes of the runs; their ends are None where that holds for more than 5 % of
        the resamples.

    Raises:
        ValueError: if a budget is not positive and finite.
    """
    theta_BP = np.vstack([surface.theta_P, surface.theta_BP])
    is_closed = type(surface.form) is Chinchilla and flops_per_token is six_S
    found = []
    for C in budgets:
        if not 0 < C < math.inf:
            raise ValueError(f"a budget must be positive and finite, got {C}")
        if is_closed:
            ln_S_B = closed_form(surface.x, theta_BP, C)
        else:
            ln_S_B = search(surface, theta_BP, C, flops_per_token, U)
        ln_D_B = math.log(C) - np.log(flops_per_token(np.exp(ln_S_B)))
        ln_y_B = _ln_y(surface, theta_BP, ln_S_B[:, None], ln_D_B[:, None], U)[:, 0]
        ln_y_B = np.where(np.isfinite(ln_S_B), ln_y_B, np.nan)
        of = (exponential(surface.estimate(float(each[0]), each[1:])) for each in (ln_S_B, ln_D_B, ln_y_B))
        found.append(Optimum(C, *of))
    return found


def closed_form(x: Coordinates, theta_BP: Floats, C: float) -> Floats:
    """Ln S of the optimum of chinchilla's form for C = 6 S D, [B]; NaN where a constant is at its bound.

    S = G (C / 6)^(beta / (alpha + beta)), G = (alpha A / (beta B))^(1 / (alpha + beta)); arXiv 2203.15556, eq. 4.
    """
    A_B, B_B, _, alpha_B, beta_B = theta_BP.T
    with np.errstate(all="ignore"):
        ln_A_B, ln_B_B = np.log(A_B) + alpha_B * x.ln_S_ref, np.log(B_B) + beta_B * x.ln_D_ref
        ln_G_B = (np.log(alpha_B / beta_B) + ln_A_B - ln_B_B) / (alpha_B + beta_B)
        ln_S_B = ln_G_B + beta_B / (alpha_B + beta_B) * math.log(C / 6)
    return np.where((theta_BP[:, [0, 1, 3, 4]] > 0).all(axis=1) & np.isfinite(ln_S_B), ln_S_B, np.nan)


def split(surface: Surface) -> tuple[Estimate, Estimate]:
    """The exponents a and b of S ~ C^a and D ~ C^b at the optimum of chinchilla's form under C = 6 S D."""
    a = surface.of_constants(lambda of: of["beta"] / (of["alpha"] + of["beta"]))
    b = surface.of_constants(lambda of: of["alpha"] / (of["alpha"] + of["beta"]))
    return a, b


def search(
    surface: Surface,
    theta_BP: Floats,
    C: float,
    flops_per_token: Callable[[Floats], Floats],
    U: float | None = None,
) -> Floats:
    """Ln S of the least y along a budget, [B], by a grid in ln S that is narrowed; NaN where it is an end of the grid.

    Args:
        surface: whose form and coordinates.
        theta_BP: its constants.
        C: FLOPs.
        flops_per_token: of a size.
        U: as in `optima`.
    """
    ln_S_N = surface.x.s_N + surface.x.ln_S_ref
    ln_S_BG = np.linspace(ln_S_N.min() - _REACH, ln_S_N.max() + _REACH, _COARSE)[None]
    inner_B = np.ones(len(theta_BP), dtype=bool)
    for _ in range(_ROUNDS):
        ln_D_BG = math.log(C) - np.log(flops_per_token(np.exp(ln_S_BG)))
        ln_y_BG = _ln_y(surface, theta_BP, ln_S_BG, ln_D_BG, U)
        best_B = np.argmin(np.where(np.isfinite(ln_y_BG), ln_y_BG, np.inf), axis=1)
        G = ln_S_BG.shape[1]
        if G == _COARSE:
            inner_B = (best_B > 0) & (best_B < G - 1) & np.isfinite(ln_y_BG.min(axis=1))
            # A y that has stopped to fall is no minimum: it has to rise again on both sides.
            inner_B &= np.minimum(ln_y_BG[:, 0], ln_y_BG[:, -1]) > ln_y_BG.min(axis=1)
        around = np.clip(best_B, 1, G - 2)
        ln_S_BG = np.broadcast_to(ln_S_BG, ln_y_BG.shape)
        each = np.arange(len(theta_BP))
        ln_S_BG = np.linspace(ln_S_BG[each, around - 1], ln_S_BG[each, around + 1], _FINE, axis=1)
    return np.where(inner_B, ln_S_BG.mean(axis=1), np.nan)


def _ln_y(surface: Surface, theta_BP: Floats, ln_S_BG: Floats, ln_D_BG: Floats, U: float | None) -> Floats:
    x = surface.x
    u_BG = None if U is None else np.minimum(math.log(U), ln_D_BG) - x.ln_D_ref
    at = Coordinates(ln_S_BG - x.ln_S_ref, ln_D_BG - x.ln_D_ref, u_BG, x.ln_S_ref, x.ln_D_ref)
    with np.errstate(all="ignore"):
        return surface.form.evaluate(at, theta_BP)[0] + math.log(surface.form.y_ref)
