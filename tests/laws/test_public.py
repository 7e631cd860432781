"""The interface of `rbpx.laws`: its examples, its numbers by second ways, what it says of mistakes, its page."""

import contextlib
import doctest
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

import rbpx.laws
from rbpx.laws import (
    bootstrap,
    fit_k_law,
    fit_power_law,
    fit_schedule,
    fit_surface,
    intervals,
    predict,
    public,
    rank_distributions,
)
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.prediction.verdict import backtest_averaged, widening_of
from rbpx.laws.surface.averaged import backtest_budgets, predict_averaged
from rbpx.laws.surface.fit import fit_surface as fit_of_runs
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status
from tests.support.places import DOCS

PUBLISHED = {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658}  # arXiv 2404.10102
PAGE = (DOCS / "howto" / "laws-in-python.md").read_text(encoding="utf-8")


def drawn() -> pd.DataFrame:
    """Runs of Chinchilla's surface with a scatter of 0.2 %."""
    S, D = (each.ravel() for each in np.meshgrid(np.geomspace(3e7, 1e10, 6), np.geomspace(1e9, 3e11, 6)))
    y = PUBLISHED["E"] + PUBLISHED["A"] / S ** PUBLISHED["alpha"] + PUBLISHED["B"] / D ** PUBLISHED["beta"]
    y *= np.exp(np.random.default_rng(0).normal(0, 0.002, len(S)))
    return pd.DataFrame({"S": S, "D": D, "y": y, "run": [f"run {n // 2}" for n in range(len(S))]})


@pytest.mark.parametrize("module", [public, intervals.bootstrap])
def test_examples_of_docstrings_run(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_importing_a_module_of_laws_loads_no_more_than_it_needs() -> None:
    loaded = "import rbpx.laws.names, sys; print('rbpx.laws.public' in sys.modules, 'scipy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", loaded], text=True).split() == ["False", "False"]
    anyway = "import rbpx.laws.public; from rbpx.laws import predict; print(callable(predict))"
    assert subprocess.check_output([sys.executable, "-c", anyway], text=True).split() == ["True"]
    assert set(rbpx.laws.__all__) <= set(dir(rbpx.laws))
    with pytest.raises(AttributeError, match=r"has no attribute 'fit'; it has .*fit_power_law"):
        rbpx.laws.fit  # type: ignore[attr-defined]  # noqa: B018


def test_a_power_law_is_the_line_of_polyfit() -> None:
    S, y = np.geomspace(1e7, 3e9, 6), 20 * np.geomspace(1e7, 3e9, 6) ** -0.1 * np.array([1, 1.01, 0.99, 1, 1.02, 0.98])
    law = fit_power_law("S", "y", data=pd.DataFrame({"S": S, "y": y}))
    assert law.status is Status.ok
    assert fit_power_law(S, y, judge=False).status is Status.not_judged
    line = np.polyfit(np.log(S), np.log(y), 1)
    assert law.predict(1e10).y == pytest.approx(np.exp(np.polyval(line, np.log(1e10))), rel=1e-9)
    json.dumps(law.record(), allow_nan=False)


def test_weights_replicates_and_known_constants_enter_a_power_law() -> None:
    S, y, w = np.geomspace(1e7, 1e9, 5), np.array([4.1, 3.4, 3.0, 2.7, 2.3]), np.array([1.0, 1, 2, 3, 5])
    slope, _ = np.polyfit(np.log(S), np.log(y), 1, w=np.sqrt(w))  # which squares what it is given
    assert fit_power_law(S, y, weights=w).alpha.value == pytest.approx(-slope, rel=1e-9)
    assert fit_power_law(S, y, method="offset", given={"E": 1.5}).E.value == pytest.approx(1.5, rel=1e-12)
    y_BN = y * np.exp(np.random.default_rng(0).normal(0, 0.01, (100, 5)))
    assert fit_power_law(S, y, y_replicates=y_BN, n_effective=50).interval == "documents and models"


