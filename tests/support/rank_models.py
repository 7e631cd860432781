"""Rank distributions in plain words: explicit probabilities, a search for the maximum, samples.

Shapes: V ranks of the vocabulary.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import nbinom, weibull_min

from rbpx.laws.ranks.family import RankFit

# Free parameters of each, and values to draw from; where mu and sigma are given they follow from beta and gamma.
TRUE: dict[str, dict[str, float]] = {
    "lognormal_full": {"beta": 1.3, "gamma": 0.04},
    "power_law": {"beta": 1.4},
    "power_law_cutoff": {"beta": 1.1, "rate": 0.01},
    "weibull": {"shape": 0.4, "scale": 8.0},
    "lognormal_inflated": {"share_1": 0.45, "beta": 0.9, "gamma": 0.06},
}
BOUNDS = {
    "beta": (-5.0, 20.0),
    "gamma": (0.0, 20.0),
    "rate": (0.0, 5.0),
    "shape": (0.02, 20.0),
    "scale": (1e-9, 1e7),
    "share_1": (1e-6, 1 - 1e-6),
}


def plain_ln_p(name: str, params: dict[str, Any], V: int) -> np.ndarray:
    """Ln p_x for x = 1..V, from the tail functions and masses of scipy where it has them."""
    x = np.arange(1, V + 1, dtype=np.float64)
    if name == "weibull":
        above = weibull_min.logsf(np.arange(V + 1), params["shape"], scale=params["scale"])
        ln_w = above[:-1] + np.log(-np.expm1(np.diff(above)))
    else:
        ln_w = -params["beta"] * np.log(x) - params.get("rate", 0.0) * x
        if name.startswith("lognormal"):
            ln_w -= params["gamma"] * np.log(x) ** 2
    if name == "lognormal_inflated":
        rest = ln_w[1:] + math.log1p(-params["share_1"]) - logsumexp(ln_w[1:])
        return np.r_[math.log(params["share_1"]), rest]
    return np.asarray(ln_w - logsumexp(ln_w))


def other_maximum(name: str, rank: np.ndarray, n_tokens: np.ndarray, V: int) -> float:
    """The highest log-likelihood, in nats, that simplex searches from three places reach within the bounds."""
    names = list(TRUE[name])
    bounds = [BOUNDS[key] for key in names]

    def loss(z: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            value = -float(n_tokens @ plain_ln_p(name, dict(zip(names, z, strict=True)), V)[rank - 1])
        return value if math.isfinite(value) else 1e300

    found = []
    for stretch in (1.0, 0.5, 0.1):
        start = [value * stretch for value in TRUE[name].values()]
        options = {"xatol": 1e-9, "fatol": 1e-9, "maxfev": 1500}
        found.append(minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options).fun)
    return -float(min(found))


def drawn(name: str, V: int, n: int, seed: int, **params: float) -> tuple[np.ndarray, np.ndarray]:
    p = np.exp(plain_ln_p(name, TRUE[name] | params, V))
    counts = np.random.default_rng(seed).multinomial(n, p / p.sum())
    return np.flatnonzero(counts) + 1, counts[counts > 0]


def heavy_tailed(V: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks as those of a model: Pr(R <= k) = exp(-0.8 k^(-0.6)), cut at V, where what lies beyond piles up."""
    u = np.random.default_rng(seed).uniform(size=n)
    return np.unique(np.ceil((0.8 / -np.log(u)) ** (1 / 0.6)).clip(1, V).astype(np.int64), return_counts=True)


def negative_binomial(V: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of a distribution that is none of the families, cut at V."""
    p = nbinom.pmf(np.arange(V), 0.3, 0.03)
    counts = np.random.default_rng(seed).multinomial(n, p / p.sum())
    return np.flatnonzero(counts) + 1, counts[counts > 0]


SAMPLES = {
    "heavy": heavy_tailed(400, 4000, seed=0),
    "lognormal": drawn("lognormal_inflated", 400, 4000, seed=1, gamma=0.2),
    "negative binomial": negative_binomial(400, 4000, seed=2),
}


def number(value: float | int | None) -> float:
    return float(value)


def numbers(fit: RankFit) -> list[float | None]:
    return [fit.loglik, fit.aic, fit.bic, fit.distance]
