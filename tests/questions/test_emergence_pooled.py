"""The pooled law of emergence: against lmfit on the same likelihood, released windows, and draws with a known law."""

import csv
import json
import math
from pathlib import Path

import lmfit
import numpy as np
import pytest

from rbpx.questions.emergence.laws import WindowsLaw, crossing, fit_joint
from rbpx.questions.emergence.pooled import fit_pooled
from rbpx.status import Status
from tests.support.draws import plausible
from tests.support.windows import ALPHA, CONSTANTS, LENGTHS, draw, joint_intervals, pooled_intervals, sizes

Floats = np.ndarray

# The bundled ladder on stdlib at k = 10, 548 documents: windows, and windows of hits of each size, by LENGTHS.
LADDER = [3_312, 7_272, 25_472, 84_912, 200_064, 1_189_888, 3_159_552]
WINDOWS = [255_513, 254_967, 253_329, 250_601, 245_161, 229_026]
HITS = [
    [99_582, 42_501, 5_139, 278, 40, 0],
    [110_188, 49_333, 6_135, 354, 31, 0],
    [118_072, 57_133, 8_703, 612, 62, 0],
    [133_317, 71_358, 13_653, 1_273, 61, 0],
    [142_400, 82_428, 19_946, 2_485, 152, 11],
    [159_120, 104_838, 36_844, 8_121, 661, 41],
    [173_362, 122_930, 54_068, 19_640, 4_263, 172],
]


def by_lmfit(p_MN: Floats, law: WindowsLaw) -> float:
    """The exponent at the largest likelihood of so many windows, by lmfit, from the deviance of each share."""
    p_C, count_C = np.ravel(p_MN), np.ravel(law.params["counts"])
    x_C = np.repeat(np.log(law.fit.S) - math.log(law.S_ref), p_MN.shape[1])
    n_C = np.tile(np.arange(p_MN.shape[1]), p_MN.shape[0])
    parameters = lmfit.Parameters()
    for at in range(p_MN.shape[1]):
        parameters.add(f"c{at}", value=1.0)
    parameters.add("alpha", value=0.1)

    def deviance(at: lmfit.Parameters) -> Floats:
        values = np.array(list(at.valuesdict().values()))
        y_C = np.exp(values[:-1][n_C] - values[-1] * x_C)
        with np.errstate(divide="ignore", invalid="ignore"):
            hit_C = np.where(p_C > 0, p_C * (np.log(p_C) + y_C), 0)
            miss_C = np.where(p_C < 1, (1 - p_C) * (np.log1p(-p_C) - np.log(-np.expm1(-y_C))), 0)
        return np.sign(p_C - np.exp(-y_C)) * np.sqrt(2 * count_C * np.maximum(hit_C + miss_C, 0))

    result = lmfit.Minimizer(deviance, parameters).least_squares(xtol=1e-12, ftol=1e-12, gtol=1e-12)
    return float(result.params["alpha"].value)


def test_the_exponent_is_that_of_lmfit_on_the_same_likelihood() -> None:
    drawn = draw(np.random.default_rng(0), 7, model_sd=0.02)
    assert (drawn.p_MN == 0).any()
    fit = fit_pooled(sizes(7), LENGTHS, drawn.p_MN, drawn.windows_MN, drawn.p_BMN)
    assert fit.fit.alpha.value == pytest.approx(by_lmfit(drawn.p_MN, fit), abs=1e-6)
    assert fit.params["n_left_out"] == 0


def test_the_step_of_each_resample_is_a_refit_by_lmfit() -> None:
    """The documents' part of the interval rests on one Newton step a replicate, with the weights of the fit."""
    drawn = draw(np.random.default_rng(1), 7, model_sd=0.0, resamples=40)
    fit = fit_pooled(sizes(7), LENGTHS, drawn.p_MN, drawn.windows_MN, drawn.p_BMN)
    again = [by_lmfit(p_MN, fit) for p_MN in drawn.p_BMN]
    assert fit.text_variance**0.5 == pytest.approx(np.std(again, ddof=1), rel=0.02)


