"""A multiplier over a surface: exact points give the drawn one, refusals say why, and intervals hold the truth."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rbpx.laws.families.shift import Shift, fit_shift
from rbpx.laws.names import Axis
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status
from tests.support.shifts import SHARE, draw_pair
from tests.support.surfaces import TRUE, law, ratios

S, D = ratios(6, 4)


def pair(axis: Axis, m: float, slope: float = 0.0) -> tuple[Runs, Runs]:
    """A baseline without scatter, and a variant whose multiplier is m at the middle of ln C."""
    ln_C = np.log(S * D)
    ln_m = math.log(m) + slope * (ln_C - (ln_C.min() + ln_C.max()) / 2)
    a, b = SHARE[axis]
    return Runs.of(S, D, law(S, D)), Runs.of(S, D, law(S * np.exp(a * ln_m), D * np.exp(b * ln_m)))


@cache
def exact(axis: Axis, m: float, slope: float = 0.0) -> Shift:
    """What is found of a pair without scatter."""
    return fit_shift(*pair(axis, m, slope), axis)


@pytest.mark.parametrize(("axis", "m", "slope"), [(Axis.C, 2.0, 0.0), (Axis.S, 0.4, 0.0), (Axis.D, 1.5, 0.05)])
def test_points_without_scatter_give_the_drawn_multiplier(axis: Axis, m: float, slope: float) -> None:
    found = exact(axis, m, slope)
    assert found.reasons == ()
    assert found.multiplier.value == pytest.approx(m, rel=1e-3)
    assert found.slope.value == pytest.approx(slope, abs=1e-3)
    assert [at.value.value for at in found.at] == pytest.approx(
        [m * (at.C / found.at[1].C) ** slope for at in found.at], rel=0.01
    )
    assert [at.status for at in found.at] == [Status.ok] * 3 + [Status.beyond]


def test_a_baseline_against_itself_is_one() -> None:
    """The minimal example of no difference."""
    runs = draw_pair("constant", Axis.C, 0).base
    found = fit_shift(runs, runs, Axis.C)
    assert found.multiplier.value == pytest.approx(1.0, abs=1e-3)
    assert found.slope.value == pytest.approx(0.0, abs=1e-3)
    assert found.multiplier.lo < 1 < found.multiplier.hi
    assert found.p > 0.05


def test_what_is_compared_is_the_ranges_of_both() -> None:
    base, variant = pair(Axis.S, 2.0)
    few = (S < 3e8) & (D > 1e9)
    common = fit_shift(base, variant.only(few), Axis.S).common
    ends = [S[few].min(), S[few].max(), D[few].min(), D[few].max()]
    inside = (S >= ends[0]) & (S <= ends[1]) & (D >= ends[2]) & (D <= ends[3])
    assert (common["n_base"], common["n_variant"]) == (inside.sum(), few.sum())
    assert [common[name] for name in ("S_from", "S_to", "D_from", "D_to")] == ends


def test_other_constants_are_refused_and_the_multiplier_is_that_of_its_place() -> None:
    """A variant whose A is 0.7 and whose beta is greater, so that no shift leads to it."""
    rng = np.random.default_rng(0)
    y = TRUE["E"] + 0.7 * TRUE["A"] * S ** -TRUE["alpha"] + 3 * TRUE["B"] * D ** -(TRUE["beta"] + 0.05)
    noise = np.exp(0.002 * rng.standard_normal((2, len(S))))
    found = fit_shift(Runs.of(S, D, law(S, D) * noise[0]), Runs.of(S, D, y * noise[1]), Axis.C)
    assert found.reasons == (Status.families_differ,)
    assert found.p < 0.05


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda runs: Runs.of(runs.S_N, runs.D_N, -runs.y_N), Status.not_positive),
        (lambda runs: Runs.of(runs.S_N, 20 * runs.S_N, runs.y_N), Status.collinear_design),
        (lambda runs: Runs.of(1e4 * runs.S_N, runs.D_N, runs.y_N), Status.beyond),
    ],
)
def test_what_has_no_multiplier_says_why(change: Callable[[Runs], Runs], status: Status) -> None:
    base, variant = pair(Axis.S, 2.0)
    found = fit_shift(base, change(variant), Axis.S)
    assert found.reasons == (status,)
    assert found.multiplier.value is None


def test_documents_that_move_the_variant_alone_widen_the_interval() -> None:
    """Those that move both alike cancel."""
    drawn = draw_pair("constant", Axis.C, 1)
    shift_B1 = np.exp(np.random.default_rng(0).normal(0, 0.02, (30, 1)))
    both = [replace(runs, y_BN=runs.y_N * shift_B1) for runs in (drawn.base, drawn.variant)]
    still = [replace(drawn.base, y_BN=np.tile(drawn.base.y_N, (30, 1))), both[1]]
    of_both, of_variant = (fit_shift(*pair, Axis.C).multiplier for pair in (both, still))
    assert math.log(of_both.hi / of_both.lo) < 0.5 * math.log(of_variant.hi / of_variant.lo)
