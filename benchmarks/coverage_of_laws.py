"""In how many draws intervals of laws hold what their points were drawn from, by the name of what is held."""

import math

import numpy as np
from scipy.stats import linregress

from benchmarks.prediction_coverage import Truth
from rbpx.laws.counts.times import fit_tails
from rbpx.laws.families.multiplier import Offset, fit_multiplier
from rbpx.laws.intervals.estimate import Estimate, document_weights
from rbpx.laws.names import Method
from rbpx.laws.power.fixed_parameters import fit_law_with_priors
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.prediction import TAILS, average_forms, find_crossings, fit_all_forms
from rbpx.laws.priors import FixedValues, Prior
from rbpx.laws.success.chain import feature_from_mixture, plausible_curves, predict_success
from rbpx.laws.success.sigmoid import fit_sigmoid
from rbpx.laws.surface.decision import BestRun, best_run
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors
from rbpx.laws.sweeps import SweepMethod
from rbpx.laws.sweeps import best_of as best_of_sweep
from tests.support import surfaces
from tests.support.drawn_laws import (
    BATCH,
    BEST,
    BUDGET,
    GIVEN,
    GIVEN_S,
    LR,
    OF_DOCUMENTS,
    X_OF_TIMES,
    Floats,
    Held,
    K,
    both_forms,
    cells_of_times,
    documents_that_move,
    given_law,
    given_surface,
    joint_law,
    law_of_documents,
    least_within,
    sweep,
    true_loss,
)
from tests.support.draws import holds, inside


def of_power_law(
    n_draws: int, method: Method, n: int, scatter: float, apart: float, shared: float, E: float = 0.0
) -> Held:
    """Laws of n sizes: scatter of the models, noise of the documents that differs between sizes, noise of all sizes."""
    found = Held()
    sizes = np.array([3_000, 8_000, 25_000, 80_000, 200_000, 1_000_000, 3_000_000], dtype=float)[:n]
    x, far = np.log(sizes) - np.log(sizes).mean(), 10 * sizes[-1]

    def law(S: Floats | float) -> Floats:
        return np.asarray(E + 3.0 * (np.asarray(S) / 1e5) ** -0.15)

    for seed in range(n_draws):
        rng = np.random.default_rng([seed, n])
        ln_y = np.log(law(sizes)) + scatter * rng.normal(size=n)
        of_these_models = -linregress(x, ln_y).slope
        ln_y = ln_y + apart * rng.normal(size=n) + shared * rng.normal()
        noise = bool(apart or shared)
        moved_BN = apart * rng.normal(size=(200, n)) + shared * rng.normal(size=(200, 1))
        fit = fit_power_law(sizes, np.exp(ln_y), np.exp(ln_y + moved_BN) if noise else None, method)
        said = fit.predict(far)
        new = float(law(far)) * math.exp(scatter * rng.normal())
        found["alpha"] += holds(fit.alpha.lo, 0.15, fit.alpha.hi)
        found["C"] += holds(fit.C.lo, 3.0 * 1e5**0.15, fit.C.hi)
        found["prediction"] += inside(said.lo, new, said.hi)
        if method is Method.offset:
            found["E"] += holds(fit.E.lo, E, fit.E.hi)
            found["closed"] += fit.alpha.lo is not None and fit.alpha.hi is not None
        if noise and method is Method.ols:
            found["text"] += inside(fit.alpha_text.lo, of_these_models, fit.alpha_text.hi)
        if scatter and method is Method.ols:
            explained = 0.15**2 * float(x @ x) / n
            r2 = explained / (explained + scatter**2 + apart**2)
            found["r2"] += inside(fit.r2.lo, r2, fit.r2.hi)
    return found


def of_few_documents(n_draws: int, n_documents: int, scatter: float, sd_ln_length: float = 0.0) -> Held:
    """Laws over few documents, of equal length or not, and their predictions on other documents."""
    rng, held = np.random.default_rng([n_documents, int(100 * scatter)]), Held()
    middle = float(np.log(OF_DOCUMENTS).mean())
    for seed in range(n_draws):
        of_models_N = scatter * rng.normal(size=len(OF_DOCUMENTS))
        weights_BD = document_weights(n_documents, 100, seed)
        tokens_D = np.exp(sd_ln_length * rng.normal(size=n_documents)) if sd_ln_length else None
        fit = law_of_documents(documents_that_move(n_documents, 0.01, rng), weights_BD, of_models_N, tokens_D)
        there = fit.predict(1e8)
        new = 5 * math.exp(-0.1 * (math.log(1e8) - middle) + scatter * rng.normal())
        held["alpha"] += inside(fit.alpha.lo, 0.1, fit.alpha.hi)
        held["C"] += inside(fit.C.lo, 5 * math.exp(0.1 * middle), fit.C.hi)
        held["other documents"] += inside(there.lo, new, there.hi)
    return held


