"""Families of rank distributions over 1..V, p_x = w_x / sum w, and the record of a fit.

w is a smooth function of x, so that it can be evaluated between the ranks too.

Shapes: P parameters, X places (ranks or points between them), R ranks that occur.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.status import Status

Params = dict[str, float | int | None]

_LABELS: Final = {
    "lognormal_full": "lognormal",
    "lognormal_inflated": "inflated lognormal",
    "weibull": "Weibull",
    "power_law_cutoff": "truncated power law",
}


@dataclass(frozen=True)
class RankFit:
    """A fitted distribution of ranks; None where a number is unknown.

    params has the parameters by name, n_tokens, V for fits over 1..V and, where a parameter is at the edge of its
    family, its free maximum as ..._unconstrained. loglik (nats), aic, bic and Kolmogorov's distance are of the ranks
    that the fit covers: 2 and up, given R >= 2, for lognormal_paper; 1..V for all others. theta are the parameters as
    the search sees them.
    """

    distribution: str
    params: Params
    loglik: float | None = None
    aic: float | None = None
    bic: float | None = None
    distance: float | None = None
    status: Status = Status.ok
    theta: tuple[float, ...] = field(default=(), repr=False, compare=False)

    def __repr__(self) -> str:
        known = ", ".join(f"{name} {each:.4g}" for name, each in self.params.items() if each is not None)
        score = "" if self.aic is None else f"; AIC {self.aic:.6g}, distance {self.distance:.2g}"
        return f"{self.distribution}: {known}{score}: {self.status.label}"


def scored(name: str, params: Params, theta: Floats, loglik: float, distance: float, status: Status) -> RankFit:
    """A fit with AIC = 2 m - 2 ln L and BIC = m ln n - 2 ln L, m parameters and n = params["n_tokens"]."""
    n, m = params["n_tokens"] or 0, len(theta)
    aic, bic = 2.0 * m - 2 * loglik, m * math.log(n) - 2 * loglik
    return RankFit(name, params, loglik, aic, bic, distance, status, tuple(theta.tolist()))


def checked_counts(rank: ArrayLike, n_tokens: ArrayLike) -> tuple[Floats, Floats]:
    """The distinct ranks that occur, ascending, and their counts, both [R]; ValueError as of `fit_distributions`."""
    rank_R, n_R = np.asarray(rank, dtype=np.float64), np.asarray(n_tokens, dtype=np.float64)
    if rank_R.ndim != 1 or rank_R.shape != n_R.shape:
        raise ValueError(f"rank has shape {rank_R.shape}, n_tokens {n_R.shape}")
    if not np.all((rank_R >= 1) & np.isfinite(rank_R)) or not np.all((n_R >= 0) & np.isfinite(n_R)):
        raise ValueError("ranks must be >= 1 and counts >= 0")
    distinct_R, where_R = np.unique(rank_R[n_R > 0], return_inverse=True)
    return distinct_R, np.bincount(where_R, weights=n_R[n_R > 0], minlength=len(distinct_R)).astype(np.float64)


@dataclass(frozen=True)
class Family(ABC):
    """A family of distributions in free real parameters theta.

    Attributes:
        equation: p_x up to its normalisation.
        starts: where to search from, each a theta.
        reach: bound of each |theta|; a maximum beyond it is another family.
        edge: index of a theta that has to be positive, else the fit is at_bound.
    """

    name: str
    equation: str
    starts: tuple[tuple[float, ...], ...]
    reach: tuple[float, ...]
    edge: int | None = None
    is_linear = False

    @property
    def label(self) -> str:
        """Its name in tables."""
        return _LABELS.get(self.name, self.name.replace("_", " "))

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters."""
        return len(self.starts[0])

    def holds(self, theta: Floats) -> bool:
        """Whether theta is within reach."""
        return bool(np.all(np.abs(theta) < self.reach))

    @abstractmethod
    def ln_weight(self, theta: Floats, x_X: Floats, V: int) -> Floats:
        """Ln w_x, [X]."""

    @abstractmethod
    def slopes(self, theta: Floats, x_X: Floats, V: int) -> Floats:
        """Derivatives of ln w_x by theta, [P, X]."""

    @abstractmethod
    def params(self, theta: Floats, V: int, share_1: float | None = None) -> Params:
        """The parameters as published; `share_1` is p_1."""


