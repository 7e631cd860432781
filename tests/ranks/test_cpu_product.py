"""The product of the CPU path's tiles: against float64, for every way in which a tile is no whole number of blocks."""

import pytest
import torch
from torch import Tensor

from rbpx.ranks import cpu_product
from rbpx.ranks.cpu_product import COLUMNS, ROWS, best_dtype, tile_product, whole_blocks
from rbpx.ranks.definition import rank_logits
from rbpx.ranks.tiles import rank_tiles


def drawn(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def product_of(hidden_nD: Tensor, weight_vD: Tensor, bias_v: Tensor | None) -> Tensor:
    states_nD = whole_blocks(hidden_nD)
    buffer = torch.full((len(states_nD) * (len(weight_vD) + COLUMNS),), torch.nan)
    return tile_product(weight_vD, bias_v, hidden_nD.dtype)(states_nD, buffer)[: len(hidden_nD)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [1, ROWS, 2 * ROWS + 1])
@pytest.mark.parametrize("v", [1, COLUMNS, 3 * COLUMNS - 1])
@pytest.mark.parametrize("width", [2, 48, 2 * 1024 + 6, 4 * 1024 + 6])  # the last two are more words than a pass takes
@pytest.mark.parametrize("bias", [False, True])
def test_a_tile_holds_the_products_of_all_rows_and_entries(
    dtype: torch.dtype, n: int, v: int, width: int, bias: bool
) -> None:
    if dtype == torch.bfloat16 and not cpu_product.HAS_BFLOAT16:
        pytest.skip("this processor has no products of bfloat16")
    hidden_nD, weight_vD = drawn(n, width, seed=1, dtype=dtype), drawn(v, width, seed=2, dtype=dtype)
    bias_v = drawn(v, seed=3) if bias else None
    exact_nv = hidden_nD.double() @ weight_vD.double().T + (0 if bias_v is None else bias_v.double())
    rounding_nv = 2.0**-20 * (hidden_nD.double().abs() @ weight_vD.double().abs().T) + 1e-6
    assert ((product_of(hidden_nD, weight_vD, bias_v) - exact_nv).abs() <= rounding_nv).all()


@pytest.mark.parametrize("has_avx512", [True, False])
def test_a_processor_without_these_instructions_gives_the_same_ranks(
    has_avx512: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_product, "HAS_AVX512", has_avx512 and cpu_product.HAS_AVX512)
    monkeypatch.setattr(cpu_product, "HAS_BFLOAT16", has_avx512 and cpu_product.HAS_BFLOAT16)
    hidden_ND, weight_VD = (torch.round(4 * drawn(rows, 32, seed=rows)).bfloat16() for rows in (70, 1500))
    targets_N = torch.arange(70) * 21
    ranks = rank_tiles(hidden_ND, targets_N, weight_VD)
    expected = rank_logits((hidden_ND.double() @ weight_VD.double().T).float(), targets_N)
    assert ranks.greater.tolist() == expected.greater.tolist()
    assert ranks.ties.tolist() == expected.ties.tolist()


def test_only_numbers_of_bfloat16_are_multiplied_as_such() -> None:
    short, long = drawn(3, 8, seed=1, dtype=torch.bfloat16), drawn(3, 8, seed=1)
    assert best_dtype(short, short) == (torch.bfloat16 if cpu_product.HAS_BFLOAT16 else torch.float32)
    assert best_dtype(short, long) == best_dtype(long, short) == best_dtype(long, long) == torch.float32
    assert best_dtype(short[:, :7], short[:, :7]) == torch.float32  # an odd width is no whole number of pairs
    assert best_dtype(short.half(), short.half()) == torch.float32


def test_logits_of_bfloat16_weights_are_not_rounded_to_16_bits() -> None:
    """Hardly two of 1,500 logits are equal in float32; in bfloat16 most targets would tie."""
    hidden_ND, weight_VD = drawn(60, 64, seed=1, dtype=torch.bfloat16), drawn(1500, 64, seed=2, dtype=torch.bfloat16)
    targets_N = torch.arange(60)
    short = (hidden_ND @ weight_VD.T).float()
    assert (rank_logits(short, targets_N).ties > 0).mean() > 0.5
    ranks = rank_tiles(hidden_ND, targets_N, weight_VD)
    exact = rank_logits((hidden_ND.double() @ weight_VD.double().T).float(), targets_N)
    assert (ranks.ties > 0).mean() < 0.05
    assert (ranks.greater == exact.greater).mean() > 0.95
