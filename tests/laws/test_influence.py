"""How far a prediction moves with one run left out."""

import numpy as np
import pytest

from rbpx.laws.prediction.influence import most_influential
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.surface.averaged import most_influential as moved_most_on_surface
from rbpx.laws.surface.averaged import predict_averaged as predict_over_surface
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.runs import Runs
from tests.support.drawn_laws import both_forms

S = np.geomspace(1e6, 1e9, 7).tolist()
Y = [4.0 * size**-0.1 * (1 + 0.001 * (-1) ** at) for at, size in enumerate(S)]
FAR = (1e9, 1e10)
POINTS = [(1e10, 2e11), (3e9, 6e10)]


def alone(S: list[float], y: list[float]) -> list[float]:
    found = average_forms(S, y, FAR, each_form=False)
    return [each.y for each in found]


@pytest.mark.parametrize("off", [0, 3, 6])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_move_is_that_of_the_ladder_without_its_most_telling_run(off: int, sign: int) -> None:
    y = [sign * value * (1.06 if at == off else 1.0) for at, value in enumerate(Y)]
    with_all = alone(S, y)
    without = np.array([alone(S[:at] + S[at + 1 :], y[:at] + y[at + 1 :]) for at in range(7)])
    moves = without / np.array(with_all) - 1
    for t, moved in enumerate(most_influential(S, y, FAR, with_all)):
        assert moved.by == np.abs(moves[:, t]).argmax()
        assert sign * moved.share == pytest.approx(moves[moved.by, t], rel=1e-9)


def test_only_a_replicate_can_be_left_out_where_three_sizes_have_to_stay() -> None:
    assert most_influential(S[:3], Y[:3], FAR, alone(S[:3], Y[:3])) == [None, None]
    sizes, y = [S[0], *S[:3]], [1.1 * Y[0], *Y[:3]]
    for moved in most_influential(sizes, y, FAR, alone(sizes, y)):
        assert moved.by in (0, 1)


def off_at(run: int) -> Runs:
    """Losses of Chinchilla's form at four sizes and numbers of tokens, one training 4 % off."""
    size, tokens = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e7, 1e9, 4), np.geomspace(1e9, 2e10, 4)))
    y = (1.7 + 400 * size**-0.34 + 410 * tokens**-0.28) * np.exp(np.random.default_rng(1).normal(0, 0.003, 16))
    y[run] *= 1.04
    return Runs.of(size, tokens, y)


def test_over_a_surface_it_is_about_that_of_fitting_again_without_the_run() -> None:
    runs = off_at(15)
    fits = both_forms(runs)
    (moved,) = moved_most_on_surface(fits, POINTS[:1])

    def ln_y(fits: list[Surface]) -> float:
        (there,) = predict_over_surface(fits, POINTS[:1], [])
        return float(np.log(there.y.value))

    moves = {run: ln_y(both_forms(runs.only(runs.group_N != run))) - ln_y(fits) for run in {moved.by, 0, 3, 6, 12, 15}}
    assert moved.share == pytest.approx(np.expm1(moves[moved.by]), rel=0.5)
    assert abs(moves[moved.by]) > 0.6 * max(map(abs, moves.values()))


def test_where_size_and_tokens_vary_together_nothing_is_said_of_runs() -> None:
    sizes = np.geomspace(1e7, 1e9, 8)
    fits = both_forms(Runs.of(sizes, 20 * sizes, 1.7 + 400 * sizes**-0.34))
    assert moved_most_on_surface(fits, POINTS) == [None, None]
