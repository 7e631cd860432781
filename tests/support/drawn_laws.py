"""Points drawn from laws whose constants are known, for tests and for benchmarks/coverage_of_intervals.py."""

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from rbpx.laws.in_k import JointLaw, KForm, fit_joint_law
from rbpx.laws.intervals.estimate import Replicates, document_weights, effective_number
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.runs import Runs
from tests.support import surfaces

Floats = NDArray[np.float64]
Held = Counter[str]
OF_DOCUMENTS = np.logspace(4, 7, 5)
X_OF_DOCUMENTS = np.log(OF_DOCUMENTS) - np.log(OF_DOCUMENTS).mean()


def law_of_documents(
    moved_DN: Floats, weights_BD: Floats, scatter_N: Floats, tokens_D: Floats | None = None
) -> PowerLaw:
    """The law, with exponent .1, of the mean over documents that move ln y at each size; models scatter about it."""
    ln_y_N, n_D = (
        math.log(5) - 0.1 * X_OF_DOCUMENTS + scatter_N,
        np.ones(len(moved_DN)) if tokens_D is None else tokens_D,
    )
    replicate_BN = np.exp(ln_y_N + (weights_BD * n_D) @ moved_DN / (weights_BD @ n_D)[:, None])
    y_N = np.exp(ln_y_N + n_D @ moved_DN / n_D.sum())
    return fit_power_law(OF_DOCUMENTS, y_N, Replicates.of(replicate_BN, effective_number(n_D)), backtests=False)


def documents_that_move(n_documents: int, own: float, rng: np.random.Generator) -> Floats:
    """How far each document moves ln y: at every size alike, along ln S, and at each size by itself."""
    level, slope = rng.normal(size=(2, n_documents, 1))
    along = 0.05 * slope * X_OF_DOCUMENTS / X_OF_DOCUMENTS.max()
    return np.asarray(0.05 * level + along + own * rng.normal(size=(n_documents, len(OF_DOCUMENTS))))


GIVEN_S = np.geomspace(1e7, 1e10, 8)
GIVEN = {"C": 400.0, "alpha": 0.34, "E": 1.7}
GIVEN_SURFACE = {"A": 406.4, "B": 410.7, "E": 1.69, "alpha": 0.34, "beta": 0.28}


def given_law(seed: int, scatter: float = 0.003) -> Floats:
    """A law with an offset whose constants may be given."""
    noise = np.random.default_rng(seed).standard_normal(len(GIVEN_S))
    return np.asarray((GIVEN["E"] + GIVEN["C"] * GIVEN_S ** -GIVEN["alpha"]) * np.exp(scatter * noise))


def given_surface(seed: int, scatter: float = 0.005) -> Runs:
    """A surface whose constants may be given."""
    of = GIVEN_SURFACE
    S, D = (each.ravel() for each in np.meshgrid(np.geomspace(1e7, 1e9, 6), np.geomspace(1e9, 3e10, 5)))
    y = of["E"] + of["A"] * S ** -of["alpha"] + of["B"] * D ** -of["beta"]
    return Runs.of(S, D, y * np.exp(scatter * np.random.default_rng(seed).standard_normal(len(y))))


K = (1, 3, 10, 30, 100)
S_OF_K = np.geomspace(1e3, 1e6, 6)


def joint_law(rng: np.random.Generator, drift: float = 0.0, bend: float = 0.0) -> JointLaw:
    """-ln RBP_k of 40 documents of 60 tokens, read by 6 models that scatter about their law alike at all k."""
    z_S, x_K = np.log(S_OF_K) - np.log(S_OF_K).mean(), np.log(K) - np.log(K).mean()
    luck_DT = 0.5 * rng.normal(size=(40, 1)) + 0.75**0.5 * rng.normal(size=(40, 60))
    weights_BD = document_weights(40, 60, int(rng.integers(2**31)))
    y, y_B = [], []
    for z in z_S:
        u_DT = norm.cdf(0.9 * luck_DT + (1 - 0.81) ** 0.5 * rng.normal(size=luck_DT.shape))
        scatter = rng.normal(0, 0.02)
        ln_y_K = np.log(3.0) - 0.1 * 10 - 0.35 * x_K - (0.1 + drift * x_K) * z + bend * x_K**2 + scatter
        hits_DK = (u_DT[:, :, None] <= np.exp(-np.exp(ln_y_K))).sum(axis=1)
        y.append(-np.log(hits_DK.sum(axis=0) / 2400))
        y_B.append(-np.log(weights_BD @ hits_DK / 2400))
    joint = fit_joint_law(S_OF_K.tolist(), K, np.array(y), np.array(y_B))
    return joint