def of_size_at_a_level(n_draws: int, truth: Truth) -> int:
    """In how many ladders the interval for the value of a new model holds its size."""
    x, ln_y = truth.draw(n_draws, np.random.default_rng(3))
    inside = 0
    for row in ln_y:
        (found,) = find_crossings(np.exp(x[:-1]), np.exp(row[:-1]), [math.exp(row[-1])]) or []
        inside += holds(found.ln_lo, float(x[-1]), found.ln_hi)
    return inside


def of_given_offset(n_draws: int, E: float) -> Held:
    """Laws with this offset given, true or not."""
    held = Held()
    for seed in range(n_draws):
        fit = fit_law_with_priors(GIVEN_S, given_law(seed), None, Method.offset, {"E": Prior(E)}, backtests=False)
        held["alpha"] += inside(fit.alpha.lo, GIVEN["alpha"], fit.alpha.hi)
        held["doubted"] += fit.pinned[0].p < 0.05
    return held


def of_prior_of_an_offset(n_draws: int) -> tuple[int, float]:
    """In how many draws a new model is held where E is of its prior, and how much narrower than without: the median."""
    rng, held, narrower, prior = np.random.default_rng(0), 0, [], Prior(1.7, 0.05)
    for seed in range(n_draws):
        E = float(rng.normal(1.7, 0.05))
        law = np.asarray(E + GIVEN["C"] * GIVEN_S ** -GIVEN["alpha"])
        y = law[:5] * np.exp(0.003 * np.random.default_rng(seed).standard_normal(5))
        new = law[-1] * math.exp(0.003 * rng.standard_normal())
        values = [FixedValues({"E": at}, weight) for at, weight in prior.values(0.0, float(y.min()))]
        (given,), (free,) = (
            average_forms(GIVEN_S[:5], y, [GIVEN_S[-1]], values),
            average_forms(GIVEN_S[:5], y, [GIVEN_S[-1]]),
        )
        held += given.lo <= new <= given.hi
        narrower.append((given.hi - given.lo) / (free.hi - free.lo))
    return held, float(np.median(narrower))


def p_of_given_surface(n_draws: int, E: float) -> Floats:
    """The p of a surface with this E given, true or not."""
    fits = (
        fit_surface_with_priors(given_surface(seed), "chinchilla", {"E": Prior(E)}, n_replicates=20)
        for seed in range(n_draws)
    )
    return np.array([fit.pinned[0].p for fit in fits])


def of_joint_law(n_draws: int, drift: float) -> tuple[Held, int]:
    """Laws over all k, and how many draws have one over the whole range: a narrower one has other truths."""
    rng, held = np.random.default_rng(5), Held()
    drawn = [joint for joint in (joint_law(rng, drift) for _ in range(n_draws)) if joint.of_range == K]
    for joint in drawn:
        held["drift"] += inside(joint.drift.lo, drift, joint.drift.hi)
        held["bend"] += joint.bend is not None and inside(joint.bend.lo, 0.0, joint.bend.hi)
        held["kappa"] += inside(joint.kappa.lo, 0.35, joint.kappa.hi)
        held["alpha"] += inside(joint.alpha.alpha.lo, 0.1, joint.alpha.alpha.hi)
    return held, len(drawn)


def of_tail(n_draws: int) -> int:
    """The percentile interval over documents of the exponent of a tail, as the question makes it."""
    rng, held = np.random.default_rng(3), 0
    for _ in range(n_draws):
        counts = np.array([cells_of_times(rng, 60, 0.5, 0.15) for _ in range(60)])
        weights = rng.multinomial(60, np.full(60, 1 / 60), 200)
        c = fit_tails(X_OF_TIMES, weights @ counts, True).c_B
        held += bool(np.quantile(c, 0.025) <= 0.5 <= np.quantile(c, 0.975))
    return held


def of_multiplier(n_draws: int, E: float, alpha: float, scatter: float, n: int, offset: Offset, seed: int) -> int:
    """A factor of two between two laws."""
    rng, held = np.random.default_rng(seed), 0
    x = np.geomspace(1e6, 1e9, n)
    for _ in range(n_draws):
        y = [(E + 60 * each**-alpha) * np.exp(rng.normal(0, scatter, n)) for each in (x, 2 * x)]
        overall = fit_multiplier((x, x), y, offset=offset)[0]["multiplier"]
        held += overall.lo is not None and holds(overall.lo, 2, overall.hi)
    return held


