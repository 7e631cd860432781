"""Ranks by tiles of the vocabulary: against counting in float64, tie by tie, and through whole commands."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from rbpx.errors import MeasureError
from rbpx.ranks import tiles
from rbpx.ranks.cpu_kernel import NEAR_KEPT
from rbpx.ranks.definition import NonFiniteLogits, TokenRanks
from rbpx.ranks.tiles import rank_tiles
from tests.support.reference import assert_ranked

N, D, V = 300, 48, 3 * 1024 + 137  # the last tile is a part of one; slabs of threads are of unequal length


def states(n: int = N, seed: int = 1) -> Tensor:
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed))


def weights(spread: float = 0.5) -> Tensor:
    return torch.randn(V, D, generator=torch.Generator().manual_seed(2)) * spread


def whole_numbers(*shape: int, seed: int) -> Tensor:
    """Numbers whose products are exact in float32 in whatever order, so that equal logits are equal bit by bit."""
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(seed)).float()


def targets(n: int = N) -> Tensor:
    return torch.randint(0, V, (n,), generator=torch.Generator().manual_seed(3))


def assert_by_definition(ranks: TokenRanks, logits_NV: Tensor, targets_N: Tensor) -> None:
    assert_ranked(ranks, logits_NV.double(), targets_N, rtol=3e-7, atol=3e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_ties_between_tiles_are_counted_as_within_one(threads: int, bias: bool) -> None:
    """Logits are whole numbers, some 200 values among 3,209 entries: each target ties with entries of every tile."""
    hidden_ND, weight_VD, targets_N = whole_numbers(N, D, seed=1), whole_numbers(V, D, seed=2), targets()
    bias_V = whole_numbers(V, seed=4) if bias else None
    logits_NV = hidden_ND.double() @ weight_VD.double().T + (0 if bias_V is None else bias_V.double())
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        ranks = rank_tiles(hidden_ND, targets_N, weight_VD, bias_V)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert_by_definition(ranks, logits_NV, targets_N)
    assert (ranks.ties > 10).mean() > 0.4


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1500])
def test_any_number_of_positions_gives_each_the_same(n: int) -> None:
    hidden_ND, weight_VD, targets_N = whole_numbers(1500, D, seed=1), whole_numbers(V, D, seed=2), targets(1500)
    all_of_them = rank_tiles(hidden_ND, targets_N, weight_VD)
    some = rank_tiles(hidden_ND[:n], targets_N[:n], weight_VD)
    assert some.greater.tolist() == all_of_them.greater[:n].tolist()
    assert some.ties.tolist() == all_of_them.ties[:n].tolist()
    np.testing.assert_allclose(some.logprob, all_of_them.logprob[:n], rtol=3e-7)


def test_where_logits_are_no_whole_numbers_only_those_that_rounding_cannot_tell_apart_may_move() -> None:
    hidden_ND, weight_VD, targets_N = states(), weights(), targets()
    logits_NV = hidden_ND.double() @ weight_VD.double().T
    ranks = rank_tiles(hidden_ND, targets_N, weight_VD)
    own_N1 = logits_NV.gather(1, targets_N[:, None])
    rounding_N1 = 2.0**-20 * (hidden_ND.abs() @ weight_VD.abs().T).amax(1, keepdim=True).double()
    at_least_N = (logits_NV > own_N1 + rounding_N1).sum(1)
    at_most_N = (logits_NV > own_N1 - rounding_N1).sum(1)
    greater_N = torch.from_numpy(ranks.greater)
    assert ((at_least_N <= greater_N) & (greater_N <= at_most_N)).all()
    assert (at_least_N == at_most_N - 1).double().mean() > 0.8, "hardly any rank is left to rounding"
    own_logprob_N = logits_NV.log_softmax(1).gather(1, targets_N[:, None])[:, 0]
    np.testing.assert_allclose(ranks.logprob, own_logprob_N, rtol=3e-7, atol=2e-6)


def test_a_target_equal_to_thousands_of_entries_is_ranked_with_all_logits_at_once() -> None:
    hidden_ND, weight_VD, targets_N = whole_numbers(N, D, seed=1), whole_numbers(V, D, seed=2), targets()
    hidden_ND[::3] = 0  # every entry has the logit 0 there
    ranks = rank_tiles(hidden_ND, targets_N, weight_VD)
    assert_by_definition(ranks, hidden_ND.double() @ weight_VD.double().T, targets_N)
    assert (ranks.ties[::3] == V - 1).all()
    assert V - 1 > NEAR_KEPT > ranks.ties[1::3].max()


def test_a_row_that_ties_with_more_than_are_kept_leaves_the_row_below_it_alone() -> None:
    """The first row's 256th and later ties lie in the second tile, after the second row's own logit was kept."""
    weight_VD = torch.zeros(2048, 2)
    weight_VD[:200, 0] = weight_VD[1024:1324, 0] = 1.0
    weight_VD[:, 1] = torch.arange(2048.0)
    hidden_ND, targets_N = torch.eye(2), torch.tensor([3, 700])
    assert 200 < NEAR_KEPT < 200 + 300
    ranks = rank_tiles(hidden_ND, targets_N, weight_VD)
    assert_by_definition(ranks, hidden_ND.double() @ weight_VD.double().T, targets_N)
    assert (ranks.ties.tolist(), ranks.greater.tolist()) == ([499, 0], [0, 2047 - 700])


@pytest.mark.parametrize(
    "finish",
    [lambda z: z * 0.125, lambda z: z * -2.0, lambda z: 30.0 * torch.tanh(z / 30.0)],
    ids=["scale", "turned round", "soft cap"],
)
def test_what_follows_the_head_is_done_before_ranks_are_counted(finish: Callable[[Tensor], Tensor]) -> None:
    """A soft cap makes ties of its own: far out, tanh is flat in float32."""
    hidden_ND, weight_VD, targets_N = whole_numbers(N, D, seed=1), whole_numbers(V, D, seed=2) * 2, targets()
    plain_NV = (hidden_ND.double() @ weight_VD.double().T).float()
    ranks = rank_tiles(hidden_ND, targets_N, weight_VD, finish=finish)
    assert_by_definition(ranks, finish(plain_NV), targets_N)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("finish", [None, lambda z: 30.0 * torch.tanh(z)], ids=["plain", "soft cap"])
def test_no_row_of_an_ordinary_head_is_ranked_again_with_all_logits(
    finish: Callable[[Tensor], Tensor] | None, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its logits at the edges of tiles and, half of them, the largest: where a soft cap is flat in float32."""
    hidden_ND, weight_VD, targets_N = states(), weights(), targets()
    bias_V = torch.linspace(-2, 2, V) if bias else None
    logits_NV = hidden_ND @ weight_VD.T + (0 if bias_V is None else bias_V)
    targets_N[::2] = logits_NV[::2].argmax(1)
    targets_N[1:13:2] = torch.tensor([0, 1023, 1024, 2047, 3072, V - 1])
    again: list[int] = []
    plain = tiles.rank_hidden
    monkeypatch.setattr(tiles, "rank_hidden", lambda h, *rest: again.append(len(h)) or plain(h, *rest))
    rank_tiles(hidden_ND, targets_N, weight_VD, bias_V, finish)
    assert again == []


