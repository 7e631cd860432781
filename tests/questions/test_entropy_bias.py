"""The bias of the entropy of ranks, corrected by leaving out documents: a literal loop, and draws of known entropy.

Shapes: D documents, T tokens of each.
"""

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from numpy.typing import ArrayLike

from rbpx.questions.entropy import bias as corrected
from tests.support.entropies import entropy_miller_madow

Triples = tuple[list[int], list[int], list[float]]


def entropy_jackknife(document: ArrayLike, rank: ArrayLike, n_tokens: ArrayLike) -> tuple[float, float]:
    return corrected.entropy_jackknife(corrected.counts_of(document, rank, n_tokens))


def plug_in(counts: Mapping[int, float]) -> float:
    n = sum(counts.values())
    return -math.fsum(c / n * math.log(c / n) for c in counts.values() if c)


def by_leaving_out(document: list[int], rank: list[int], n_tokens: list[float]) -> tuple[float, float]:
    """The corrected entropy and its standard error, each document left out in turn and the rest counted anew."""
    rows = list(zip(document, rank, n_tokens, strict=True))

    def without(left_out: int | None) -> float:
        counts = dict.fromkeys(rank, 0.0)
        for d, r, n in rows:
            if d != left_out:
                counts[r] += n
        return plug_in(counts)

    documents = sorted(set(document))
    D = len(documents)
    rest = [without(d) for d in documents]
    mean = math.fsum(rest) / D
    error = math.sqrt((D - 1) / D * math.fsum((value - mean) ** 2 for value in rest))
    return D * without(None) - (D - 1) * mean, error


