"""Trainings on repeated text: draws with known constants, their law as its paper prints it, and its least by scipy."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import huber

from rbpx.laws.names import Objective
from rbpx.laws.surface.runs import Runs

Floats = NDArray[np.float64]

PAPER: Final = {"A": 520.6, "B": 1487.0, "E": 1.869, "alpha": 0.3527, "beta": 0.3527, "R_D": 15.4, "R_N": 5.3}
# Parameters beyond what the unique tokens call for are worth next to nothing.
NO_EXCESS: Final = {"A": 3e5, "B": 4e5, "E": 2.13, "alpha": 0.656, "beta": 0.601, "R_D": 2.3, "R_N": 1e-3}
TRUTHS: Final = {
    "paper": PAPER,
    "no excess": NO_EXCESS,
    "all excess": {**PAPER, "R_N": 1e5},
    "no repeats": {**PAPER, "R_D": 0.02},
    "all repeats": {**PAPER, "R_D": 1e5},
    "no rest": {"A": 60.0, "B": 60.0, "E": -0.05, "alpha": 0.18, "beta": 0.15, "R_D": 6.0, "R_N": 3.0},
}


def few_sizes() -> tuple[Floats, Floats, Floats]:
    """S, D and U of 24 trainings of six sizes, three of which have nearly all of them."""
    runs = [
        (S, D, D * share)
        for S, D in ((2.8e9, 55e9), (4.2e9, 84e9), (8.7e9, 178e9))
        for share in (1.0, 0.5, 0.25, 0.14, 0.07, 0.028, 0.02)
    ]
    S, D, U = np.array([*runs, (7e6, 1e9, 1e8), (1.46e8, 3e9, 1e8), (2.2e9, 4e10, 4e8)]).T
    return S, D, U


def grid() -> tuple[Floats, Floats, Floats]:
    """The same of 24 trainings of six sizes, each on 1, 4, 16 and 64 times its unique tokens."""
    S, times = (each.ravel() for each in np.meshgrid(1e7 * np.geomspace(1, 300, 6), [1.0, 4.0, 16.0, 64.0]))
    U = np.where(np.arange(24) % 6 % 2 == np.arange(24) // 6 % 2, 5e8, 2e9)
    return S, U * times, U


def plain_law(of: Mapping[str, Any], S: Floats, D: Floats, U: Floats) -> Floats:
    """The equations as the paper prints them; constants may have axes before those of the points."""
    A, B, E, a, b, R_D, R_N = (of[name] for name in ("A", "B", "E", "alpha", "beta", "R_D", "R_N"))
    U = np.minimum(U, D)
    G = (a * A / (b * B)) ** (1 / (a + b))
    U_N = np.minimum(S, (U * G) ** (b / a) * G)
    D = U + U * R_D * (1 - np.exp(-(D / U - 1) / R_D))
    S = U_N + U_N * R_N * (1 - np.exp(-(S / U_N - 1) / R_N))
    return np.asarray(E + A * S**-a + B * D**-b)


def draw(
    truth: Mapping[str, float],
    design: tuple[Floats, Floats, Floats],
    seed: int,
    scatter: float = 0.006,
    n_checkpoints: int | None = None,
) -> Runs:
    """Trainings whose ln y scatter about a truth, their ends alone or so many checkpoints of all of them together.

    The checkpoints of a training share its scatter; beside it ln y wanders, and each has noise of its own.
    """
    rng = np.random.default_rng(seed)
    S, D, U = design
    group, ln_y = np.arange(len(S)), scatter * rng.standard_normal(len(S))
    if n_checkpoints is not None:
        group = np.arange(n_checkpoints) * len(S) // n_checkpoints
        S, U, ln_y = S[group], U[group], ln_y[group]
        of = [np.flatnonzero(group == run) for run in range(len(D))]
        D = np.concatenate([D[run] * np.linspace(0.05, 1, len(places)) for run, places in enumerate(of)])
        steps = 0.3 * scatter * rng.standard_normal(n_checkpoints) / math.sqrt(n_checkpoints / len(of))
        ln_y += np.concatenate([np.cumsum(steps[places]) for places in of])
        ln_y += 0.2 * scatter * rng.standard_normal(n_checkpoints)
    return Runs.of(S, D, plain_law(truth, S, D, U) * np.exp(ln_y), U, group)


def plain_objective(
    of: Mapping[str, Any], runs: Runs, kind: Objective, delta: float, weight_N: Floats | None = None
) -> Floats:
    """The sum over points that is minimised, one for each set of constants."""
    y = plain_law(of, runs.S_N, runs.D_N, runs.U_N)
    r = np.log(y) - np.log(runs.y_N) if kind is Objective.log_huber else y - runs.y_N
    loss = r**2 if kind is Objective.least_squares else huber(delta, r)
    return np.asarray((loss * (1.0 if weight_N is None else weight_N)).sum(axis=-1))


# What scipy moves: ln of A S^-alpha and of B D^-beta at the mean sizes, E, ln alpha, ln beta, ln R_D, ln R_N.
_BOUNDS: Final = [(-30, 30), (-30, 30), (0, 5), (-8, math.log(4)), (-8, math.log(4)), (-9, 14), (-9, 14)]


def _constants(p: Any, runs: Runs) -> dict[str, Any]:
    at_S, at_D, E, ln_alpha, ln_beta, ln_R_D, ln_R_N = (each[..., None] for each in np.moveaxis(np.asarray(p), -1, 0))
    alpha, beta = np.exp(ln_alpha), np.exp(ln_beta)
    A = np.exp(at_S + alpha * np.log(runs.S_N).mean())
    B = np.exp(at_D + beta * np.log(runs.D_N).mean())
    return {"A": A, "B": B, "E": E, "alpha": alpha, "beta": beta, "R_D": np.exp(ln_R_D), "R_N": np.exp(ln_R_N)}


def least_by_scipy(runs: Runs, weight_N: Floats | None = None, n_starts: int = 40, n_polished: int = 4) -> float:
    """The least objective that L-BFGS-B finds from many starts, and Nelder and Mead from the best ends of these."""

    def total(p: Any) -> Any:
        with np.errstate(all="ignore"):
            found = plain_objective(_constants(p, runs), runs, Objective.log_huber, 1e-3, weight_N)
        return np.where(np.isfinite(found), found, 1e9)

    def with_slope(p: Any) -> tuple[float, Floats]:
        steps = 1e-6 * np.eye(7)
        at = total(np.concatenate([p[None], p + steps, p - steps]))
        return float(at[0]), (at[1:8] - at[8:]) / 2e-6

    rng = np.random.default_rng(0)
    least, greatest = [-4, -4, 0, -3.5, -3.5, -2, -6], [1.5, 1.5, 1.6, 0.2, 0.2, 6, 6]
    options = {"maxiter": 300, "ftol": 1e-13}
    starts = rng.uniform(least, greatest, (n_starts, 7))
    ends = [minimize(with_slope, p, jac=True, method="L-BFGS-B", bounds=_BOUNDS, options=options) for p in starts]
    polished = []
    for end in sorted(ends, key=lambda end: float(end.fun))[:n_polished]:
        options = {"maxfev": 3000, "xatol": 1e-10, "fatol": 1e-15, "adaptive": True}
        polished.append(minimize(total, end.x, method="Nelder-Mead", bounds=_BOUNDS, options=options).fun)
    return float(min(polished))
