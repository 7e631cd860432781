"""A vocabulary that is split over processes, here threads that meet: the ranks are those of whole logits."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import Tensor

from rbpx.ranks.definition import NonFiniteLogits, TokenRanks
from rbpx.ranks.split_vocabulary import VocabularyPart, rank_part
from tests.support.reference import assert_ranked

N, D, V = 37, 8, 103
HEIGHTS = {"even": [52, 51], "four": [26, 26, 26, 25], "one has nothing": [60, 43, 0]}


class Meeting:
    """Reductions over threads: each leaves its tensor, and all read what the others left."""

    def __init__(self, size: int) -> None:
        self.barrier, self.left = Barrier(size, timeout=20), [torch.empty(0)] * size

    def reduction(self, rank: int, how: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def reduce(values: Tensor) -> Tensor:
            self.left[rank] = values
            self.barrier.wait()
            result = how(torch.stack(self.left))
            self.barrier.wait()
            return result

        return reduce


def rank_together(hidden_ND: Tensor, targets_N: Tensor, weight_VD: Tensor, heights: list[int]) -> list[TokenRanks]:
    """What each of several threads finds that hold so many rows of the head each."""
    meeting = Meeting(len(heights))

    def of_thread(rank: int) -> TokenRanks:
        start = sum(heights[:rank])
        rows = weight_VD[start : start + heights[rank]]
        part = VocabularyPart(
            start, heights[rank], max(heights), meeting.reduction(rank, lambda each: each.sum(0)),
            meeting.reduction(rank, lambda each: each.amax(0)),
        )  # fmt: skip
        return rank_part(hidden_ND, targets_N, lambda hidden_nD: hidden_nD @ rows.T, part)

    with ThreadPoolExecutor(len(heights)) as threads:
        return list(threads.map(of_thread, range(len(heights))))


def drawn(whole_numbers: bool) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    hidden_ND, weight_VD = torch.randn(N, D, generator=generator), torch.randn(V, D, generator=generator)
    if whole_numbers:  # logits tie, within a part and between parts
        hidden_ND, weight_VD = hidden_ND.round(), weight_VD.round()
    return hidden_ND, torch.randint(V, (N,), generator=generator), weight_VD


@pytest.mark.parametrize("heights", HEIGHTS.values(), ids=HEIGHTS)
@pytest.mark.parametrize("whole_numbers", [False, True], ids=["spread", "tied"])
def test_every_process_finds_the_ranks_of_the_definition(heights: list[int], whole_numbers: bool) -> None:
    hidden_ND, targets_N, weight_VD = drawn(whole_numbers)
    logits_NV = torch.cat([hidden_ND @ rows.T for rows in weight_VD.split(heights)], 1)
    for ranks in rank_together(hidden_ND, targets_N, weight_VD, heights):
        assert_ranked(ranks, logits_NV, targets_N)
        assert (ranks.ties.sum() > 0) == whole_numbers


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("at", [0, 70], ids=["first part", "second part"])
def test_all_refuse_a_row_that_is_not_finite_in_one_part(value: float, at: int) -> None:
    hidden_ND, targets_N, weight_VD = drawn(whole_numbers=False)
    weight_VD[at] = value
    with pytest.raises(NonFiniteLogits) as raised:
        rank_together(hidden_ND, targets_N, weight_VD, HEIGHTS["even"])
    assert raised.value.row == 0


def test_padding_is_cut_off_where_it_lies() -> None:
    part = VocabularyPart(60, 43, 60, lambda values: values, lambda values: values)
    assert [part.below(limit).width for limit in (103, 80, 60, 20)] == [43, 20, 0, 0]


@pytest.mark.parametrize(("head", "says"), [(Tensor.double, "float32"), (lambda rows: rows[:, :-1], "shape .4, 2.")])
def test_a_head_that_gives_other_logits_is_refused(head: Callable[[Tensor], Tensor], says: str) -> None:
    alone = VocabularyPart(0, 3, 3, lambda values: values, lambda values: values)
    with pytest.raises(ValueError, match=says):
        rank_part(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64), head, alone)
