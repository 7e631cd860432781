"""Exact ranks: against counting by the definition, with planted ties, in chunks, and with logits not finite."""

import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from rbpx.ranks.definition import NonFiniteLogits, TokenRanks, rank_hidden, rank_logits
from tests.support.reference import assert_ranked

N, V = 75, 320
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")]),
]
CHUNK_ROWS = [1, 7, 32, N - 1, N, 10 * N]


def spread_logits(offset: float = 0.0) -> Tensor:
    return torch.randn(N, V, generator=torch.Generator().manual_seed(1)) * 3 + offset


def tied_logits() -> Tensor:
    return spread_logits().round()  # some 20 distinct values among 320


def some_targets() -> Tensor:
    return torch.randint(0, V, (N,), generator=torch.Generator().manual_seed(2))


def lookup(logits_NV: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Hidden states and a head that give exactly these logits, whatever the chunk."""
    hidden_N1 = torch.arange(len(logits_NV), dtype=torch.float32, device=logits_NV.device)[:, None]
    return hidden_N1, lambda hidden_n1: logits_NV[hidden_n1[:, 0].long()]


def assert_ranked_by_definition(ranks: TokenRanks, logits_NV: Tensor, targets_N: Tensor) -> None:
    assert_ranked(ranks, logits_NV, targets_N, atol=4 * float(np.finfo(np.float32).eps) * float(logits_NV.abs().max()))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("logits_NV", [spread_logits(), spread_logits(-100), tied_logits()], ids=["0", "-100", "tied"])
def test_ranks_are_those_of_the_definition(logits_NV: Tensor, device: str) -> None:
    targets_N = some_targets()
    ranks = rank_logits(logits_NV.to(device), targets_N.to(device))
    assert_ranked_by_definition(ranks, logits_NV, targets_N)


def test_duplicate_rows_of_the_head_tie_exactly() -> None:
    generator = torch.Generator().manual_seed(3)
    weight_VD = torch.randint(-8, 9, (V, 16), generator=generator).float()  # whole numbers: every dot product is exact
    weight_VD[:, 0] = torch.arange(V) * 4096  # far apart, but for the planted rows:
    weight_VD[300:303] = weight_VD[5]
    hidden_ND = torch.randint(-8, 9, (N, 16), generator=generator).float()
    hidden_ND[:, 0] = 1
    targets_N = torch.arange(N) % 10
    ranks = rank_hidden(hidden_ND, targets_N, lambda hidden: hidden @ weight_VD.T, V, chunk_bytes=4 * V * 32)
    assert ranks.ties.tolist() == [3 if target == 5 else 0 for target in targets_N.tolist()]
    # Above target t lie t + 1 .. 319, less 300, 301, 302 for the targets that they equal or lie below.
    assert ranks.greater.tolist() == [V - 1 - t - (3 if t >= 5 else 0) for t in targets_N.tolist()]


@pytest.mark.parametrize("rows", CHUNK_ROWS)
@pytest.mark.parametrize("logits_NV", [spread_logits(), tied_logits()], ids=["spread", "tied"])
def test_the_size_of_a_chunk_changes_nothing(logits_NV: Tensor, rows: int) -> None:
    targets_N = some_targets()
    ranks = rank_hidden(lookup(logits_NV)[0], targets_N, lookup(logits_NV)[1], V, chunk_bytes=4 * V * rows)
    assert_ranked_by_definition(ranks, logits_NV, targets_N)


def test_no_positions_have_no_ranks() -> None:
    hidden_N1, head = lookup(spread_logits()[:0])
    for ranks in (
        rank_logits(head(hidden_N1), some_targets()[:0]),
        rank_hidden(hidden_N1, some_targets()[:0], head, V),
    ):
        assert [column.shape for column in vars(ranks).values()] == [(0,)] * 3


@pytest.mark.parametrize(("chunk_bytes", "n_rows"), [(4 * V * 32, 32), (4 * V * 33 - 1, 32), (4 * V * 8, 8), (1, 1)])
def test_one_chunk_is_alive_at_a_time_of_as_many_rows_as_its_bytes_allow_and_none_records_gradients(
    chunk_bytes: int, n_rows: int
) -> None:
    hidden_N1, head = lookup(spread_logits().requires_grad_())
    made: list[weakref.ref[Tensor]] = []
    alive, chunk_rows = [], []

    def recording_head(hidden_n1: Tensor) -> Tensor:
        alive.append(sum(logits() is not None for logits in made))
        chunk_rows.append(len(hidden_n1))
        logits_nV = head(hidden_n1)
        assert not logits_nV.requires_grad
        made.append(weakref.ref(logits_nV))
        return logits_nV

    rank_hidden(hidden_N1, some_targets(), recording_head, V, chunk_bytes)
    assert not any(alive)
    assert (max(chunk_rows), sum(chunk_rows)) == (n_rows, N)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("at_the_target", [True, False])
@pytest.mark.parametrize("bad_row", [0, 7, N - 1])
def test_logits_that_are_not_finite_are_refused_with_their_row(
    bad_row: int, at_the_target: bool, value: float, device: str
) -> None:
    logits_NV, targets_N = spread_logits(), some_targets()
    column = int(targets_N[bad_row]) if at_the_target else (int(targets_N[bad_row]) + 1) % V
    logits_NV[bad_row, column] = value
    logits_NV[-1, 3] = value  # a later one is not the one to name
    logits_NV, targets_N = logits_NV.to(device), targets_N.to(device)
    with pytest.raises(NonFiniteLogits) as refused:
        rank_logits(logits_NV, targets_N)
    assert refused.value.row == bad_row
    hidden_N1, head = lookup(logits_NV)
    for rows in (1, 7, N):
        with pytest.raises(NonFiniteLogits, match=f"position {bad_row} ") as refused:
            rank_hidden(hidden_N1, targets_N, head, V, chunk_bytes=4 * V * rows)
        assert refused.value.row == bad_row


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_logits_that_are_not_float32_are_refused(dtype: torch.dtype) -> None:
    logits_NV = spread_logits().to(dtype)
    with pytest.raises(ValueError, match="float32"):
        rank_logits(logits_NV, some_targets())
    with pytest.raises(ValueError, match="float32"):
        rank_hidden(*lookup(logits_NV)[:1], some_targets(), lookup(logits_NV)[1], V)


def test_hidden_states_may_be_bfloat16_when_the_head_gives_float32() -> None:
    logits_NV = tied_logits()
    hidden_N1, head = lookup(logits_NV)  # 0 .. 74 are exact in bfloat16
    ranks = rank_hidden(hidden_N1.bfloat16(), some_targets(), head, V)
    assert_ranked_by_definition(ranks, logits_NV, some_targets())


def test_a_head_of_another_width_is_refused() -> None:
    hidden_N1, head = lookup(spread_logits())
    with pytest.raises(ValueError, match=f"{V} logits where vocab_size is {V + 1}"):
        rank_hidden(hidden_N1, some_targets(), head, V + 1)


def test_a_target_too_few_is_refused() -> None:
    hidden_N1, head = lookup(spread_logits())
    with pytest.raises(ValueError, match="do not fit"):
        rank_logits(spread_logits(), some_targets()[1:])
    with pytest.raises(ValueError, match=f"{N} hidden states for {N - 1} targets"):
        rank_hidden(hidden_N1, some_targets()[1:], head, V)


def test_ranks_beyond_sixteen_bits_are_counted() -> None:
    wide = 152_064  # qwen2.5-7b
    logits_NV = torch.arange(wide, dtype=torch.float32)[None].repeat(2, 1)
    logits_NV[1] = 0
    ranks = rank_logits(logits_NV, torch.tensor([0, 0]))
    assert ranks.greater.tolist() == [wide - 1, 0]
    assert ranks.ties.tolist() == [0, wide - 1]