def of_success(n_draws: int, kind: str, n: int, far: float = 10.0) -> int:
    """The success of a held-out model, by two steps of which one may be wrong."""
    held = 0
    for seed in range(n_draws):
        rng = np.random.default_rng([seed, n])
        S_M = np.append(np.geomspace(1e6, 1e8, n), far * 1e8)
        ln_x = np.log(2.2) - 0.18 * np.log(S_M / 1e6)
        if kind == "bent step 1":
            ln_x += 0.08 * np.log1p(S_M / 2e7)
        if kind == "offset in step 1":
            ln_x = np.log(0.5 + 1.6 * (S_M / 1e6) ** -0.3)
        x_M = np.exp(ln_x + 0.01 * rng.standard_normal(n + 1))
        y_M = 0.25 + (0.55 if kind == "lower end" else 0.75) / (1 + np.exp(4 * (x_M - 1.1)))
        if kind == "skewed step 2":
            y_M = 0.25 + 0.75 * np.exp(-np.exp(4 * (x_M - 1.1)))
        y_M = np.clip(y_M + 0.01 * rng.standard_normal(n + 1), 0, 1)
        fits = fit_all_forms(S_M[:-1], x_M[:-1])
        curve = fit_sigmoid(x_M[:-1], y_M[:-1], 0.25)
        assert fits is not None
        assert curve is not None
        mixture = fits.at(np.log(S_M[-1:]))
        y = Estimate(*np.exp(mixture.quantiles(TAILS))[0, 0].tolist())
        of = plausible_curves(x_M[:-1], y_M[:-1], n, 0.25, (0.0, 1.0), 1000, seed)
        answer = predict_success(curve, of, feature_from_mixture(mixture, y, seed), seed)
        assert answer.ends is not None
        held += answer.ends[0] <= y_M[-1] <= answer.ends[1]
    return held


def _count(held: Held, of: BestRun, truth: dict[str, float]) -> None:
    for name, value in truth.items():
        held[name] += inside(getattr(of, name).lo, value, getattr(of, name).hi)


def of_best_run(n_draws: int) -> Held:
    """What is said of a budget: the best S and D, the loss there, and what half and a fifth of that size cost."""
    size, held = surfaces.true_optimum(BUDGET), Held()
    for seed in range(n_draws):
        best = best_run(both_forms(surfaces.draw((seed,), surfaces.grid(6, 5), 0.004).runs), BUDGET, seed=seed)
        assert best is not None
        assert best.S.value is not None
        at = best.S.value
        least = true_loss(at, BUDGET / 6 / at)
        truth = {"S": size, "D": BUDGET / 6 / size, "y": least}
        for name, times in (("half", 2), ("fivefold", 5)):
            truth[name] = true_loss(at / times, times * BUDGET / 6 / at) / least - 1
        _count(held, best, truth)
    return held


def of_served_run(n_draws: int) -> Held:
    """What is said of a budget that also pays for serving 1e12 tokens."""
    T, held = 1e12, Held()
    S, D, _ = least_within(T)
    for seed in range(n_draws):
        runs = surfaces.draw((seed,), surfaces.grid(6, 5), 0.004).runs
        served = best_run(both_forms(runs), BUDGET, seed=seed, T=T)
        assert served is not None
        assert served.S.value is not None
        assert served.D.value is not None
        assert math.isclose(6 * served.S.value * served.D.value + 2 * served.S.value * T, BUDGET, rel_tol=1e-6)
        _count(held, served, {"S": S, "D": D, "y": true_loss(served.S.value, served.D.value)})
    return held


def of_sweep(n_draws: int) -> tuple[Held, Floats, Floats]:
    """The best of a sweep; beside it, how far its y and the least y of all runs are off."""
    held, off, least = Held(), [], []
    for seed in range(n_draws):
        y = sweep(seed)
        best = best_of_sweep(y, {"lr": LR, "batch": BATCH}, seed=seed)
        assert best.how is SweepMethod.quadratic
        off.append(best.y.value - BEST["y"])
        least.append(y.min() - BEST["y"])
        for name, estimate in (("y", best.y), *best.at.items()):
            held[name] += inside(estimate.lo, BEST[name], estimate.hi)
    return held, np.array(off), np.array(least)
