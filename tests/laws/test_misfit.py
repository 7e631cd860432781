"""The test of a law against its own points: against draws and densities in N dimensions, and what it finds."""

import tracemalloc

import numpy as np
import pytest

from rbpx.laws.intervals.estimate import Replicates
from rbpx.laws.intervals.misfit import Departure, departures, misfit
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.verdict import judge
from rbpx.laws.prediction.warnings import departure_from_forms, n_largest_off, n_unexpected_tokens
from rbpx.status import Status

X = np.log([1.2e6, 4e6, 1.9e7, 8.5e7, 3.0e8, 1.2e9, 6.4e9])
LINE = np.column_stack([np.ones(7), X - X.mean()])


def statistics(y_BN: Floats, J_NP: Floats) -> dict[Departure, Floats]:
    """The mean likelihood of each kind of departure, from projections in N dimensions and their eigenvalues."""
    keep_NN = np.eye(len(J_NP)) - J_NP @ np.linalg.pinv(J_NP)
    left_BN, dof = y_BN @ keep_NN, len(J_NP) - J_NP.shape[1]
    mean = dict.fromkeys(Departure, np.zeros(len(y_BN)))
    for each in departures(X):
        seen_NN = keep_NN @ each.R_NN @ keep_NN
        values = np.sort(np.linalg.eigvalsh(seen_NN))[-dof:]
        form_B = (left_BN @ np.linalg.pinv(seen_NN, rcond=1e-12) * left_BN).sum(axis=1) / (left_BN**2).sum(axis=1)
        mean[each.kind] = mean[each.kind] + each.prior * np.prod(values) ** -0.5 * form_B ** (-dof / 2)
    return mean


@pytest.mark.parametrize("parameters", [2, 3])
def test_p_is_the_share_of_draws_about_the_law_that_depart_as_much(parameters: int) -> None:
    rng = np.random.default_rng(1)
    J = np.column_stack([LINE, np.exp(0.2 * (X - X[0]))])[:, :parameters]
    null = statistics(rng.normal(size=(20_000, 7)), J)
    for y in (rng.normal(size=7), X**2 / 50 + rng.normal(size=7), rng.normal(size=7) + 4.0 * (np.arange(7) == 6)):
        found, own = misfit(X, y, J), statistics(y[None], J)
        for kind in Departure:
            assert found.p[kind] == pytest.approx(np.mean(null[kind] >= own[kind]), abs=0.04)


def test_neither_the_law_nor_the_scale_of_its_scatter_matters() -> None:
    y = np.random.default_rng(2).normal(size=7)
    one, other = misfit(X, y, LINE), misfit(X, 3 - 0.1 * X + 1e-3 * y, LINE)
    assert (other.p, other.found) == (one.p, one.found)
    assert other.length == pytest.approx(1e-3 * one.length, rel=1e-9)


