"""The same numbers as lm-evaluation-harness 0.4.13: its answers are kept in harness_answers.json.

It was asked about the cases and models of `tests.support.harness_cases`, with its softmax in float64 (in float32, its
default, torch's loses up to 1e-3 nats of a target of 50 tokens where one of 50,000 logits stands out; `rounding` says
how far those answers are). The program that asked it is tests/support/harness_answers.py at 579d8dd3.
"""

from pathlib import Path

import pytest

from rbpx.models.load import LoadedModel
from tests.support.harness_cases import TEMPLATE
from tests.support.harness_scores import check_choices, check_targets, check_texts, item_documents, load_shape, score


@pytest.fixture(scope="module", params=["gpt2", "opt", "gpt_neox"])
def shape(
    request: pytest.FixtureRequest, shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, LoadedModel]:
    return request.param, load_shape(request.param, shared_data, tmp_path_factory.mktemp("shape"))


def test_targets_choices_and_texts_have_the_numbers_of_the_harness(shape: tuple[str, LoadedModel]) -> None:
    check_targets(*shape)
    check_choices(*shape)
    check_texts(*shape)


def test_choices_of_one_token_read_their_context_once(shape: tuple[str, LoadedModel]) -> None:
    loaded = shape[1]
    row = {"question": "What is first?", "choices": ["a", "b", "c", "d"], "label": 0}
    of_items = item_documents([row], template=TEMPLATE, choices="choices", right="label", delimiter=" ")
    n_read: list[int] = []
    hook = loaded.model.get_input_embeddings().register_forward_hook(
        lambda module, inputs, output: n_read.append(len(inputs[0]))
    )
    try:
        together = [each.loglikelihood for each in score(loaded, of_items)]
    finally:
        hook.remove()
    assert n_read == [1]
    alone = [score(loaded, [document])[0].loglikelihood for document in of_items]
    assert together == pytest.approx(alone, abs=1e-5)