def test_intervals_of_a_law_have_the_level_that_is_asked_for_and_its_status_does_not() -> None:
    """Of a line alpha +- t stderr; with E the exponents at which the sum of squares is that of the level."""
    S = np.geomspace(1e7, 3e9, 8)
    y = (1.7 + 20 * (S / 1e7) ** -0.3) * np.exp(0.01 * np.array([1, -1, 0.5, -1, 1, 0, -0.5, 0.5]))
    for method in ("ols", "offset"):
        usual, law = fit_power_law(S, y, method=method), fit_power_law(S, y, method=method, level=0.8)
        assert (law.alpha.value, law.reasons, law.record()["level"]) == (usual.alpha.value, usual.reasons, 0.8)
        assert fit_power_law(S, y, method=method, level=0.95).record() == usual.record()
        assert (law.r2.ends is None) is (method == "offset")
        n, squares = len(S) - (2 if method == "ols" else 3), float(np.sum(np.square(law.residuals_ln)))
        for of, t in ((law, student.ppf(0.9, n)), (usual, student.ppf(0.975, n))):
            if method == "ols":
                assert of.alpha.ends == pytest.approx(
                    of.alpha.value + t * of.alpha.stderr * np.array([-1, 1]), rel=1e-9
                )
                continue
            for alpha in of.alpha.ends or ():
                held = fit_power_law(S, y, method=method, given={"alpha": alpha}, judge=False)
                assert np.sum(np.square(held.residuals_ln)) == pytest.approx(squares * (1 + t**2 / n), rel=2e-3)


def in_each_unit(usual: Estimate, other: Estimate) -> float:
    """How wide an interval is by another, on both sides of the value."""
    sides = [(end - other.value) / (wide - other.value) for end, wide in zip(other.ends, usual.ends, strict=True)]
    assert sides[0] == pytest.approx(sides[1], rel=1e-6)
    return sides[0]


def test_other_laws_have_intervals_of_each_level_by_the_same_quantiles_and_one_status() -> None:
    """A fifth of the draws lie outside .8: the ends come nearer as the quantiles of Student's t, or of a normal, do."""

    def by(dof: float) -> float:
        return student.ppf(0.9, dof) / student.ppf(0.975, dof)

    k, rbp = np.array([1, 2, 5, 10, 50, 100]), np.array([0.32, 0.4, 0.51, 0.58, 0.74, 0.79])
    shares = np.clip(rbp + np.random.default_rng(0).normal(0, 0.01, (50, 1)), 0, 1)
    for dof, how in ((4, {}), (29, {"rbp_replicates": shares, "n_effective": 30})):
        usual, law = fit_k_law(k, rbp, **how), fit_k_law(k, rbp, **how, level=0.8)
        assert in_each_unit(usual.alpha, law.alpha) == pytest.approx(by(dof), rel=1e-9)
        assert in_each_unit(usual.C.ln(), law.C.ln()) == pytest.approx(by(dof), rel=1e-9)
        of_bend = in_each_unit(usual.bend.curvature, law.bend.curvature)
        assert of_bend == pytest.approx(by(dof if how else 3), rel=1e-9)
        assert (law.reasons, law.record()["level"]) == (usual.reasons, 0.8)
    flat = [fit_k_law([1, 2, 3, 4], [0.4, 0.2, 0.3, 0.4], level=level) for level in (0.95, 0.05)]
    assert [law.alpha.leaves_out_0 for law in flat] == [False, True]
    assert flat[1].reasons == flat[0].reasons == (Status.no_trend, Status.barely_determined)

    runs = drawn()
    usual, fit = (fit_surface("S", "D", "y", data=runs, n_replicates=40, level=level) for level in (0.95, 0.8))
    for name in ("A", "B", "E", "alpha", "beta"):
        ends = (each.constants[name].ln() if name in "AB" else each.constants[name] for each in (usual, fit))
        assert in_each_unit(*ends) == pytest.approx(by(36 - 5), rel=1e-9)
    best = (each.ln() for each in (usual.optimum(1e22).S, usual.optimum(1e22, level=0.8).S))
    assert in_each_unit(*best) == pytest.approx(by(36 - 5), rel=1e-9)
    assert (fit.record()["level"], "level" in usual.record()) == (0.8, False)
    few = runs[::5].assign(y=runs.y[::5] * np.exp(np.random.default_rng(0).normal(0, 0.1, 8)))
    loose, tight = (fit_surface("S", "D", "y", data=few, n_replicates=40, level=level) for level in (0.95, 0.01))
    assert tight.constants["alpha"].hi - tight.constants["alpha"].lo < tight.constants["alpha"].value
    assert Status.barely_determined in loose.reasons
    assert tight.reasons == loose.reasons

    held = np.minimum(np.arange(1, 5001) / 500, 1)
    seen = 2.9 + 0.4 * (np.cumsum(held**0.6) / 1e4) ** -0.5
    usual, law = fit_schedule([held], [seen]), fit_schedule([held], [seen], level=0.8)
    assert usual.constants["E"].hi - usual.constants["E"].value == pytest.approx(2 * np.sqrt(usual.at.cov[0, 0]))
    for name in ("E", "alpha"):
        assert in_each_unit(usual.constants[name], law.constants[name]) == pytest.approx(by(np.inf), rel=1e-9)
    assert law.reasons == usual.reasons


