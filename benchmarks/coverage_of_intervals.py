"""Counts how often intervals hold what their points were drawn from: 95 times of 100, where nothing else is said.

A row is one interval of one world; no test counts: what is counted over draws scatters. `!` marks what true
intervals of 95 % hold as seldom 1 time of 1,000. Programs of their own count for surfaces, predictions, loss to loss
and multipliers in size and tokens.

    python benchmarks/coverage_of_intervals.py [DRAWS, default 200] [WORD ...]

Words name rows by what they begin with: `units`, `"gap"`.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import coverage_of_answers, coverage_of_audits, coverage_of_laws
from benchmarks.prediction_coverage import Truth
from rbpx.laws.families.multiplier import Offset
from rbpx.laws.intervals.estimate import document_weights
from rbpx.laws.intervals.misfit import misfit
from rbpx.laws.names import Method
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.outliers import common_shift, outliers
from rbpx.laws.surface.runs import Runs
from rbpx.questions.gaps import GapsKeys
from rbpx.questions.gaps.pairs import pairs_of
from rbpx.questions.learning import LearningKeys
from rbpx.questions.learning.improvements import improvements
from rbpx.runs.select.groups import select
from rbpx.runs.tokens import tokens_of
from rbpx.store.sql import connect
from tests.support import drawn_answers, repeats
from tests.support.draws import fewest, holds, inside
from tests.support.surfaces import grid, law, ratios
from tests.support.synthetic import Truth as OfStore
from tests.support.synthetic import write_store

Held = Mapping[str, int]
BIASED_S, BIASED_ALPHA = np.array([1e6, 1e7, 1e8, 1e9]), 0.08
NOISES = {"models": (0.02, 0.0, 0.0), "text": (0.0, 0.02, 0.01), "both": (0.02, 0.01, 0.01)}
SETS = {8: ratios(4, 2), 18: grid(6, 3), 40: grid(8, 5)}


def of_biased_entropy(draws: int) -> Held:
    """The exponent of plug-in entropies of 6,000 tokens over 2,000 ranks, which are too low."""
    ln_x, rng, held = np.log(np.arange(1, 2001)), np.random.default_rng(0), Counter[str]()

    def p_of(exponent: float) -> np.ndarray:
        return np.asarray(np.exp(-exponent * ln_x) / np.exp(-exponent * ln_x).sum())

    def entropy(p: np.ndarray) -> np.ndarray:
        return np.asarray(-np.sum(p * np.log(p, where=p > 0, out=np.zeros_like(p)), axis=-1))

    true_N = 5.0 * (BIASED_S / 1e6) ** -BIASED_ALPHA
    p_NX = [p_of(brentq(lambda b, y=y: float(entropy(p_of(b))) - y, 0.1, 5.0)) for y in true_N]
    for seed in range(draws):
        counts_NDX = np.stack([rng.multinomial(60, p, size=100) for p in p_NX]).astype(np.float64)
        weights_BD = document_weights(100, 100, seed).astype(np.float64)
        y_BN = np.stack([entropy(weights_BD @ counts_DX / 6000) for counts_DX in counts_NDX], axis=1)
        y_N = [float(entropy(counts_DX.sum(axis=0) / 6000)) for counts_DX in counts_NDX]
        fit = fit_power_law(BIASED_S, y_N, y_BN)
        held["alpha"] += inside(fit.alpha_text.lo, BIASED_ALPHA, fit.alpha_text.hi)
    return held


def of_four_models_at_once(draws: int) -> Held:
    """Four new models of a law with an offset that twelve sizes tell of: by intervals of each, and by joint ones."""
    rng, held = np.random.default_rng(3), Counter[str]()
    S, targets = np.geomspace(1e6, 1e9, 12), np.array([3e9, 1e10, 3e10, 1e11])
    for _ in range(draws):
        y = (1 + 3 * (np.append(S, targets) / 1e6) ** -0.25) * np.exp(0.003 * rng.normal(size=16))
        for name, p in (("all, by that of each (less)", 0.05), ("all, jointly", 0.05 / 4)):
            told = average_forms(S, y[:12], targets.tolist(), each_form=False, p=p) or []
            held[name] += all(inside(each.lo, new, each.hi) for each, new in zip(told, y[12:], strict=True))
    return held


def of_misfit(n: int, draws: int) -> Held:
    """Points that a law holds of: whether their misfit is found, at 5 %."""
    x, rng = np.linspace(0, 9, n), np.random.default_rng(n)
    line = np.column_stack([np.ones(n), x - x.mean()])
    tests = [misfit(x, rng.normal(size=n), line) for _ in range(draws)]
    return {"not found": sum(test is not None and not test.found for test in tests)}


def of_clean_runs(n: int, draws: int) -> Held:
    """Runs of one surface, of which none is an outlier: whether none is named."""
    S, D = SETS[n]
    held = Counter[str]()
    for seed in range(draws):
        runs = Runs.of(S, D, law(S, D) * np.exp(0.01 * np.random.default_rng([55, n, seed]).standard_normal(n)))
        held["none named"] += not outliers(runs)
        held["the largest not named (.98)"] += common_shift(runs) is None
    return held


def of_repeats(truth: str, draws: int) -> Held:
    """R_D and R_N of trainings on repeated text, whether these determine them or not."""
    held, true = Counter[str](), repeats.TRUTHS[truth]
    for seed in range(draws):
        fit = fit_surface(repeats.draw(true, repeats.grid(), seed), "data_constrained", n_replicates=100)
        for name in ("R_D", "R_N"):
            each = fit.constants[name]
            held[name] += each.value is None or holds(each.lo, true[name], each.hi)
    return held


def of_slices(draws: int) -> Held:
    """The gap between the first and the last tokens of as many texts in one store."""
    S, held = (1_000, 20_000, 400_000, 8_000_000), Counter[str]()
    hard, easy = OfStore(S, C=6.0, alpha=0.12, scatter=0.02), OfStore(S, C=3.0, alpha=0.07, scatter=0.02)
    request = GapsKeys(resamples=100, k=10, slices={"early": "position <= 20"})
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(draws):
            store = write_store(folder, hard, seed, n_tokens=40, dataset=f"text{seed:03d}", late=easy, cut=20)
        with connect(store) as connection:
            for each in pairs_of(connection, select(connection, request), request):
                gap = each[0].gap
                held["delta"] += inside(gap.delta.lo, 0.05 if gap.swapped else -0.05, gap.delta.hi)
    return held


def of_improvements(draws: int) -> Held:
    """Slopes and shares of two token ids, over documents whose tokens differ; the truth is that of 20,000 of them."""
    truth, ids, held = OfStore(S=(1_000, 100_000, 10_000_000), shared=0.5), np.random.default_rng(1), Counter[str]()

    def rows(seed: int, D: int) -> dict[int, dict[str, float]]:
        with tempfile.TemporaryDirectory() as folder:
            store = write_store(folder, truth, seed, D, 30, token_DT=ids.integers(0, 4, (D, 30)))
            with connect(store) as connection:
                (group,) = select(connection, LearningKeys())
                found = improvements(tokens_of(connection, group, group.runs, LearningKeys()), {}, 1, least=1)
        return {row["token_id"]: row for row in found if row["kind"] == "token" and row["token_id"] in (0, 1)}

    true = rows(0, 20_000)
    for seed in range(1, draws + 1):
        for (token_id, row), name in product(rows(seed, 40).items(), ("slope", "share")):
            held[f"{name} of token {token_id}"] += row[f"{name}_lo"] <= true[token_id][name] <= row[f"{name}_hi"]
    return held


def worlds() -> Iterator[tuple[str, Callable[[int], Held]]]:
    """What each row is about, and how it is counted."""
    of = coverage_of_laws
    for n, (name, noise) in product((4, 7), NOISES.items()):
        yield f"law of {n} sizes, noise of {name}", lambda d, n=n, e=noise: of.of_power_law(d, Method.ols, n, *e)
    for method in (Method.weighted, Method.robust):
        yield f"law, {method}", lambda d, m=method: of.of_power_law(d, m, 7, *NOISES["both"])
    for name, noise in {**NOISES, "text": (0.0, 0.005, 0.01), "both": (0.01, 0.005, 0.01)}.items():
        yield (
            f"law with an offset, noise of {name}",
            lambda d, e=noise: of.of_power_law(d, Method.offset, 7, *e, E=0.8),
        )
    for n, scatter in product((3, 5, 10, 20, 100), (0.0, 0.02)):
        yield (
            f"documents: {n}, models scatter by {scatter}",
            lambda d, n=n, s=scatter: of.of_few_documents(d, n, s),
        )
    for n, sd in ((5, 1.0), (20, 1.5), (20, 2.0), (50, 1.5)):
        yield (
            f"documents: {n}, sd of ln length {sd}",
            lambda d, n=n, sd=sd: of.of_few_documents(d, n, 0.0, sd),
        )
    yield "entropy with its bias", of_biased_entropy
    for n, E in product((5, 7, 10), (0.0, 0.3, 1.0)):
        yield (
            f"level over forms, {n} sizes, E {E}",
            lambda d, n=n, E=E: {"size": of.of_size_at_a_level(d, Truth(0.12, n, E, 0.01))},
        )
    yield "predictions of four models", of_four_models_at_once
    for n in (4, 5, 7):
        yield f"misfit of {n} sizes", lambda d, n=n: of_misfit(n, d)
    for n in SETS:
        yield f"outliers of {n} runs", lambda d, n=n: of_clean_runs(n, d)
    yield "given: the true offset", lambda d: _not_doubted(of.of_given_offset(d, 1.7), d)
    yield "given: a prior of the offset", lambda d: {"a new model": of.of_prior_of_an_offset(d)[0]}
    yield (
        "given: the true offset of a surface",
        lambda d: {"not refused": int(np.sum(of.p_of_given_surface(d, 1.69) >= 0.05))},
    )
    for drift in (0.0, 0.02):
        yield f"one law for all k, drift {drift}", lambda d, drift=drift: _of_known(*of.of_joint_law(d, drift), d)
    cells = ((1.5, 0.2, 0.003, 7), (1.5, 0.2, 0.01, 5), (1.0, 0.2, 0.02, 10), (0.0, 0.12, 0.01, 7))
    for cell, offset in product(cells, (Offset.shared, Offset.free)):
        yield (
            f"multiplier, {offset} E, (E, alpha, scatter, n) = {cell}",
            lambda d, c=cell, o=offset: {"factor": of.of_multiplier(d, *c, o, seed=7)},
        )
    kinds = ("plain", "offset in step 1", "bent step 1", "lower end", "skewed step 2")
    for kind, n in product(kinds, (5, 8, 12)):
        yield f"success, {kind}, {n} models", lambda d, k=kind, n=n: {"a larger model": of.of_success(d, k, n)}
    for truth in repeats.TRUTHS:
        yield f"repeated text, {truth}", lambda d, truth=truth: of_repeats(truth, d)
    yield "best run of a budget", of.of_best_run
    yield "best run with serving", of.of_served_run
    yield "times of hits: exponent of the tail", lambda d: {"c": of.of_tail(d)}
    yield "best of a sweep", lambda d: of.of_sweep(d)[0]
    yield "gap of two texts, models", lambda d: coverage_of_answers.of_gaps(d, text=False)
    yield "gap of two texts, models and texts", lambda d: coverage_of_answers.of_gaps(d, text=True)
    yield "gap of slices", of_slices
    for ranks_of in (drawn_answers.power, drawn_answers.curved):
        yield f"law in k, {ranks_of.__name__}", lambda d, r=ranks_of: coverage_of_answers.of_laws_in_k(d, r)
    yield "law in k without documents", lambda d: {"slope": coverage_of_answers.of_nested_counts(d)}
    lengths = (((5,), 0.0, 0.0), ((1, 2, 5, 10), 0.0, 0.03), ((2,), 0.0, 0.1), ((1, 2, 5, 10), 0.08, 0.0))
    for cell in (*lengths, ((1, 2, 5, 10), 0.08, 0.05)):
        yield (
            "outcomes, n {}, correlation {}, scatter {}".format(*cell),
            lambda d, c=cell: coverage_of_answers.of_outcomes(d, *c),
        )
    yield "outcomes of documents", coverage_of_answers.of_outcomes_of_documents
    yield "ranks", coverage_of_answers.of_rank_distributions
    yield "units", lambda d: coverage_of_answers.of_units(d, 100_000)
    for sd in (0.03, 0.15, 0.4):
        yield f"emergence: crossing, noise {sd}", lambda d, sd=sd: _of_crossings(sd, d)
    yield "emergence: crossing over documents", lambda d: {"S": sum(coverage_of_answers.over_documents(d, 300)[0])}
    yield "emergence: C N S^-alpha", lambda d: {"alpha": sum(coverage_of_answers.joint_intervals(d)[0])}
    yield "attempts: items and samples", coverage_of_answers.of_items_and_samples
    yield "attempts: forecasts", lambda d: {"pass@k": coverage_of_answers.of_forecasts(d)}
    yield "audit", coverage_of_audits.of_shifts
    yield "improvements", of_improvements
    yield "stores", coverage_of_answers.of_stores


def _not_doubted(held: Counter[str], draws: int) -> Held:
    return {"alpha": held["alpha"], "not refused": draws - held["doubted"]}


def _of_known(held: Counter[str], known: int, draws: int) -> Held:
    """Counts of `known` draws, as of all."""
    return {name: round(n * draws / known) for name, n in held.items()}


def _of_crossings(sd: float, draws: int) -> Held:
    found, _ = coverage_of_answers.over_noise(sd, draws)
    return {"S": round(sum(found) * draws / len(found))}


def main(draws: int, words: list[str]) -> None:
    """Print a row for each interval."""
    print(f"| {draws} draws | interval | held |\n|---|---|---|")
    for name, count in worlds():
        if not words or name.startswith(tuple(words)):
            for interval, n in count(draws).items():
                mark = " !" if n < fewest(draws) else ""
                print(f"| {name} | {interval} | {n / draws:.3f}{mark} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2:])
