"""Losses at other temperatures: a float64 loop over each token, by both paths, and what is refused."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from rbpx.ranks.definition import NonFiniteLogits, linear_float32
from rbpx.ranks.tempered import BETAS, Floats, temper_hidden
from rbpx.ranks.tempered_tiles import temper_tiles

Path = Callable[[Tensor, Tensor, Tensor], Floats]

N, D, V = 70, 12, 2100  # two threads of some rows each, three tiles, the last of them narrow


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def by_tiles(hidden_ND: Tensor, targets_N: Tensor, weight_VD: Tensor) -> Floats:
    return temper_tiles(hidden_ND, targets_N, weight_VD)


def by_chunks(hidden_ND: Tensor, targets_N: Tensor, weight_VD: Tensor) -> Floats:
    return temper_hidden(hidden_ND, targets_N, lambda h_nD: linear_float32(h_nD, weight_VD), len(weight_VD), 1 << 17)


PATHS = pytest.mark.parametrize("path", [by_tiles, by_chunks])


def drawn(spread: float) -> tuple[Tensor, Tensor, Tensor]:
    """States, targets and a head whose products are exact in float32, so that both sides see the same logits."""
    rng = np.random.default_rng(3)
    hidden = torch.tensor(rng.integers(-8, 9, (N, D)) / 8, dtype=torch.float32)
    weight = torch.tensor(np.round(rng.normal(0, spread, (V, D)) * 8) / 8, dtype=torch.float32)
    return hidden, torch.tensor(rng.integers(0, V, N)), weight


@PATHS
@pytest.mark.parametrize("spread", [0.5, 6.0])
def test_losses_are_those_of_a_float64_loop(path: Path, spread: float) -> None:
    hidden, targets, weight = drawn(spread)
    found = path(hidden, targets, weight)
    assert found.shape == (N, 3, len(BETAS))
    for i in range(N):
        z = weight.double().numpy() @ hidden[i].double().numpy()
        own = z[targets[i]]
        for j, beta in enumerate(BETAS):
            weights = np.exp(beta * (z - z.max()))
            chance = weights / weights.sum()
            mean = chance @ z
            expected = [
                beta * z.max() + np.log(weights.sum()) - beta * own,
                mean - own,
                chance @ (z - mean) ** 2,
            ]
            size = 1 + np.abs(z).max()
            np.testing.assert_allclose(found[i, :, j], expected, rtol=3e-6, atol=3e-6 * size)


@PATHS
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_logit_that_is_not_finite_stops_at_its_position(path: Path, bad: float) -> None:
    hidden, targets, weight = drawn(0.5)
    hidden[41, 3] = bad
    with pytest.raises(NonFiniteLogits) as raised:
        path(hidden, targets, weight)
    assert raised.value.row == 41


@PATHS
def test_no_positions_give_no_losses(path: Path) -> None:
    hidden, targets, weight = drawn(0.5)
    assert path(hidden[:0], targets[:0], weight).shape == (0, 3, len(BETAS))