def test_a_surface_and_its_optimum_are_the_equation_with_its_constants() -> None:
    fit = fit_surface("S", "D", "y", data=drawn(), n_replicates=0)
    A, B, E, alpha, beta = (fit.constants[name].value for name in ("A", "B", "E", "alpha", "beta"))
    assert fit.predict(7e9, 1.4e12).within["chinchilla"].value == pytest.approx(
        E + A * 7e9**-alpha + B * 1.4e12**-beta, rel=1e-5
    )
    best = fit.optimum(1e22).S.value
    assert best == pytest.approx((alpha * A / (beta * B) * (1e22 / 6) ** beta) ** (1 / (alpha + beta)))


def test_a_surface_has_intervals_over_runs_and_a_record() -> None:
    runs = drawn()
    fit = fit_surface("S", "D", "y", data=runs, runs="run")
    assert (fit.n_points, fit.n_runs, fit.status) == (36, 18, Status.ok)
    for name, value in PUBLISHED.items():
        lo, hi = fit.constants[name].lo, fit.constants[name].hi
        width = hi - lo
        assert lo - width / 2 < value < hi + width / 2
    record = json.loads(json.dumps(fit.record(), allow_nan=False))
    assert record["constants"]["E"] == [fit.constants["E"].value, fit.constants["E"].lo, fit.constants["E"].hi]
    again = fit_surface(record["S"], record["D"], record["y"], runs=record["group"], form=record["form"])
    assert again.record() == record


def test_a_surface_takes_constants_that_are_known() -> None:
    fit = fit_surface("S", "D", "y", data=drawn(), given={"E": 1.8, "alpha": (0.35, 0.001)}, n_replicates=0)
    assert fit.constants["E"].value == pytest.approx(1.8, rel=1e-12)
    assert fit.constants["alpha"].value == pytest.approx(0.35, abs=0.002)


def test_a_prediction_of_a_line_without_scatter_is_on_it() -> None:
    S = np.geomspace(1e7, 1e9, 5)
    frame = pd.DataFrame({"S": S, "loss": 30 * S**-0.12})
    several = predict("S", "loss", [3e9, 1e10], data=frame)
    assert [each.S for each in several] == [3e9, 1e10]
    assert [each.y for each in several] == pytest.approx([30 * 3e9**-0.12, 30 * 1e10**-0.12], rel=1e-3)
    assert predict(S, frame["loss"], 1e10) == several[1]
    assert sum(several[0].weights.values()) == pytest.approx(1)
    assert json.loads(json.dumps(several[0].record(), allow_nan=False))["y"] == several[0].y


CURVED = np.geomspace(1e7, 1e10, 8), 3 * np.geomspace(1, 1e3, 8) ** -0.3 + 1.5


def test_a_curved_law_bends_and_its_predictions_have_the_status_and_the_width_of_the_verb() -> None:
    S, y = CURVED
    mixed = np.random.default_rng(0).permutation(8)
    law = fit_power_law(S[mixed], y[mixed])
    assert law.reasons == fit_power_law(S, y).reasons
    assert Status.bends in law.reasons
    assert repr(law).startswith(f"y = {law.C.value:.4g} S^-{law.alpha.value:.4g} (alpha {law.alpha.lo:.4g} to ")
    assert repr(law).endswith(f"8 points): {law.status.label}")
    there, far = law.predict(5e10), law.predict(1e12)
    assert (there.reasons, far.reasons) == (law.reasons, (*law.reasons, Status.beyond))
    noisy = y * np.exp(0.02 * np.array([1, -1, 1, 1, -1, -1, 1, -1]))
    over = predict(S, noisy, 5e10)
    tests = backtest_averaged(S.tolist(), noisy.tolist())
    assert over.widened == widening_of(tests, 8)
    assert over.status is not None
    assert predict(S, noisy, 5e11).reasons[-1] is Status.beyond
    narrow = predict(S, noisy, 5e10, level=0.5)
    assert over.lo < narrow.lo < narrow.y < narrow.hi < over.hi