def test_a_last_tile_of_one_entry_is_that_of_its_own_row() -> None:
    hidden_ND, weight_VD = torch.tensor([[1.0], [1000.0], [2.0]]), torch.zeros(1025, 1)
    weight_VD[-1] = 1.0
    targets_N = torch.tensor([1024, 0, 7])
    assert_by_definition(rank_tiles(hidden_ND, targets_N, weight_VD), hidden_ND @ weight_VD.T, targets_N)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_and_states_of_16_bits_are_multiplied_in_float32(dtype: torch.dtype) -> None:
    hidden_ND, weight_VD = (whole_numbers(n, D, seed=n) / 16 for n in (N, V))
    ranks = rank_tiles(hidden_ND.to(dtype), targets(), weight_VD.to(dtype))
    assert_by_definition(ranks, hidden_ND.double() @ weight_VD.double().T, targets())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("row", [0, 170, N - 1])
@pytest.mark.parametrize("entry", ["own", 0, V - 1])
def test_logits_that_are_not_finite_are_refused_with_their_row(value: float, row: int, entry: str | int) -> None:
    hidden_ND, weight_VD, targets_N = states(), weights(), targets()
    weight_VD[targets_N[row] if entry == "own" else entry, 0] = 3e38
    hidden_ND[:, 0] = 0
    hidden_ND[row:, 0] = value
    with pytest.raises(NonFiniteLogits) as caught:
        rank_tiles(hidden_ND, targets_N, weight_VD)
    assert caught.value.row == row