def simplest_where_neighbours_share(n_draws: int) -> int:
    """In how many draws BIC prefers one law for all k where residuals of neighbouring k go together, on one text."""
    rng, x_K = np.random.default_rng(10), np.log(K)
    root_KK = np.linalg.cholesky(np.exp(-np.abs(x_K[:, None] - x_K) / 3.0))
    simple = 0
    for _ in range(n_draws):
        law_NK = 1.0 - 0.1 * np.log(S_OF_K)[:, None] - 0.35 * x_K
        y_NK = np.exp(law_NK + 0.03 * rng.normal(size=law_NK.shape) @ root_KK.T)
        joint = fit_joint_law(S_OF_K.tolist(), K, y_NK, None)
        simple += min(joint.forms, key=lambda form: form.bic).form in (KForm.joint, KForm.drifting)
    return simple


X_OF_TIMES = np.linspace(0.0, 4.0, 9)


def cells_of_times(rng: np.random.Generator, n: int, c: float, never: float) -> Floats:
    """Counts of the cells after the first point: times that fall as exp(-c x), but for those never learned."""
    time = np.where(rng.random(n) < never, np.inf, rng.exponential(1 / c, n))
    last = len(X_OF_TIMES) - 1
    return np.bincount(np.minimum(np.searchsorted(X_OF_TIMES[1:], time), last), minlength=last + 1).astype(float)


BUDGET = 1e22


def both_forms(runs: Runs) -> list[Surface]:
    """The fits of both forms."""
    return [fit_surface(runs, form, n_replicates=0) for form in ("chinchilla", "kaplan")]


def true_loss(S: float, D: float) -> float:
    """That of the true surface at one place."""
    return float(surfaces.law(np.array([S]), np.array([D]))[0])


def least_within(T: float) -> tuple[float, float, float]:
    """S, D and the loss where training and serving cost BUDGET together, by a search along the true law."""

    def tokens(S: float) -> float:
        return (BUDGET - 2 * S * T) / (6 * S)

    ends = math.log(1e6), math.log(0.999 * BUDGET / (2 * T))
    found = minimize_scalar(
        lambda ln_S: true_loss(math.exp(ln_S), tokens(math.exp(ln_S))), bounds=ends, method="bounded"
    )
    S = math.exp(found.x)
    return S, tokens(S), found.fun


def least_to_reach(T: float) -> tuple[float, float, float]:
    """S, D and the share that is saved, of the fewest FLOPs to the best loss of BUDGET, by a search along that loss."""
    of, size = surfaces.TRUE, surfaces.true_optimum(BUDGET)
    wanted = true_loss(size, BUDGET / 6 / size)

    def tokens(S: float) -> float:
        return ((wanted - of["E"] - of["A"] * S ** -of["alpha"]) / of["B"]) ** (-1 / of["beta"])

    unreachable = (of["A"] / (wanted - of["E"])) ** (1 / of["alpha"])
    found = minimize_scalar(
        lambda ln_S: math.log(math.exp(ln_S) * (6 * tokens(math.exp(ln_S)) + 2 * T)),
        bounds=(math.log(unreachable * 1.0001), math.log(2 * size)),
        method="bounded",
    )
    S = math.exp(found.x)
    return S, tokens(S), 1 - math.exp(found.fun) / (BUDGET + 2 * size * T)


LR, BATCH = (each.ravel() for each in np.meshgrid(np.geomspace(1e-4, 1e-2, 13), np.geomspace(32, 2048, 10)))
BEST = {"y": 2.5, "lr": 1.3e-3, "batch": 300.0}


def sweep(seed: int, scatter: float = 0.004) -> Floats:
    """Losses of a sweep whose cost is quadratic in ln lr and ln batch."""
    of_lr, of_batch = np.log(LR / BEST["lr"]), np.log(BATCH / BEST["batch"])
    cost = 0.02 * of_lr**2 + 0.01 * of_batch**2 - 0.006 * of_lr * of_batch
    return np.asarray(BEST["y"] + cost + scatter * np.random.default_rng(seed).standard_normal(len(LR)))