def test_arrays_go_in_and_out() -> None:
    S, y = CURVED
    law = fit_power_law(S, y, method="offset")
    several = law.predict(np.array([1e9, 2e11]), level=0.9)
    one = law.predict(2e11, level=0.9)
    assert (several.y[1], several.lo[1], several.hi[1], several.beyond[1]) == (one.y, one.lo, one.hi, one.beyond)
    assert several.status.tolist() == [Status.ok, Status.beyond]
    square = law.predict(np.array([[1e9, 1e10], [2e10, 2e11]]), level=0.9)
    assert (square.hi.shape, square.hi[1, 1], square.status[1, 1]) == ((2, 2), one.hi, Status.beyond)
    surface = fit_surface("S", "D", "y", data=drawn(), n_replicates=0)
    at = surface.predict(np.array([1e9, 2e10]), np.array([1e11, 1e12]))
    alone = surface.predict(2e10, 1e12)
    assert (at.y[1], at.lo[1], at.hi[1]) == pytest.approx((alone.value, alone.lo, alone.hi), rel=1e-6)
    assert surface.predict(np.array([1e9, 1e12]), 1e12).status.tolist() == [Status.ok, Status.beyond]
    assert surface.predict(2e10, 1e12, level=0.5).lo > alone.lo


def test_a_prediction_in_size_and_tokens_is_averaged_with_backtests_and_judged() -> None:
    runs = drawn()
    surface = fit_surface("S", "D", "y", data=runs)
    answer = surface.predict(2e10, 5e11)
    points, forms = Runs.of(runs["S"], runs["D"], runs["y"]), ("chinchilla", "kaplan")
    fits = [fit_of_runs(points, form, n_replicates=0) for form in forms]
    (plain,) = predict_averaged(fits, [(2e10, 5e11)], backtest_budgets(points, forms))
    assert (answer.value, answer.lo, answer.hi) == pytest.approx((plain.y.value, plain.y.lo, plain.y.hi), rel=1e-9)
    assert answer.status is Status.ok
    assert surface.predict(1e12, 1e14).status is Status.beyond
    quick = fit_surface("S", "D", "y", data=runs, n_replicates=0, judge=False)
    assert quick.status is quick.predict(2e10, 5e11).status is Status.not_judged
    (narrow,) = predict_averaged(fits, [(2e10, 5e11)], ())
    assert quick.predict(2e10, 5e11).lo == pytest.approx(narrow.y.lo, rel=1e-9)
    assert plain.widened > 1 or plain.y == narrow.y


def test_what_a_mask_hides_is_not_fitted() -> None:
    S, y = CURVED
    masked = np.ma.masked_array([*y, 99.0], mask=[0] * 8 + [1])
    assert fit_power_law([*S, 1e6], masked).record() == fit_power_law(S, y).record()
    y_BN = y * np.exp(np.random.default_rng(0).normal(0, 0.01, (40, 8)))
    also_BN = np.column_stack([y_BN, np.ones(40)])
    law = fit_power_law([*S, 1e6], masked, y_replicates=also_BN)
    assert law.record() == fit_power_law(S, y, y_replicates=y_BN).record()
    ahead = np.ma.masked_array([1e11, 1.0], mask=[0, 1])
    assert law.predict(ahead).y.tolist() == [law.predict(1e11).y]
    assert [each.S for each in predict(S, y, ahead)] == [1e11]

    runs, of_run = drawn(), np.ma.masked_array(drawn()["run"], mask=[1] + [0] * 35)
    surface = fit_surface(runs["S"], runs["D"], runs["y"], runs=of_run, n_replicates=0)
    assert (surface.n_points, surface.n_runs) == (35, 18)
    assert surface.predict(ahead, 1e11).S.tolist() == [1e11]

    hits = np.ma.masked_array([12, 30, 7, 21, 99], mask=[0, 0, 0, 0, 1])
    shown = bootstrap({"hits": hits, "n": [40, 80, 30, 50, 1]}, lambda of: of["hits"] / of["n"], tokens=[1, 2, 3, 4, 9])
    kept = {"hits": [12, 30, 7, 21], "n": [40, 80, 30, 50]}
    assert shown == bootstrap(kept, lambda of: of["hits"] / of["n"], tokens=[1, 2, 3, 4])

    held = np.minimum(np.arange(1, 5001) / 500, 1)
    seen = 2.9 + 0.4 * (np.cumsum(held**0.6) / 1e4) ** -0.5
    unknown = np.arange(5000) % 3 == 0
    hidden = fit_schedule([held], [np.ma.masked_array(np.where(unknown, 9.0, seen), unknown)])
    assert hidden.constants == fit_schedule([held], [np.where(unknown, np.nan, seen)]).constants


