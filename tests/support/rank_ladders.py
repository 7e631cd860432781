"""Ranks drawn from forms whose parameters are lines in ln S, and intervals of a size that is held out."""

import numpy as np

from rbpx.laws.intervals.estimate import half_width
from rbpx.laws.ranks.closure import fit_form, scatter_half_width
from rbpx.laws.ranks.quadrature import RankNodes, every_rank, nodes_of
from rbpx.laws.ranks.shapes import RANK_FORMS, ln_mixture

V, K = 3000, (1, 7, 100, 1000)
S = np.geomspace(1e3, 1e6, 7)
AT = {  # a line in ln S for each parameter: at the smallest size, at the largest
    "power_law_cutoff": ((0.9, 2.5), (1.1, 3.3)),
    "geometric_and_power": ((-2.0, -1.0, 0.9, 1.0), (-0.8, 0.5, 1.1, 1.2)),
}


def every() -> RankNodes:
    """Each rank a place: the plain way."""
    return every_rank(V, K)


def ladder(name: str) -> np.ndarray:
    lo, hi = map(np.array, AT[name])
    return lo + np.linspace(0, 1, len(S))[:, None] * (hi - lo)


def counts(rng: np.random.Generator, name: str, theta_NP: np.ndarray, n: int = 20_000) -> np.ndarray:
    p_NV = np.exp(ln_mixture(RANK_FORMS[name].shares(theta_NP, every())))
    return np.stack([rng.multinomial(n, p / p.sum()) for p in p_NV]).astype(float)


def at_nodes(nodes: RankNodes, seen_NV: np.ndarray) -> np.ndarray:
    x_V = np.arange(1, V + 1, dtype=float)
    return np.stack([nodes.moved(x_V[n > 0], n[n > 0]) for n in seen_NV])


def held_out_sizes(n_draws: int) -> tuple[int, int]:
    """How often the interval of the largest size holds it, by the form that was drawn and by a lognormal.

    Models scatter about the laws of their parameters.
    """
    nodes, rng = nodes_of(V, K), np.random.default_rng(3)
    held = dict.fromkeys(("geometric_and_power", "lognormal_full"), 0)
    for _ in range(n_draws):
        theta_NP = ladder("geometric_and_power")
        theta_NP[:, 0] += rng.normal(0, 0.02, len(S))
        seen_NV = counts(rng, "geometric_and_power", theta_NP)
        y_NY = -np.log(np.cumsum(seen_NV / 20_000, axis=1)[:, np.array(K) - 1])
        for name in held:
            fit = fit_form(RANK_FORMS[name], nodes, S[:-1], at_nodes(nodes, seen_NV[:-1]))
            off_N = np.log(y_NY[:-1, 0] / fit.derived(S[:-1])[:, 0])  # at k = 1
            scatter, dof, unit = scatter_half_width(off_N, S[:-1], S[-1])
            half = half_width(scatter=scatter, dof=dof, unit=unit)
            held[name] += bool(abs(np.log(y_NY[-1, 0] / fit.derived(S[-1:])[0, 0])) <= half)
    return held["geometric_and_power"], held["lognormal_full"]