def test_memory_grows_with_the_square_of_the_runs() -> None:
    """All departures but four are I + v v'; with each as a matrix, these 100 runs took 0.7 GB."""
    x_N = np.linspace(14, 24, 100)
    tracemalloc.start()
    found = misfit(x_N, np.random.default_rng(3).normal(size=100), np.column_stack([np.ones(100), x_N - x_N.mean()]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    assert peak < 64e6


def test_there_is_no_test_without_two_degrees_of_freedom_or_without_scatter() -> None:
    assert misfit(X[:3], [1.0, 0.8, 0.7], LINE[:3]) is None
    assert misfit(X, 1 - 0.1 * X, LINE) is None


@pytest.mark.parametrize(
    ("departs", "kind"),
    [
        (0.004 * (X - X.mean()) ** 2, Departure.bend),
        (0.05 * (np.arange(7) == 6), Departure.end),
        (0.05 * (np.arange(7) == 3), Departure.run),
        (np.array([0, 0, 0, 0, 0.02, -0.06, 0.05]), Departure.scatter),
    ],
)
def test_what_departs_is_named(departs: Floats, kind: Departure) -> None:
    found = misfit(X, 1 - 0.1 * X + departs + 1e-3 * np.array([1, -1, 0.5, 1, -0.5, -1, 0.5]), LINE)
    assert kind in found.found
    assert min(found.p, key=lambda each: found.p[each]) is kind


def test_a_bend_is_one_of_the_forms_and_a_run_that_lies_off_is_none() -> None:
    noise = 1e-3 * np.array([1, -1, 0.5, 1, -0.5, -1, 0.5])
    S, bent = np.exp(X).tolist(), np.exp(1 - 0.1 * X - 0.025 * np.logaddexp(0, (X - X[3]) / 0.5) + noise)
    off = np.exp(1 - 0.1 * X + noise + 0.05 * (np.arange(7) == 2))
    assert departure_from_forms(S, bent.tolist()) is None
    assert departure_from_forms(S, off.tolist()) is Departure.run
    assert departure_from_forms(S, (-off).tolist()) is Departure.run
    assert departure_from_forms(S[:3], off[:3].tolist()) is None


def test_a_bend_that_documents_alone_would_make_is_no_misfit() -> None:
    rng, curve = np.random.default_rng(3), 0.002 * (X - X.mean()) ** 2
    y = np.exp(1 - 0.1 * X + curve + 1e-4 * rng.normal(size=7))
    replicates = y * np.exp(rng.normal(size=(400, 1)) * curve)
    assert Status.bends in judge(fit_power_law(np.exp(X), y))
    assert Status.bends not in judge(fit_power_law(np.exp(X), y), (), Replicates.of(replicates))
    fewer = Replicates.of(y * np.exp(0.1 * rng.normal(size=(400, 1)) * curve))
    assert Status.bends in judge(fit_power_law(np.exp(X), y), (), fewer)


@pytest.mark.parametrize(
    ("tokens", "n_off"),
    [
        ([3e11] * 7, 0),  # all on the same
        ((20 * np.exp(X)).tolist(), 0),  # Chinchilla's ratio
        ((1e5 * np.exp(0.5 * X)).tolist(), 0),
        ([3e11] * 6 + [2e11], -1),
        ([3e11] * 6 + [2.8e11], 0),  # within a tenth
        ([3e11] * 6 + [6e11], 1),
        ([3e11] * 6 + [3.2e11], 0),
        ([3e11] * 5 + [2.5e11, 2e11], -2),  # through which the smaller six already fall
        ([3e11] * 5 + [4e11, 9e11], 2),
        ((20 * np.exp(X) * [1, 1, 1, 1, 1, 1, 4]).tolist(), 1),
        ([3e11, 2e11, 4e11, 2e11, 4e11, 3e11, 2e11], 0),  # no more than others are off
        ([3e11, 2e11, 4e11, 2e11, 4e11, 3e11, 4e11], 0),
        ([3e11] * 6 + [None], 0),
        (None, 0),
    ],
)
def test_the_largest_sizes_stand_out_by_tokens_that_the_smaller_ones_do_not_announce(
    tokens: list[float | None] | None, n_off: int
) -> None:
    S = np.exp(X).tolist()
    assert n_unexpected_tokens(S, tokens) == n_off
    found = judge(fit_power_law(S, np.exp(1 - 0.1 * X)), (), None, tokens)
    assert (Status.tokens in found) == (n_off != 0)


def test_seeds_of_the_largest_size_stand_out_together() -> None:
    S = np.repeat(np.exp(X), 2).tolist()
    assert n_unexpected_tokens(S, [3e11] * 12 + [2e11] * 2) == -1
    assert n_unexpected_tokens(S, [3e11] * 12 + [5e11] * 2) == 1
    assert n_unexpected_tokens(S, [3e11] * 14) == 0


@pytest.mark.parametrize("n_off", [1, 2])
def test_of_sizes_that_depart_at_the_end_it_is_said_whether_one_or_two_do(n_off: int) -> None:
    x, noise = np.linspace(14, 23, 10), 1e-3 * np.random.default_rng(0).standard_normal(10)
    noise[10 - n_off :] += {1: [-0.1], 2: [0.04, 0.12]}[n_off]
    S, y = np.exp(x).tolist(), np.exp(1 - 0.1 * x + noise).tolist()
    assert departure_from_forms(S, y) is Departure.end
    assert n_largest_off(S, y) == n_off


def test_an_offset_is_tested_against_laws_with_an_offset() -> None:
    """What an offset cannot follow is found by its own test; what it can is found by that of the power law."""
    S, noise = np.exp(X), 1e-3 * np.array([1, -1, 0.5, 1, -0.5, -1, 0.5])
    law = np.log(1 + 30 * np.exp(-0.25 * X + 0.25 * X[0])) + noise
    fits = [fit_power_law(S, np.exp(law), None, method) for method in (Method.ols, Method.offset)]
    assert [Status.bends in judge(fit) for fit in fits] == [True, False]
    off = fit_power_law(S, np.exp(law + 0.1 * (np.arange(7) == 3)), None, Method.offset)
    assert Status.one_run in judge(off)