def test_what_is_fitted_and_predicted_prints_as_a_person_reads_it() -> None:
    S, y = CURVED
    law = fit_power_law(S, y, method="offset", given={"E": np.float32(1.5)}, level=0.95)
    assert repr(law).startswith("y = 1.5 + ")
    over = predict(S, y * np.exp(0.02 * np.array([1, -1, 1, 1, -1, -1, 1, -1])), 5e10)
    assert repr(over) == f"{over.y:.4g} ({over.lo:.4g} to {over.hi:.4g}) at S = 5e+10: {over.status.label}"
    assert repr(Estimate(2.0, 1.5, 2.51234)) == "2 (1.5 to 2.512)"
    assert [repr(Estimate(2.0)), repr(Estimate())] == ["2 (no interval)", "unknown"]
    surface = fit_surface("S", "D", "y", data=drawn(), n_replicates=0)
    assert repr(surface).startswith("chinchilla of 36 runs: A ")
    answer = surface.predict(2e10, 5e11)
    assert repr(answer) == f"{answer.value:.4g} ({answer.lo:.4g} to {answer.hi:.4g}): passes"
    held = np.minimum(np.arange(1, 5001) / 500, 1)
    seen = fit_schedule([held], [2.9 + 0.4 * (np.cumsum(held**0.6) / 1e4) ** -0.5])
    assert repr(seen).startswith("L = E + A x^-alpha - C a: E 2.9")
    assert repr(seen).endswith(": no decay seen")
    (ranks,) = rank_distributions([1, 1, 2, 3], 10, names=["power_law"])
    assert repr(ranks).startswith(f"power_law: beta {ranks.params['beta']:.4g}, ")
    assert repr(ranks).endswith(": passes")


def test_accuracies_stay_within_their_bounds() -> None:
    S = np.geomspace(1e7, 1e9, 6)
    accuracy = 1 / (1 + 6 * (S / 1e7) ** -0.6 * np.exp(0.02 * np.array([1, -1, 0.5, -0.5, 1, -1])))
    near, far = predict(S, accuracy, [1e10, 1e14], bounds=(0, 1))
    assert near.y == pytest.approx(1 / (1 + 6 * 1e3**-0.6), rel=0.02)
    assert near.lo < near.y < near.hi < 1
    assert 0.99 < far.y < 1
    errors = predict(S, 1 - accuracy, 1e10, bounds=(0, 1))
    assert errors.y == pytest.approx(1 - near.y, rel=1e-6)
    assert (errors.lo, errors.hi) == pytest.approx((1 - near.hi, 1 - near.lo), rel=1e-6)
    sizes = np.geomspace(1e6, 1e9, 6)
    odds = 30 * sizes**-0.25 * np.exp(0.12 * np.random.default_rng(2).standard_normal(6))
    known = predict(sizes, 1 / (1 + odds), 1e10, bounds=(0, 1))  # .72 to .97, though the odds span a factor of 12
    assert (known.lo > 0.7, known.hi < 1, known.reasons) == (True, True, ())


def test_a_law_in_k_is_the_line_of_polyfit() -> None:
    k, rbp = np.array([1, 2, 5, 10, 50, 100]), np.array([0.32, 0.4, 0.51, 0.58, 0.74, 0.79])
    law = fit_k_law("k", "rbp", data={"k": k, "rbp": rbp})
    slope, intercept = np.polyfit(np.log(k), np.log(-np.log(rbp)), 1)
    assert law.alpha.value == pytest.approx(-slope, rel=1e-9)
    assert law.C.value == pytest.approx(np.exp(intercept), rel=1e-9)
    assert law.interval == "nested counts"
    shares = np.clip(rbp + np.random.default_rng(0).normal(0, 0.01, (50, 1)), 0, 1)
    assert fit_k_law(k, rbp, rbp_replicates=shares, n_effective=30).interval == "documents"


