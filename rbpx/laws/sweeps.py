"""Estimates the best of a sweep: the least loss over the runs of one size and token count, with intervals.

The least of n noisy runs is biased low. So a quadratic in the logarithm of each knob (learning rate, batch size) is
fitted to the runs nearest to its own minimum, which lies below the true one by half of tr(H Cov(z)); that is added.
Runs that differ only in their seed are averaged.

Shapes: N runs, V knobs that vary, P coefficients, B draws.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import Estimate, Recipe, by_name, estimate, from_stderr
from rbpx.laws.numeric import Floats

# Nearest runs taken for each coefficient of a quadratic; more where these give no minimum, or no interval of it.
_RUNS_A_COEFFICIENT: Final = (4, 8)
_FEWEST_VALUES: Final = 3  # different values of a knob that a quadratic in it needs
_MOST_MOVES: Final = 20  # of the centre, about which the nearest runs are taken
_DRAWS: Final = 2000
_MOST_OPEN: Final = 0.05  # of the draws without a minimum, beyond which the best setting has no interval


class SweepMethod(StrEnum):
    """How the best of a cell was estimated."""

    quadratic = "quadratic"
    seeds = "mean of seeds"
    least = "least"
    only = "only run"


@dataclass(frozen=True, eq=False)
class SweepMinimum:
    """The best of the runs of one cell.

    Attributes:
        at: the best value of each fitted knob, with a 95 % interval; for other knobs that of the least run.
        least: index of the least run.
        weight_N: the weight of each run in y; they sum to 1.
    """

    y: Estimate
    at: dict[str, Estimate]
    how: SweepMethod
    least: int
    weight_N: Floats

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self.weight_N)

    @property
    def n_used(self) -> int:
        """Number of runs that y is estimated from."""
        return int((self.weight_N != 0).sum())


@dataclass(frozen=True, eq=False)
class SweepCell:
    """The runs of one size and token count, and the best of them in one quantity; C as stated, else 6 S D.

    Attributes:
        y_least: y of the least run as it is.
    """

    law: str
    k: int | None
    size: str
    S: float
    D: float | None
    C: float | None
    best: SweepMinimum
    y_least: float

    def row(self) -> dict[str, Any]:
        """The cell as a JSON record."""
        named = {name: each for name, each in self.best.at.items()}
        told = {"law": self.law, "k": self.k, "size": self.size, "S": self.S, "D": self.D, "C": self.C}
        told |= {"n_runs": self.best.n_runs, "n_used": self.best.n_used, "how": self.best.how.value}
        return told | by_name(y=self.best.y) | {"y_least": self.y_least} | by_name(**named)


def best_of(y_N: Floats, knobs: Mapping[str, Floats], are_seeds: bool = False) -> SweepMinimum:
    """Estimates the best of runs of one size and token count, from a finite quantity that is better when lower.

    `knobs` are NaN where unknown; positive ones enter by their logarithms. `are_seeds` says that runs with the same
    knobs differ only in their seed.
    """
    least, n = int(np.argmin(y_N)), len(y_N)
    varied = {name: value_N for name, value_N in knobs.items() if np.isfinite(value_N).all() and np.ptp(value_N) > 0}
    scaled = [name for name, value_N in varied.items() if len(np.unique(value_N)) >= _FEWEST_VALUES]
    alike_N = np.full(n, True)  # runs that share the least one's setting of every knob without a quadratic
    for name, value_N in knobs.items():
        if name not in scaled:
            alike_N &= (value_N == value_N[least]) | (np.isnan(value_N) & np.isnan(value_N[least]))
    here = {name: Estimate(float(value_N[least])) for name, value_N in knobs.items() if math.isfinite(value_N[least])}
    near_N = np.flatnonzero(alike_N)
    if scaled:
        found = _quadratic(y_N[near_N], [varied[name][near_N] for name in scaled])
        if found is not None:
            y, at, weight_N = found
            here |= dict(zip(scaled, at, strict=True))
            return SweepMinimum(y, here, SweepMethod.quadratic, least, _spread(weight_N, near_N, n))
    elif are_seeds and len(near_N) > 1:
        y_S = y_N[near_N]
        y = from_stderr(float(y_S.mean()), float(y_S.std(ddof=1)) / math.sqrt(len(y_S)), len(y_S) - 1)
        return SweepMinimum(y, here, SweepMethod.seeds, least, _spread(1 / len(y_S), near_N, n))
    how = SweepMethod.least if n > 1 else SweepMethod.only
    return SweepMinimum(Estimate(float(y_N[least])), here, how, least, _spread(1.0, least, n))


def _spread(weight_K: Floats | float, at_K: NDArray[np.intp] | int, n: int) -> Floats:
    weight_N = np.zeros(n)
    weight_N[at_K] = weight_K
    return weight_N


def _quadratic(y_N: Floats, knobs: Sequence[Floats]) -> tuple[Estimate, list[Estimate], Floats] | None:
    """The minimum, its place, and the weight of each run in it; None where the runs do not enclose a minimum."""
    in_ln = [bool((value_N > 0).all()) for value_N in knobs]
    x_NV = np.column_stack([np.log(each) if ln else each for each, ln in zip(knobs, in_ln, strict=True)])
    known = None
    for a_coefficient in _RUNS_A_COEFFICIENT:
        found = _minimum(y_N, x_NV, a_coefficient)
        known = known or found
        if found is not None and all(each.ends is not None for each in found[1]):
            known = found
            break
    if known is None:
        return None
    y, at, weight_N = known
    return y, [each.exp() if ln else each for each, ln in zip(at, in_ln, strict=True)], weight_N


def _minimum(y_N: Floats, x_NV: Floats, a_coefficient: int) -> tuple[Estimate, list[Estimate], Floats] | None:
    V, unit_V = x_NV.shape[1], x_NV.std(axis=0)
    P = (V + 1) * (V + 2) // 2
    centre_V, before_N = x_NV[np.argmin(y_N)], np.zeros(len(y_N), bool)
    for _ in range(_MOST_MOVES):
        away_N = (((x_NV - centre_V) / unit_V) ** 2).sum(axis=1)
        reach = np.sort(away_N)[min(a_coefficient * P, len(y_N)) - 1]
        near_N = away_N <= reach * (1 + 1e-9)
        settled, before_N = bool((near_N == before_N).all()), near_N
        X_KP = _terms(x_NV[near_N] - centre_V)
        dof = len(X_KP) - P
        if dof < 1 or np.linalg.matrix_rank(X_KP / np.linalg.norm(X_KP, axis=0).clip(1e-300)) < P:
            return None
        theta_P = np.linalg.lstsq(X_KP, y_N[near_N], rcond=None)[0]
        H_VV = _curvature(theta_P, V)
        if np.linalg.eigvalsh(H_VV * np.outer(unit_V, unit_V)).min() <= 0:
            return None
        z_V = -np.linalg.solve(H_VV, theta_P[1 : V + 1])
        lowest_V, highest_V = x_NV[near_N].min(axis=0), x_NV[near_N].max(axis=0)
        is_inside = bool(((centre_V + z_V >= lowest_V) & (centre_V + z_V <= highest_V)).all())
        if settled:
            break
        centre_V = np.clip(centre_V + z_V, lowest_V, highest_V)
    if not is_inside:
        return None
    inverse_PP, at_P = np.linalg.inv(X_KP.T @ X_KP), _terms(z_V[None])[0]
    sd = math.sqrt(float(((y_N[near_N] - X_KP @ theta_P) ** 2).sum()) / dof)
    se = sd * math.sqrt(float(at_P @ inverse_PP @ at_P))
    slope_VP = (np.eye(P)[:, 1 : V + 1] + _curvature(np.eye(P), V) @ z_V).T  # of the gradient at z, by coefficient
    too_low = sd**2 * float(np.trace(np.linalg.solve(H_VV, slope_VP @ inverse_PP @ slope_VP.T))) / 2
    value = float(at_P @ theta_P) + min(too_low, se)
    drawn_BV = centre_V + _drawn(theta_P, np.asarray(inverse_PP * sd**2), dof, V)
    places = zip((centre_V + z_V).tolist(), drawn_BV.T, strict=True)
    return (
        from_stderr(value, se, dof),
        [estimate(place, drawn_B, None, Recipe.expanded) for place, drawn_B in places],
        _spread(at_P @ inverse_PP @ X_KP.T, np.flatnonzero(near_N), len(y_N)),
    )


def _terms(z_KV: Floats) -> Floats:
    """Columns 1, z, half of each square, then the products of two."""
    K, V = z_KV.shape
    products = [z_KV[:, a] * z_KV[:, b] for a in range(V) for b in range(a)]
    return np.column_stack([np.ones(K), z_KV, z_KV**2 / 2, *products])


def _curvature(theta_P: Floats, V: int) -> Floats:
    H_VV = np.zeros((*theta_P.shape[:-1], V, V))
    H_VV[..., np.arange(V), np.arange(V)] = theta_P[..., V + 1 : 2 * V + 1]
    rows, columns = np.tril_indices(V, -1)  # in the order of the products
    H_VV[..., rows, columns] = H_VV[..., columns, rows] = theta_P[..., 2 * V + 1 :]
    return H_VV


def _drawn(theta_P: Floats, covariance_PP: Floats, dof: int, V: int) -> Floats:
    draws = np.random.default_rng(0)
    root_PP = np.linalg.cholesky(covariance_PP + 1e-14 * np.diag(np.diag(covariance_PP)))
    wide_B1 = np.sqrt(dof / draws.chisquare(dof, (_DRAWS, 1)))
    theta_BP = theta_P + wide_B1 * (draws.standard_normal((_DRAWS, len(theta_P))) @ root_PP.T)
    H_BVV = _curvature(theta_BP, V)
    has_B = np.linalg.eigvalsh(H_BVV).min(axis=1) > 0
    if (~has_B).mean() > _MOST_OPEN:
        return np.empty((0, V))
    return np.asarray(-np.linalg.solve(H_BVV[has_B], theta_BP[has_B, 1 : V + 1, None])[..., 0])
