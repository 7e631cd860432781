"""The GPU's kernel, run on a CPU by Triton's interpreter: against counting by the definition, tie by tie."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor

from rbpx.ranks.definition import TokenRanks
from tests.support.interpreted import interpret, rank_there
from tests.support.reference import assert_ranked

pytest.importorskip("triton", reason="no Triton for this platform")

RankRows = Callable[[Tensor, Tensor], Tensor]


@pytest.fixture(scope="module")
def rank_rows() -> Iterator[RankRows]:
    """The kernel in a process of its own: whether Triton compiles or interprets is settled when it is imported."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), interpret) as interpreter:
        interpreter.submit(int).result()  # it starts here, so that `make mutate` takes it for every test's
        yield lambda logits_NV, targets_N: interpreter.submit(rank_there, logits_NV, targets_N).result()


def logits_of(n: int, width: int, step: float | None, offset: float = 0.0) -> Tensor:
    """Random logits; rounded to multiples of `step`, so that many tie."""
    logits_NV = torch.randn(n, width, generator=torch.Generator().manual_seed(width)) * 3 + offset
    return logits_NV if step is None else (logits_NV / step).round() * step


def targets_of(n: int, width: int) -> Tensor:
    return torch.randint(0, width, (n,), generator=torch.Generator().manual_seed(n))


def assert_by_definition(out_4N: Tensor, logits_NV: Tensor, targets_N: Tensor) -> None:
    greater, ties, logprob, finite = out_4N.numpy()
    assert finite.all()
    ranks = TokenRanks(greater, ties, logprob.view(np.float32))
    assert_ranked(ranks, logits_NV, targets_N, rtol=1e-6, atol=4e-6)


@pytest.mark.parametrize("width", [1, 2, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("step", [None, 1.0, 100.0], ids=["spread", "tied", "nearly all tied"])
def test_rows_of_any_width_are_counted_by_the_definition(rank_rows: RankRows, width: int, step: float | None) -> None:
    logits_NV, targets_N = logits_of(5, width, step), targets_of(5, width)
    assert_by_definition(rank_rows(logits_NV, targets_N), logits_NV, targets_N)


@pytest.mark.parametrize("offset", [-1e4, 1e4])
def test_logits_far_from_zero_lose_no_probability(rank_rows: RankRows, offset: float) -> None:
    logits_NV, targets_N = logits_of(4, 5000, 0.5, offset), targets_of(4, 5000)
    assert_by_definition(rank_rows(logits_NV, targets_N), logits_NV, targets_N)


def test_a_chunk_that_is_cut_out_of_a_wider_one_is_read_with_its_stride(rank_rows: RankRows) -> None:
    logits_NV, targets_N = logits_of(6, 6000, 0.25)[::2, :5000], targets_of(3, 5000)
    assert not logits_NV.is_contiguous()
    assert_by_definition(rank_rows(logits_NV, targets_N), logits_NV, targets_N)
    turned = logits_of(5000, 3, 0.25).T
    assert_by_definition(rank_rows(turned, targets_N), turned, targets_N)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("at", [0, 4095, 4096, 5999])
def test_a_row_that_is_not_finite_is_told_and_no_other(rank_rows: RankRows, value: float, at: int) -> None:
    logits_NV, targets_N = logits_of(3, 6000, None), torch.tensor([at, at, 7])
    logits_NV[1, at] = value
    assert rank_rows(logits_NV, targets_N)[3].tolist() == [1, 0, 1]
    logits_NV[1, at], logits_NV[2, at] = 0.0, value
    assert rank_rows(logits_NV, targets_N)[3].tolist() == [1, 1, 0]


def test_no_rows_are_no_rows(rank_rows: RankRows) -> None:
    assert rank_rows(torch.empty(0, 10), torch.empty(0, dtype=torch.int64)).shape == (4, 0)