def test_the_best_distribution_of_ranks_comes_first() -> None:
    V = 2000
    x = np.arange(1, V + 1)
    ranks = np.random.default_rng(0).choice(x, 5000, p=x**-1.4 / (x**-1.4).sum())
    fits = rank_distributions(ranks, V)
    scores = [np.inf if fit.aic is None else fit.aic for fit in fits]
    assert scores == sorted(scores)
    counted, n = np.unique(ranks, return_counts=True)
    of_counts = rank_distributions("rank", V, counts="n", data=pd.DataFrame({"rank": counted, "n": n}))
    assert [fit.aic for fit in of_counts] == [fit.aic for fit in fits]


S3, y3 = [1e7, 1e8, 1e9], [4.0, 3.0, 2.5]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fit_surface("S", S3, y3), "S='S' is no column of data=, which has: none"),
        (lambda: fit_surface("N", "D", "y", data=drawn()), "N.* is no column of data=, which has: S, D, y, run"),
        (lambda: fit_surface(S3, S3, [1, 2]), r"one shape \[N\], got S \[3\], D \[3\], y \[2\]"),
        (lambda: fit_surface(S3, S3, ["a", "b", "c"]), "y must be real numbers: could not convert"),
        (lambda: fit_surface([-1.0, 1.0], [1, 2], [1, 2]), "S must be positive and finite, got -1"),
        (lambda: fit_surface(S3, S3, y3, form="chinchila"), "'chinchila' is unknown; known: chinchilla, kaplan"),
        (lambda: fit_surface(S3, S3, y3, objective="l2"), "objective='l2' is unknown; known: log_huber"),
        (lambda: fit_surface(S3, S3, y3, given={"R_D": 1}), "given='R_D' is unknown; known: A, B, E, alpha, beta"),
        (lambda: fit_surface(S3, S3, y3).predict(1e9, 1e9), "no numbers: too_few_sizes"),
        (lambda: predict([1, 2], [1, 2], 3), "at least 3 different sizes"),
        (lambda: predict(S3, [1, 0, 1], 1e9), r"of one sign and not 0, got 0.0 \(number 2 of 3\)"),
        (lambda: predict(S3, y3, -1.0), "at must be positive and finite, got -1.0"),
        (lambda: fit_k_law([1, 10, 10], [0.1, 0.2, 0.3]), "k must increase"),
        (lambda: fit_k_law([1, 10, 20], [0.1, 0.2, 30]), "rbp must be shares between 0 and 1, got 30"),
        (lambda: fit_k_law([1, 10], [0.1, 0.2], rbp_replicates=[[0.1]]), r"rbp_replicates needs the shape \[B, 2\]"),
        (lambda: fit_k_law([1, 10], [0.1, 0.2], method="least"), "method='least' is unknown; known: ols"),
        (lambda: rank_distributions([1, 2], 5, names=["zipf"]), "zipf is not a known distribution"),
        (lambda: fit_power_law(S3, [4.0, np.nan, 2.5]), r"y must be positive and finite, got nan \(number 2 of 3\)"),
        (lambda: fit_power_law(S3, [4.0, 3.0 + 1j, 2.5]), r"y must be real numbers: got \(3\+1j\)"),
        (lambda: fit_power_law(S3, y3, y_replicates=[[4, 3, 2.5 + 1j]]), "y_replicates must be real numbers: got"),
        (lambda: fit_power_law(S3, y3).predict(1e9 + 1j), "S must be real numbers: got"),
        (
            lambda: fit_power_law(S3, y3).predict([1e9, -1]),
            r"S must be positive and finite, got -1.0 \(number 2 of 2\)",
        ),
        (lambda: fit_power_law(S3, y3, n_effective=np.nan), "n_effective must be positive and finite, got nan"),
        (lambda: fit_power_law(S3, y3, given={"C": (1, -2)}), "standard deviation below 0"),
        (lambda: fit_surface(S3, S3, y3, runs=["a", None, "b"]), "runs must all have names, or all numbers"),
        (lambda: fit_surface(S3, S3, y3, runs=[1, np.nan, 2]), r"runs must be known, got nan \(number 2 of 3\)"),
        (
            lambda: fit_surface("S", "D", "y", data=drawn(), n_replicates=0).predict([1e9, 2e9], [1e9, 2e9, 3e9]),
            "one shape",
        ),
        (lambda: fit_surface("S", "D", "y", data=drawn(), n_replicates=0).optimum([1e20, 1e21]), "must be one number"),
        (lambda: bootstrap([1, np.nan, 2], np.sum), "values must be finite, got nan"),
        (lambda: bootstrap({"hits": [1j, 2]}, np.sum), "hits must be real numbers: got 1j"),
        (lambda: fit_k_law([0, 10], [0.1, 0.2]), r"k must be positive and finite, got 0.0 \(number 1 of 2\)"),
        (
            lambda: fit_schedule([[1, np.nan]], [[3]]),
            "rates of a run are numbers from 0 up, above 0 at a step; got nan",
        ),
        (lambda: fit_schedule([[1, 1]], [[3]]).predict([0, 0]), r"above 0 at a step; got \[0.0, 0.0\]"),
        (lambda: fit_schedule([1, 1], [3, 3]), "rates of a run are numbers"),
        (lambda: fit_schedule([[1, 1]], [[3, 3, 3]]), r"has losses \[3\] but rates \[2\]"),
        (lambda: predict(S3, y3, 1e10, bounds=(5, 0)), r"bounds are two numbers that rise, as \(0, 1\); got \(5, 0\)"),
        (lambda: predict(S3, [4.0, np.nan, 2.5], 1e10), r"finite, of one sign and not 0, got nan \(number 2 of 3\)"),
        (lambda: fit_power_law(S3, y3, given=("E", 1.7)), "given= maps names to values"),  # type: ignore[arg-type]
        (lambda: fit_power_law(S3, y3, given={"C": (1, 2, 3)}), "neither a value nor"),  # type: ignore[dict-item]
        (lambda: fit_power_law(S3, y3).predict(1e9, level=95), "level must lie between 0 and 1, as .95; got 95"),
        (lambda: fit_power_law(S3, y3, level=95), "level must lie between 0 and 1, as .95; got 95"),
        (lambda: fit_power_law(S3, y3, level=0.8, given={"C": 9}), "level=0.8 goes without given="),
        (lambda: fit_surface(S3, S3, y3, level=0.8, given={"E": 1}), "level=0.8 goes without given="),
        (lambda: fit_k_law([1, 10], [0.1, 0.2], level=0), "level must lie between 0 and 1"),
        (lambda: fit_schedule([[1, 1]], [[3]], level=1), "level must lie between 0 and 1"),
        (lambda: bootstrap([1, 2], np.sum, level=95), "level must lie between 0 and 1"),
        (lambda: predict(S3, [4.0, -3.0, 2.5], 1e9), r"of one sign and not 0, got -3.0 \(number 2 of 3\)"),
        (lambda: predict(S3, [0.4, 0.6, 1.0], 1e10, bounds=(0, 1)), "y must lie between the bounds 0 and 1, got 1.0"),
        (lambda: fit_power_law(S3, y3, method="best"), "method='best' is unknown; known: ols, weighted, offset"),
        (lambda: fit_power_law(S3, y3, given={"E": 1}), "given='E' is unknown; known: C, alpha"),
        (
            lambda: fit_power_law(S3, y3, weights=[1, 0, 1]),
            r"weights must be positive and finite, got 0.0 \(number 2 of 3\)",
        ),
        (lambda: fit_power_law(S3, y3, y_replicates=[[1, 2]]), r"y_replicates needs the shape \[B, 3\], got \(1, 2\)"),
    ],
)
def test_mistakes_are_said_in_one_line(call: object, says: str) -> None:
    with pytest.raises(ValueError, match=says) as problem:
        call()  # type: ignore[operator]
    assert "\n" not in str(problem.value)


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(shown) == len(re.findall("```python", PAGE)) >= 5
    for code, output in shown:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "laws-in-python.md", "exec"), names)
        assert printed.getvalue() == output
    assert list(tmp_path.iterdir()) == []