def test_a_single_logit_of_minus_infinity_is_refused() -> None:
    bias_V = torch.zeros(V)
    bias_V[2000] = -math.inf
    with pytest.raises(NonFiniteLogits) as caught:
        rank_tiles(states(), targets(), weights(), bias_V)
    assert caught.value.row == 0


def test_logits_far_apart_keep_the_logprob_finite_and_right() -> None:
    hidden_ND, weight_VD, targets_N = whole_numbers(N, D, seed=1) * 8, whole_numbers(V, D, seed=2) * 8, targets()
    ranks = rank_tiles(hidden_ND, targets_N, weight_VD)
    assert_by_definition(ranks, hidden_ND.double() @ weight_VD.double().T, targets_N)
    assert min(ranks.logprob) < -3000


@pytest.mark.parametrize("scale", [-1e-20, -1.0, 1e-20, 1.0])
def test_logits_of_one_sign_have_their_logprob_however_small(scale: float) -> None:
    bias_V = scale * (1 + torch.arange(V) / V)
    ranks = rank_tiles(torch.zeros(N, D), targets(), torch.zeros(V, D), bias_V)
    assert_by_definition(ranks, bias_V.expand(N, V), targets())


def test_targets_must_be_as_many_as_positions() -> None:
    with pytest.raises(ValueError, match="300 hidden states for 299 targets"):
        rank_tiles(states(), targets(N - 1), weights())


# ------------------------------------------------------------------------------------------------------- in a model


@pytest.mark.parametrize("name", ["gpt_neox", "qwen2", "opt"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_text_is_measured_alike_by_tiles_and_with_whole_logits(
    name: str, dtype: str, tiny_checkpoint: Callable[..., Path], tiny_text: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import rbpx.measure.extract as extract
    from tests.support.measuring import load, measure, windows_of

    loaded = load(tiny_checkpoint(name), dtype)
    windows = windows_of(loaded, tiny_text)
    at_once = measure(loaded, windows)
    monkeypatch.setattr(extract, "_MIN_LOGITS_FOR_TILES", 0)
    tiled = measure(loaded, windows)
    for column in ("doc_id", "position", "token_id", "greater", "ties"):
        assert tiled[column].tolist() == at_once[column].tolist(), column
    np.testing.assert_allclose(tiled["logprob"], at_once["logprob"], rtol=1e-5, atol=1e-6)


def test_weights_that_are_not_finite_stop_a_run_by_tiles_and_say_where(
    tiny_checkpoint: Callable[..., Path], tiny_text: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import rbpx.measure.extract as extract
    from tests.support.measuring import load, measure, windows_of

    loaded = load(tiny_checkpoint("gpt_neox"))
    windows = windows_of(loaded, tiny_text)
    with torch.no_grad():
        loaded.model.get_output_embeddings().weight[5] = math.nan
    monkeypatch.setattr(extract, "_MIN_LOGITS_FOR_TILES", 0)
    with pytest.raises(MeasureError, match=r"non-finite logits at document \d+, position \d+"):
        measure(loaded, windows)
