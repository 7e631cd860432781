"""The numbers of lm-evaluation-harness 0.4.13 for a vocabulary of 150,000, and a model with another's tokenizer."""

from pathlib import Path

import pytest

from rbpx.models.load import LoadedModel
from tests.support.harness_scores import check_choices, check_targets, check_texts, load_shape


@pytest.fixture(scope="module", params=["qwen2", "llama"])
def shape(
    request: pytest.FixtureRequest, shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, LoadedModel]:
    return request.param, load_shape(request.param, shared_data, tmp_path_factory.mktemp("shape"))


def test_targets_choices_and_texts_have_the_numbers_of_the_harness(shape: tuple[str, LoadedModel]) -> None:
    check_targets(*shape)
    check_choices(*shape)
    check_texts(*shape)