def test_an_exact_law_is_recovered_with_its_constants_and_crossings() -> None:
    S = sizes(6)
    p_MN = np.exp(-np.array(CONSTANTS) * S[:, None] ** -ALPHA)
    for windows_MN in (None, np.full(p_MN.shape, 1e9)):
        fit = fit_pooled(S, LENGTHS, p_MN, windows_MN)
        assert fit.fit.status is Status.ok
        assert fit.fit.alpha.value == pytest.approx(ALPHA, rel=1e-6)
        assert fit.fit.alpha.lo is not None
        assert fit.fit.alpha.hi is not None
        assert fit.fit.alpha.lo <= fit.fit.alpha.value <= fit.fit.alpha.hi
        for n, C in zip(LENGTHS, CONSTANTS, strict=True):
            assert fit.params["C"][str(n)]["value"] == pytest.approx(C, rel=1e-5)
            assert fit.params["equal"][f"alpha at N = {n}"]["value"] == pytest.approx(0, abs=1e-6)
            found = crossing(fit, n, 0.5)
            assert found["ln_S"] == pytest.approx(math.log(C / math.log(2)) / ALPHA, rel=1e-5)
            assert (found["status"] is Status.beyond) == (not S[0] / 10 <= found["S"] <= 10 * S[-1])


def test_shares_of_zero_count_and_do_not_bend_the_exponent() -> None:
    """Without the long windows of the small sizes, the joint law takes for size what is length; counts do not."""
    rng, pooled, joint = np.random.default_rng(2), [], []
    for _ in range(12):
        drawn = draw(rng, 7, model_sd=0.0, resamples=20, windows=3000)
        assert (drawn.p_MN == 0).any()
        fit = fit_pooled(sizes(7), LENGTHS, drawn.p_MN, drawn.windows_MN, drawn.p_BMN)
        assert fit.fit.alpha.value is not None
        pooled.append(fit.fit.alpha.value)
        joint.append(fit_joint(sizes(7), LENGTHS, drawn.p_MN).fit.alpha.value)
    assert np.mean(pooled) == pytest.approx(ALPHA, abs=3 * np.std(pooled) / 12**0.5)
    assert abs(np.mean(joint) - ALPHA) > 10 * abs(np.mean(pooled) - ALPHA)


def test_the_bundled_ladder_on_stdlib_has_the_exponent_of_a_constant_for_each_n() -> None:
    ladder = np.array(LADDER)
    fit = fit_pooled(ladder, LENGTHS, np.array(HITS) / WINDOWS, np.tile(WINDOWS, (7, 1)))
    assert fit.fit.alpha.value is not None
    assert 0.125 <= fit.fit.alpha.value <= 0.14
    joint = fit_joint(ladder, LENGTHS, np.array(HITS) / WINDOWS)
    assert joint.fit.alpha.value is not None
    assert joint.fit.alpha.value > 0.145
    assert fit.params["dependent"]  # the constants grow slower than N


@pytest.mark.parametrize(("n_sizes", "shared"), [(7, 1.0), (5, 0.0)])
def test_the_interval_holds_the_truth_where_models_and_documents_scatter(n_sizes: int, shared: float) -> None:
    """A model's luck is that of all its windows, or of each length."""
    covered, bends = pooled_intervals(n_sizes, shared, 20)
    assert plausible(sum(covered), 20)
    assert sum(bends) <= 3


def test_the_interval_of_the_joint_law_holds_the_truth_where_it_is_the_law() -> None:
    covered, alone = joint_intervals(40)
    assert plausible(sum(covered), 40)
    assert sum(alone) < 28  # the documents alone hold it far too rarely


def test_exponents_that_differ_between_lengths_are_said() -> None:
    rng, said, alphas = np.random.default_rng(6), 0, [0.13, 0.12, 0.11, 0.1, 0.09, 0.08]
    for _ in range(10):
        drawn = draw(rng, 7, model_sd=0.01, windows=10**6, constants=[C / 3 for C in CONSTANTS], alphas=alphas)
        fit = fit_pooled(sizes(7), LENGTHS, drawn.p_MN, drawn.windows_MN, drawn.p_BMN)
        said += fit.fit.status is Status.bends and "drift" in fit.params["bent"]
    assert said >= 8


