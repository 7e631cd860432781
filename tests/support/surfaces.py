"""Drawn surfaces: designs of runs, their true law, and what a fit says of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.surface.fit import FORMS
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import SurfaceParameters
from tests.support.repeats import plain_law

Floats = NDArray[np.float64]

TRUE = {"A": 480.0, "B": 2100.0, "E": 1.82, "alpha": 0.347, "beta": 0.367}
BUDGET = 1e21
NEW = (1e10, 2e11)  # S and D beyond all runs of the designs


def law(S: Floats, D: Floats) -> Floats:
    """The true y."""
    return TRUE["E"] + TRUE["A"] * S ** -TRUE["alpha"] + TRUE["B"] * D ** -TRUE["beta"]


def grid(n_S: int, n_D: int) -> tuple[Floats, Floats]:
    """Every size with every number of tokens: S over 2.5 decades, D over 1.8."""
    S, D = np.meshgrid(1e7 * np.geomspace(1, 10**2.5, n_S), 6e8 * np.geomspace(1, 10**1.8, n_D))
    return S.ravel(), D.ravel()


def ratios(n_S: int, n_ratios: int) -> tuple[Floats, Floats]:
    """Every size with 5 to 160 tokens for a parameter."""
    S, ratio = np.meshgrid(1e7 * np.geomspace(1, 10**2.5, n_S), np.geomspace(5, 160, n_ratios))
    return S.ravel(), (S * ratio).ravel()


def straight(n: int, spread: float = 0.0) -> tuple[Floats, Floats]:
    """Sizes with 20 tokens for a parameter, more or less."""
    S = 1e7 * np.geomspace(1, 10**2.5, n)
    return S, 20 * S * np.exp(spread * np.resize([1.0, -1.0, -0.5, 0.5], n))


@dataclass(frozen=True)
class Drawn:
    """Runs with scatter, and one more run of the same kind.

    Attributes:
        runs: the points.
        new_y: of the run at `new`.
        new: its S and D.
    """

    runs: Runs
    new: tuple[float, float]
    new_y: float


def draw(
    seed: tuple[int, ...], design: tuple[Floats, Floats], scatter: float, checkpoints: int = 1, tails: float = math.inf
) -> Drawn:
    """Draw runs whose ln y scatter about the law.

    Args:
        seed: of the draw.
        design: S and D of each run.
        scatter: standard deviation of ln y of a run.
        checkpoints: points of a run, at D, D / 2, ...; they scatter together, but for a quarter of the variance.
        tails: degrees of freedom of Student's t that the scatter has; infinite for a normal distribution.
    """
    rng = np.random.default_rng(seed)
    S, D = (np.repeat(each, checkpoints) for each in design)
    n = len(design[0])
    D = D / 2.0 ** np.tile(np.arange(checkpoints), n)
    of_run = rng.standard_normal(n + 1)
    if math.isfinite(tails):
        of_run /= np.sqrt(rng.chisquare(tails, n + 1) / (tails - 2))
    own = rng.standard_normal(len(S)) if checkpoints > 1 else np.zeros(len(S))
    share = 0.75 if checkpoints > 1 else 1.0
    noise = math.sqrt(share) * np.repeat(of_run[:n], checkpoints) + math.sqrt(1 - share) * own
    new = (3e9, 6e10)
    new_y = float(law(*(np.array([each]) for each in new))[0] * math.exp(scatter * of_run[n]))
    return Drawn(
        Runs.of(S, D, law(S, D) * np.exp(scatter * noise), groups=np.repeat(np.arange(n), checkpoints)), new, new_y
    )


@lru_cache
def true_optimum(C: float) -> float:
    """The best size of a budget under the true law, by trying many."""
    ln_S = np.linspace(math.log(1e6), math.log(1e13), 400_001)
    y = law(np.exp(ln_S), C / 6 / np.exp(ln_S))
    return math.exp(ln_S[int(np.argmin(y))])


def surface_of(form: str, constants: Mapping[str, float | None], runs: Runs) -> SurfaceParameters:
    """A surface with constants that a source prints (an R of None is infinite), at the points of runs."""
    S_ref, D_ref = math.exp(runs.x.ln_S_ref), math.exp(runs.x.ln_D_ref)
    at = {name: 0.0 if value is None else value for name, value in constants.items()}
    if form == "kaplan":
        ln_terms = at["alpha_N"] * np.log(at["N_c"] / S_ref), at["alpha_D"] * np.log(at["D_c"] / D_ref)
        theta_P = np.array([*ln_terms, at["alpha_N"], at["alpha_D"]])
    else:
        terms = at["A"] * S_ref ** -at["alpha"], at["B"] * D_ref ** -at["beta"], at["E"]
        shares = [
            0.0 if R is None else 1 / (1 + max(R, 1e-4)) for name, R in constants.items() if name in ("R_D", "R_N")
        ]
        theta_P = np.array([*terms, at["alpha"], at["beta"], *shares])
    equation = FORMS[form](1.0)
    residual_N = equation.evaluate(runs.x, theta_P[None])[0][0] - np.log(runs.y_N)
    return SurfaceParameters(
        equation,
        runs.x,
        theta_P,
        np.empty((0, len(theta_P))),
        runs.n_groups,
        0,
        residual_N,
        np.zeros(len(theta_P), bool),
    )


CONSTANTS: dict[str, dict[str, float | None]] = {
    "chinchilla": {**TRUE},
    "kaplan": {"N_c": 8.8e13, "D_c": 5.4e13, "alpha_N": 0.076, "alpha_D": 0.095},
    "data_constrained": {**TRUE, "R_D": 15.0, "R_N": 5.0},
}


def plain_y(form: str, S: Any, D: Any, U: Any) -> Any:
    """The equations as the papers print them."""
    of = {name: float(value or 0) for name, value in CONSTANTS[form].items()}
    if form == "kaplan":
        return ((of["N_c"] / S) ** (of["alpha_N"] / of["alpha_D"]) + of["D_c"] / D) ** of["alpha_D"]
    if form == "data_constrained":
        return plain_law(of, S, D, U)
    return of["E"] + of["A"] * S ** -of["alpha"] + of["B"] * D ** -of["beta"]


def runs_of(form: str) -> Runs:
    """Runs whose y is that of the equation."""
    S, D = grid(6, 5)
    U = np.full(len(S), 2e9) if form == "data_constrained" else None
    return Runs.of(S, D, plain_y(form, S, D, U), U)