@dataclass(frozen=True)
class Exponential(Family):
    """Families that are linear in theta: ln w_x = theta . T_x.

    Attributes:
        names: "beta", "gamma" and "rate" are the negative coefficients of ln x, ln^2 x and x, "odds" is an addition to
            ln w_1.
    """

    names: tuple[str, ...] = ()
    is_linear = True

    def ln_weight(self, theta: Floats, x_X: Floats, V: int) -> Floats:
        """The product theta . T."""
        return np.asarray(theta @ self.slopes(theta, x_X, V))

    def slopes(self, theta: Floats, x_X: Floats, V: int) -> Floats:
        """T, which does not depend on theta."""
        return np.stack([_STATISTICS[name](x_X, V) for name in self.names])

    def params(self, theta: Floats, V: int, share_1: float | None = None) -> Params:
        """By name; for a lognormal also mu and sigma, None where gamma is 0."""
        params: Params = {name: float(value) for name, value in zip(self.names, theta, strict=True)}
        if "rate" in params:
            params["rate"] = float(theta[self.names.index("rate")]) / V
        if "gamma" in params:
            beta, gamma = (float(theta[self.names.index(name)]) for name in ("beta", "gamma"))
            params |= {"mu": (1 - beta) / (2 * gamma), "sigma": (0.5 / gamma) ** 0.5} if gamma > 0 else _NO_LOGNORMAL
        if "odds" in params:
            params["share_1"] = share_1
        return params


_STATISTICS: Final[dict[str, Callable[[Floats, int], Floats]]] = {
    "odds": lambda x_X, V: (x_X == 1).astype(np.float64),
    "beta": lambda x_X, V: -np.log(x_X),
    "gamma": lambda x_X, V: -(np.log(x_X) ** 2),
    "rate": lambda x_X, V: -x_X / V,  # in V, so that all parameters are of like magnitude
}
_NO_LOGNORMAL: Final[Params] = {"mu": None, "sigma": None}


@dataclass(frozen=True)
class Weibull(Family):
    """W_x = exp(-h (x-1)^s) - exp(-h x^s), a discretised Weibull of shape s, scale h^(-1/s); theta = (ln h, ln s)."""

    def ln_weight(self, theta: Floats, x_X: Floats, V: int) -> Floats:
        """Ln of the difference of the two survival functions, without cancellation."""
        below_X, step_X, _ = self._hazards(theta, x_X)
        return np.asarray(-below_X + np.log(-np.expm1(-step_X)))

    def slopes(self, theta: Floats, x_X: Floats, V: int) -> Floats:
        """In ln h and ln s."""
        below_X, step_X, ln_gain_X = self._hazards(theta, x_X)
        upto_X, growth_X, share_X = below_X + step_X, np.exp(theta[1]) * np.log(x_X), -np.expm1(-step_X)
        # d(h x^s) / d ln s is h x^s s ln x; this is its difference over a step
        difference_X = step_X * (growth_X + ln_gain_X) - upto_X * ln_gain_X
        return np.stack([step_X / share_X - upto_X, difference_X / share_X - upto_X * growth_X])

    def _hazards(self, theta: Floats, x_X: Floats) -> tuple[Floats, Floats, Floats]:
        """The hazards h (x-1)^s, h x^s less that, and s ln((x-1)/x), which is 0 for the first rank, not -infinity."""
        level, shape = np.exp(theta)
        is_first_X = x_X == 1
        upto_X = level * np.exp(shape * np.log(x_X))
        ln_gain_X = shape * np.log1p(-1.0 / np.where(is_first_X, np.inf, x_X))
        step_X = np.where(is_first_X, level, -upto_X * np.expm1(ln_gain_X))
        return upto_X - step_X, step_X, ln_gain_X

    def params(self, theta: Floats, V: int, share_1: float | None = None) -> Params:
        """Shape, scale, and the hazard h up to the first rank, from which the scale follows."""
        level, shape = (float(value) for value in np.exp(theta))
        return {"shape": shape, "scale": exp_or_none(-float(theta[0]) / shape), "hazard": level}


def _exponential(name: str, equation: str, start: dict[str, float], has_edge: bool = True) -> Exponential:
    """A family by the start of each parameter; the last of them has the edge, if there is one."""
    at_edge = len(start) - 1 if has_edge else None
    return Exponential(name, equation, (tuple(start.values()),), (inf,) * len(start), at_edge, names=tuple(start))


_LN, _LN2 = "x^(-beta)", "exp(-gamma ln^2 x)"

LOGNORMAL: Final = _exponential("lognormal_full", f"{_LN} {_LN2}", {"beta": 1.0, "gamma": 0.0})
POWER_LAW_CUTOFF: Final = _exponential("power_law_cutoff", f"{_LN} exp(-rate x)", {"beta": 1.0, "rate": 0.0})
FAMILIES: Final[dict[str, Family]] = {
    family.name: family
    for family in (
        LOGNORMAL,
        _exponential("power_law", _LN, {"beta": 1.0}, has_edge=False),
        POWER_LAW_CUTOFF,
        Weibull(
            "weibull", "exp(-((x-1)/scale)^shape) - exp(-(x/scale)^shape)", ((0.0, -1.5), (-1.0, -0.5)), (50.0, 10.0)
        ),
        _exponential(
            "lognormal_inflated",
            f"share_1 at x = 1, {_LN} {_LN2} beyond",
            {"odds": 0.0, "beta": 1.0, "gamma": 0.0},
        ),
    )
}