@pytest.mark.parametrize(("k", "status"), [(1, Status.bends), (10, Status.bends), (100, Status.ok)])
def test_the_released_gpt2_windows_have_one_exponent_only_where_windows_scale_alike(
    k: int, status: Status, shared_data: Path
) -> None:
    """At k = 1 alpha is .056, .049, .032, .001, .000 for N = 1, 5, 10, 50, 100; at k = 100 all are .12 to .13."""
    with (shared_data / "reference" / "gpt2_wikipedia_emergence.csv").open(newline="") as table:
        rows = [row for row in csv.DictReader(table) if int(row["k"]) == k]
    S, lengths = (sorted({int(row[name]) for row in rows}) for name in ("non_embedding_params", "n"))
    p = {(int(row["non_embedding_params"]), int(row["n"])): float(row["p_all_n_in_topk"]) for row in rows}
    fit = fit_pooled(np.array(S), lengths, np.array([[p[size, n] for n in lengths] for size in S]))
    assert fit.fit.status is status
    assert fit.params["interval"] == "models"


def test_points_on_a_curve_and_points_without_a_trend_are_said() -> None:
    S, rng = sizes(8), np.random.default_rng(7)
    x = np.log(S / S[0])[:, None]
    noise_MN = rng.normal(0, 0.01, (8, len(LENGTHS)))
    bent = np.exp(-np.exp(np.log(CONSTANTS) - 2 - 0.02 * x**2 + noise_MN))
    fit = fit_pooled(S, LENGTHS, bent, np.full(bent.shape, 1e7))
    assert fit.fit.status is Status.bends
    assert "curvature" in fit.params["bent"]
    flat = np.exp(-np.exp(np.log(CONSTANTS) - 2 + noise_MN))
    fit = fit_pooled(S, LENGTHS, flat, np.full(flat.shape, 1e7))
    assert fit.fit.status is Status.no_trend
    assert fit.reasons[0] is Status.no_trend


@pytest.mark.parametrize(
    ("p_MN", "status"),
    [
        (np.full((2, 2), 0.5), Status.too_few_sizes),
        (np.zeros((4, 2)), Status.not_positive),
        (np.array([[0.5, 0.1], [math.nan, math.nan], [0.6, 0.2], [math.nan, math.nan]]), Status.not_positive),
        (np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), Status.separated),
    ],
)
def test_windows_that_determine_no_law_are_a_status_and_no_numbers(p_MN: Floats, status: Status) -> None:
    fit = fit_pooled(sizes(4)[: len(p_MN)], [1, 5], p_MN, np.full(p_MN.shape, 100))
    assert fit.fit.status is status
    assert (fit.fit.alpha.value, fit.fit.alpha.lo, fit.ln_C_N) == (None, None, {})
    assert crossing(fit, 5, 0.5)["status"] is status


def test_a_length_without_hits_has_no_constant_and_the_others_have() -> None:
    drawn = draw(np.random.default_rng(8), 5, model_sd=0.0)
    p_MN = np.column_stack([drawn.p_MN, np.zeros(5)])
    fit = fit_pooled(sizes(5), [*LENGTHS, 1000], p_MN, np.full(p_MN.shape, 20000))
    assert list(fit.ln_C_N) == LENGTHS
    assert fit.params["n_left_out"] == 5
    assert crossing(fit, 1000, 0.5)["status"] is Status.not_positive


def test_the_params_of_a_fit_fit_into_a_record() -> None:
    S, drawn = sizes(5), draw(np.random.default_rng(9), 5, model_sd=0.01)
    assert fit_pooled(np.array([1.0, 1, 2]), [1], np.full((3, 1), 0.5)).fit.status is Status.too_few_sizes
    fit = fit_pooled(S, LENGTHS, drawn.p_MN, drawn.windows_MN, drawn.p_BMN)
    assert json.loads(json.dumps(fit.params, allow_nan=False)) == fit.params


def test_a_length_whose_shares_are_all_0_or_1_is_no_error() -> None:
    drawn = draw(np.random.default_rng(3), 7, model_sd=0.0, resamples=20)
    assert drawn.windows_MN is not None
    never_or_always = np.array([0.0] * 6 + [1.0])
    with_it = np.column_stack([drawn.p_MN, never_or_always])
    replicates = np.concatenate([drawn.p_BMN, np.tile(never_or_always[:, None], (20, 1, 1))], axis=2)
    windows = np.column_stack([drawn.windows_MN, np.full(7, 1.0)])
    fit = fit_pooled(sizes(7), [*LENGTHS, 100], with_it, windows, replicates)
    without = fit_pooled(sizes(7), LENGTHS, drawn.p_MN, drawn.windows_MN, drawn.p_BMN)
    assert fit.fit.alpha.value == pytest.approx(without.fit.alpha.value, rel=0.02)  # one of thousands
