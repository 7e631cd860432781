"""How far a prediction moves with one run left out."""

import numpy as np
import pytest

from rbpx.laws.numeric import together
from rbpx.laws.predict.influence import moved_most
from rbpx.laws.predict.prediction import predict_over_forms
from rbpx.laws.surface.averaged import moved_most as moved_most_on_surface
from rbpx.laws.surface.averaged import predict_over_forms as predict_over_surface
from rbpx.laws.surface.fit import SurfaceFit
from rbpx.laws.surface.given import fitting_given
from rbpx.laws.surface.runs import Runs

S = np.geomspace(1e6, 1e9, 7).tolist()
Y = [4.0 * size**-0.1 * (1 + 0.001 * (-1) ** at) for at, size in enumerate(S)]
FAR = (1e9, 1e10)
POINTS = [(1e10, 2e11), (3e9, 6e10)]


def alone(S: list[float], y: list[float]) -> list[float]:
    found = predict_over_forms(S, y, FAR)
    assert found is not None
    return [each.y for each in found]


@pytest.mark.parametrize("off", [0, 3, 6])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_move_is_that_of_the_ladder_without_its_most_telling_run(off: int, sign: int) -> None:
    y = [sign * value * (1.06 if at == off else 1.0) for at, value in enumerate(Y)]
    with_all = alone(S, y)
    without = np.array([alone(S[:at] + S[at + 1 :], y[:at] + y[at + 1 :]) for at in range(7)])
    moves = without / np.array(with_all) - 1
    for t, moved in enumerate(moved_most(S, y, FAR, with_all)):
        assert moved is not None
        assert moved.by == np.abs(moves[:, t]).argmax()
        assert sign * moved.share == pytest.approx(moves[moved.by, t], rel=1e-9)


def test_a_prediction_hangs_on_a_run_only_where_the_others_say_otherwise() -> None:
    y = [*Y[:-1], 1.06 * Y[-1]]
    even, off = moved_most(S, Y, FAR, alone(S, Y))[1], moved_most(S, y, FAR, alone(S, y))[1]
    assert even is not None
    assert off is not None
    assert abs(even.share) < 0.005
    assert abs(off.share) > 0.02


def test_of_three_sizes_none_can_be_left_out() -> None:
    assert moved_most(S[:3], Y[:3], FAR, alone(S[:3], Y[:3])) == [None, None]


def test_only_a_replicate_can_where_three_sizes_have_to_stay() -> None:
    sizes, y = [S[0], *S[:3]], [1.1 * Y[0], *Y[:3]]
    for moved in moved_most(sizes, y, FAR, alone(sizes, y)):
        assert moved is not None
        assert moved.by in (0, 1)


def grid(off_at: int, states: bool) -> Runs:
    """Losses of Chinchilla's form at five sizes and numbers of tokens, one training 4 % off; its checkpoints too."""
    size, tokens = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e7, 1e9, 5), np.geomspace(1e9, 2e10, 5)))
    y = (1.7 + 400 * size**-0.34 + 410 * tokens**-0.28) * np.exp(np.random.default_rng(1).normal(0, 0.003, 25))
    y[off_at] *= 1.04
    if not states:
        return Runs.of(size, tokens, y)
    earlier = 1.7 + 400 * size**-0.34 + 410 * (tokens / 2) ** -0.28
    of_run = y / (1.7 + 400 * size**-0.34 + 410 * tokens**-0.28)
    both = [np.concatenate(pair) for pair in ((size, size), (tokens / 2, tokens), (earlier * of_run, y))]
    return Runs.of(*both, groups=np.tile(np.arange(25), 2))


def over_surface(runs: Runs) -> tuple[list[SurfaceFit], np.ndarray]:
    """The fits of both forms, and ln y of a new run at two points."""
    fits = together([fitting_given(runs, form, {}, 0, is_tested=False) for form in ("chinchilla", "kaplan")])
    return fits, np.log([each.y.value or np.nan for each in predict_over_surface(fits, POINTS, [])])


@pytest.mark.parametrize(("off_at", "states"), [(24, False), (12, False), (24, True)])
def test_over_a_surface_it_is_about_that_of_fitting_again_without_the_run(off_at: int, states: bool) -> None:
    runs = grid(off_at, states)
    fits, with_all = over_surface(runs)
    moves = [over_surface(runs.only(runs.group_N != run))[1] - with_all for run in range(25)]
    for t, moved in enumerate(moved_most_on_surface(fits, POINTS)):
        assert moved is not None
        of_target = np.array([each[t] for each in moves])
        assert moved.share == pytest.approx(np.expm1(of_target[moved.by]), rel=0.5)
        assert abs(of_target[moved.by]) > 0.6 * np.abs(of_target).max()


def test_where_size_and_tokens_vary_together_nothing_is_said_of_runs() -> None:
    sizes = np.geomspace(1e7, 1e9, 8)
    fits, _ = over_surface(Runs.of(sizes, 20 * sizes, 1.7 + 400 * sizes**-0.34))
    assert moved_most_on_surface(fits, POINTS) == [None, None]
