"""What a change is worth: exact where the answer is known, and an interval that holds it as often as it says."""

import math

import numpy as np
import pytest

from rbpx.laws.families.multiplier import Offset, fit_multiplier
from rbpx.status import Status

X = np.geomspace(1e6, 1e9, 7)


def law(x: np.ndarray, E: float = 1.5, alpha: float = 0.2) -> np.ndarray:
    return E + 60 * x**-alpha


@pytest.mark.parametrize("offset", [Offset.shared, Offset.free])
@pytest.mark.parametrize("factor", [0.25, 1.0, 2.0])
def test_a_law_shifted_in_x_gives_the_shift(offset: Offset, factor: float) -> None:
    """y_v(x) = y_b(factor x), so the baseline needs factor times as much for every loss."""
    found, found_at = fit_multiplier((X, X), (law(X), law(factor * X)), offset=offset)
    assert found["status"] is Status.ok
    assert found["multiplier"].value == pytest.approx(factor, rel=1e-4)
    assert (found["E_base"], found["E_variant"]) == pytest.approx((1.5, 1.5), rel=1e-3)
    assert [at["multiplier"].value for at in found_at] == pytest.approx([factor] * 7, rel=1e-3)
    assert [at["x_variant"] for at in found_at] == pytest.approx(X, rel=1e-3)


def test_without_an_offset_it_is_the_closed_form_of_two_lines() -> None:
    rng = np.random.default_rng(3)
    y = [law(X, E=0) * np.exp(rng.normal(0, 0.02, 7)), law(3 * X, E=0) * np.exp(rng.normal(0, 0.02, 7))]
    found, found_at = fit_multiplier((X, X), y, offset=Offset.none)
    (slope_b, level_b), (slope_v, level_v) = (np.polyfit(np.log(X), np.log(each), 1) for each in y)
    for at, x in zip(found_at, X, strict=True):
        ln_y = level_v + slope_v * math.log(x)
        assert at["multiplier"].value == pytest.approx(math.exp((ln_y - level_b) / slope_b) / x, rel=1e-6)
    # the delta method by differences: how the answer moves when one loss moves
    at, step = found_at[3], 1e-5
    moves = []
    for side in (0, 1):
        for n in range(7):
            moved = [each.copy() for each in y]
            moved[side][n] *= math.exp(step)
            lines = [np.polyfit(np.log(X), np.log(each), 1) for each in moved]
            needs = [(math.log(at["loss"]) - level) / slope for slope, level in lines]
            moves.append(needs[0] - needs[1])
    base = (math.log(at["loss"]) - level_b) / slope_b - (math.log(at["loss"]) - level_v) / slope_v
    variance = sum(((each - base) / step) ** 2 for each in moves) * found["residual_sd"] ** 2
    m = at["multiplier"]
    assert math.log(m.hi / m.lo) / 2 == pytest.approx(2.228139 * math.sqrt(variance), rel=1e-3)


def test_what_both_did_not_measure_is_unsupported_and_below_E_unreachable() -> None:
    variant = 1.1 + 100 * X**-0.27
    found, found_at = fit_multiplier((X[:5], X), (law(X[:5]), variant), offset=Offset.free)
    assert found_at[-1]["status"] is Status.unreachable  # 1.47, below the baseline's 1.5
    assert found_at[-1]["x_base"] is None
    assert found_at[-1]["multiplier"].value is None
    low, high = found["loss_from"], found["loss_to"]
    assert all((low <= at["loss"] <= high) == (at["status"] is Status.ok) for at in found_at)
    apart, _ = fit_multiplier((X, X), (law(X), law(X) / 50), offset=Offset.shared)
    assert apart["status"] in (Status.beyond, Status.barely_determined)
    assert apart["multiplier"].value is None


@pytest.mark.parametrize(
    ("y", "status"),
    [
        ((law(X[:2]), law(X)), Status.too_few_sizes),
        ((-law(X), law(X)), Status.not_positive),
        ((1 / law(X), law(X)), Status.no_trend),
    ],
)
def test_what_has_no_multiplier_says_why(y: tuple[np.ndarray, np.ndarray], status: Status) -> None:
    found, _ = fit_multiplier([X[: len(each)] for each in y], y)
    assert found["status"] is status
    assert found["multiplier"].value is None


def test_documents_that_both_share_cancel() -> None:
    """Replicates that move both laws alike in ln y leave a multiplier of lines alone; those of one side widen it."""
    rng = np.random.default_rng(0)
    y = [law(X, E=0), law(2 * X, E=0)]
    shift = np.exp(rng.normal(0, 0.05, (200, 1)))
    both, _ = fit_multiplier((X, X), y, [each * shift for each in y], Offset.none)
    one, _ = fit_multiplier((X, X), y, [y[0] * shift, np.tile(y[1], (200, 1))], Offset.none)
    assert both["multiplier"].hi / both["multiplier"].lo == pytest.approx(1, abs=1e-6)
    half = 1.96 * np.std(np.log(shift), ddof=1) / 0.2
    assert math.log(one["multiplier"].hi / one["multiplier"].lo) / 2 == pytest.approx(half, rel=0.02)
