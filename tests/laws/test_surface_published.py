"""Published surfaces: their points fitted again, their constants evaluated."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status
from tests.support.surfaces import surface_of

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"


def columns(name: str) -> dict[str, list[str]]:
    path = REFERENCE / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the project")
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {key: [row[key] for row in rows] for key in rows[0]}


def chinchilla_runs(left_out: int) -> Runs:
    """The points of the figure without the highest losses; D = C / (6 S)."""
    of = columns("chinchilla_points.csv")
    S, C, y = (np.array(of[key], float) for key in ("params", "training_flops", "loss_nats"))
    kept = np.argsort(y)[: len(y) - left_out]
    return Runs.of(S[kept], C[kept] / (6 * S[kept]), y[kept])


def test_chinchilla_without_its_five_highest_losses() -> None:
    fit = fit_surface(chinchilla_runs(5))
    assert (fit.n_points, fit.status) == (240, Status.ok)
    assert fit.objective == pytest.approx(0.00101827402, rel=1e-5)
    published = {"A": 477.83, "B": 2143.4, "E": 1.81722, "alpha": 0.34731, "beta": 0.36717}
    for name, value in published.items():
        each = fit.constants[name]
        assert each.value == pytest.approx(value, rel=2e-5 if name in "AB" else 1e-5)
        assert each.lo < each.value < each.hi
    # arXiv 2404.10102 gives standard errors by resampling: .0168 of alpha, .0216 of beta, .03 of E.
    half = {name: (fit.constants[name].hi - fit.constants[name].lo) / 2 for name in ("alpha", "beta", "E")}
    assert half == pytest.approx({"alpha": 1.96 * 0.0168, "beta": 1.96 * 0.0216, "E": 1.96 * 0.03}, rel=0.35)


def test_chinchilla_with_all_points_is_moved_by_five_of_them() -> None:
    fit = fit_surface(chinchilla_runs(0), n_replicates=0)
    assert fit.n_points == 245
    assert fit.constants["beta"].value == pytest.approx(0.4530, abs=1e-4)
    assert fit.constants["E"].value == pytest.approx(1.8913, abs=1e-4)


def test_gemstones_reach_the_published_objective() -> None:
    of = columns("gemstones_checkpoints.csv")
    S, D, y = (np.array(of[key], float) for key in ("params", "tokens", "loss_nats"))
    fit = fit_surface(Runs.of(S, D, y, groups=of["run"]), delta=1e-4, n_replicates=0)
    assert (fit.n_points, fit.n_runs) == (770, 22)
    assert fit.objective == pytest.approx(0.00069233, rel=1e-5)
    assert fit.constants["E"].value == pytest.approx(1.9457, abs=5e-4)


def test_data_constrained_constants_evaluate_to_the_published_losses() -> None:
    published = {
        "A": math.exp(6.255414),
        "B": math.exp(7.3049974),
        "E": math.exp(0.6254804),
        "alpha": 0.3526596,
        "beta": 0.3526596,
        "R_D": 15.387756,
        "R_N": 5.309743,
    }
    surface = surface_of("data_constrained", published, Runs.of([1e9, 2e9], [1e10, 3e10], [3.0, 2.5]))
    assert surface.predict(6.34e9, 242e9, 25e9).value == pytest.approx(2.2256441, abs=5e-8)
    assert surface.predict(8.67e9, 178e9, 25e9).value == pytest.approx(2.2269634, abs=5e-8)


def test_without_repeats_what_a_repeat_is_worth_is_not_identified() -> None:
    runs = chinchilla_runs(5)
    plain, constrained = (fit_surface(runs, form, n_replicates=20) for form in ("chinchilla", "data_constrained"))
    assert constrained.status is Status.barely_determined
    assert constrained.constants["R_D"].value is None
    assert constrained.constants["R_N"].value is None
    assert constrained.objective == pytest.approx(plain.objective, rel=1e-9)
    assert constrained.aic == pytest.approx(plain.aic, abs=1e-5)