def uneven(seed: int) -> Triples:
    """Documents of different lengths and numbers, in no order, some of their ranks in two entries."""
    rng = np.random.default_rng(seed)
    document = rng.choice([3, 7, 8, 1000, 52, 4], size=300, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    rank = np.ceil(rng.uniform(size=300) ** -1.2).clip(1, 50_304).astype(int)
    assert len({*zip(document.tolist(), rank.tolist(), strict=True)}) < 300
    return document.tolist(), rank.tolist(), rng.integers(1, 9, size=300).astype(float).tolist()


N_RANKS = 60
P = np.arange(1, N_RANKS + 1) ** -1.0 / np.sum(np.arange(1, N_RANKS + 1) ** -1.0)
TRUTH = -math.fsum(a * math.log(a) for a in P.tolist())


@cache
def estimates(copies: int) -> dict[str, np.ndarray]:
    """400 texts of 40 documents of 60 tokens; a document has each of its ranks `copies` times over.

    `luck` is the mean of -ln p over the ranks of a text: its expectation is the true entropy, and it moves with the
    estimates, so their differences from it tell the bias without most of the noise.
    """
    rng = np.random.default_rng(0)
    D, T = 40, 60
    document = np.repeat(np.arange(D), T // copies)
    found = []
    for _ in range(400):
        rank = rng.choice(np.arange(1, N_RANKS + 1), size=D * T // copies, p=P)
        counts = np.bincount(rank, minlength=N_RANKS + 1)[1:] * copies
        without_bias, error = entropy_jackknife(document, rank, np.full(len(rank), copies))
        uncorrected, by_tokens = plug_in(dict(enumerate(counts.tolist()))), entropy_miller_madow(counts)
        found.append((uncorrected, by_tokens, without_bias, error, -np.log(P[rank - 1]).mean()))
    return dict(zip(("plug-in", "Miller-Madow", "jackknife", "error", "luck"), np.transpose(found), strict=True))


def bias(name: str, copies: int) -> float:
    return float(np.mean(estimates(copies)[name] - estimates(copies)["luck"]))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_equals_a_loop_that_leaves_out_each_document(seed: int) -> None:
    found, expected = entropy_jackknife(*uneven(seed)), by_leaving_out(*uneven(seed))
    assert found == pytest.approx(expected, rel=1e-10)
    assert [type(value) for value in found] == [float, float]


def test_two_documents_give_numbers_worked_by_hand() -> None:
    # Each alone has one rank and no entropy: H_J = 2 ln 2 - 0, and both leave out the same.
    assert entropy_jackknife([0, 1], [1, 2], [5, 5]) == pytest.approx((2 * math.log(2), 0.0), abs=1e-15)
    # (1, 2) and (1): together H = ln 3 - 2/3 ln 2, alone ln 2 and 0; H_J = 2 H - ln 2 / 2, half of ln 2 as its error.
    found = entropy_jackknife([0, 0, 1], [1, 2, 1], [1, 1, 1])
    assert found == pytest.approx((2 * math.log(3) - 11 / 6 * math.log(2), math.log(2) / 2), rel=1e-13)


def test_documents_that_are_all_the_same_teach_nothing_about_the_bias() -> None:
    document, rank, n_tokens = np.repeat(np.arange(9), 3), np.tile([1, 2, 30], 9), np.tile([6, 3, 1], 9)
    without_bias, error = entropy_jackknife(document, rank, n_tokens)
    assert without_bias == pytest.approx(plug_in({1: 6, 2: 3, 30: 1}), rel=1e-12)
    assert error == pytest.approx(0, abs=1e-12)


def test_a_rank_that_only_one_document_has_leaves_with_it() -> None:
    document, rank, n_tokens = [0, 1, 2, 2], [1, 1, 1, 7], [10.0, 10.0, 10.0, 2.0]
    assert entropy_jackknife(document, rank, n_tokens) == pytest.approx(
        by_leaving_out(document, rank, n_tokens), rel=1e-12
    )


def test_the_order_and_the_names_of_documents_and_split_counts_do_not_matter() -> None:
    document, rank, n_tokens = (np.asarray(column) for column in uneven(4))
    plain = entropy_jackknife(document, rank, n_tokens)
    order = np.random.default_rng(5).permutation(len(rank))
    assert entropy_jackknife(document[order], rank[order], n_tokens[order]) == pytest.approx(plain, rel=1e-12)
    assert entropy_jackknife(10**9 - document, rank, n_tokens) == pytest.approx(plain, rel=1e-12)
    merged = dict.fromkeys(zip(document.tolist(), rank.tolist(), strict=True), 0.0)
    for d, r, n in zip(document.tolist(), rank.tolist(), n_tokens.tolist(), strict=True):
        merged[d, r] += n
    whole = entropy_jackknife([d for d, _ in merged], [r for _, r in merged], list(merged.values()))
    assert whole == pytest.approx(plain, rel=1e-12)


def test_only_shares_count_not_how_many_tokens_there_are() -> None:
    document, rank, n_tokens = uneven(6)
    tenfold = entropy_jackknife(document, rank, [10 * n for n in n_tokens])
    assert tenfold == pytest.approx(entropy_jackknife(document, rank, n_tokens), rel=1e-12)


@pytest.mark.parametrize("copies", [1, 6])
def test_it_removes_most_of_the_bias_whether_tokens_of_a_document_are_alike_or_not(copies: int) -> None:
    # To first order the plug-in lacks (ranks - 1) / (2 draws); the jackknife leaves what is of second order.
    assert bias("plug-in", copies) == pytest.approx(-(N_RANKS - 1) * copies / (2 * 2400), rel=0.1)
    assert abs(bias("jackknife", copies)) < 0.15 * abs(bias("plug-in", copies))


def test_where_tokens_of_a_document_are_alike_counting_tokens_corrects_too_little() -> None:
    # Six equal tokens count as six where they are one: a sixth of the bias is taken away.
    assert bias("Miller-Madow", 6) / bias("plug-in", 6) == pytest.approx(5 / 6, abs=0.05)
    assert abs(bias("Miller-Madow", 1)) < 0.15 * abs(bias("plug-in", 1))


@pytest.mark.parametrize("copies", [1, 6])
def test_the_standard_error_is_the_spread_over_texts(copies: int) -> None:
    found = estimates(copies)
    # The spread over 400 texts is known to 1 / sqrt(2 * 400) = 3.5 %.
    assert float(found["error"].mean()) == pytest.approx(float(found["jackknife"].std(ddof=1)), rel=0.12)


def test_the_interval_of_two_standard_errors_holds_the_true_entropy() -> None:
    for copies in (1, 6):
        found = estimates(copies)
        inside = np.abs(found["jackknife"] - TRUTH) < 1.96 * found["error"]
        assert 0.90 <= inside.mean() <= 0.99
