"""Rows of whole documents in batches of every size, for models of every shape."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.checkpoints import ARCHITECTURES
from tests.support.measuring import (
    assert_same_rows,
    check_many_documents,
    load,
    measure,
    plain_rows,
    windows_of,
)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_batches_of_every_size_give_the_rows_of_the_plain_loop(
    arch: str, tiny_checkpoint: Callable[..., Path], tiny_text: list[str]
) -> None:
    loaded = load(tiny_checkpoint(arch, twins=8))
    windows = windows_of(loaded, tiny_text)
    expected = plain_rows(tiny_checkpoint(arch, twins=8), windows, loaded.tokenizer.all_special_ids)
    for budget in (1, 7, 64, 65, 200, 1000, 10**6):
        assert_same_rows(measure(loaded, windows, budget), expected)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_rows_of_many_documents_stay_within_the_contract_in_any_batch(
    arch: str, tiny_checkpoint: Callable[..., Path]
) -> None:
    check_many_documents(load(tiny_checkpoint(arch)))
