"""Output heads of every kind: what a model does behind its head is found and done alike, in every precision."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.heads import HEADS, LITTLE, build_head, check_in_16_bits, check_in_float32, check_little


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny random model of each kind."""
    return cache(lambda name: build_head(name, tmp_path_factory.mktemp("heads") / "model"))


@pytest.mark.parametrize("name", HEADS)
def test_rows_and_logits_are_those_that_the_model_itself_emits(
    name: str, checkpoint: Callable[[str], Path], tiny_text: list[str]
) -> None:
    check_in_float32(name, checkpoint(name), tiny_text)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", HEADS)
def test_logits_of_16_bit_models_are_float32_products(name: str, dtype: str, checkpoint: Callable[[str], Path]) -> None:
    check_in_16_bits(name, checkpoint(name), dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", LITTLE)
def test_a_factor_near_1_and_a_high_cap_are_found_in_every_precision(
    name: str, dtype: str, checkpoint: Callable[[str], Path]
) -> None:
    check_little(name, checkpoint(name), dtype)
