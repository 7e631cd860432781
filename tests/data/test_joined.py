"""Items of which the tokenizer joins a target to its context, under the real tokenizers of four families."""

from pathlib import Path
from typing import Any

import pytest

from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import Document, documents_of
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.items import item_of
from tests.support.real_tokenizers import ROWS, load_real

# Context and choices; what joins is a matter of the tokenizer, and the second pair of the second item does in all.
ITEMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("The sea reads", (" nothing", " letters")),
    ("Here is th", (" a", "e")),
    ("x = (", ("(", "1)")),
    ("import num", ("py", " py", "ber")),
    ("She said noth", ("ing", "ing at all")),  # the second one has tokens of its own behind the joined one
    ("Letters carry ", ("salt", " salt")),
    ("", ("a", "no context")),
)


@pytest.fixture(scope="module", params=[*ROWS])
def tokenizer(request: pytest.FixtureRequest, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    tokenizers = shared_data / "data" / "tokenizers"
    return load_real(request.param, tokenizers, tmp_path_factory.mktemp("tokenizer") / request.param)


def documents() -> list[Document]:
    task = DatasetConfig(name="x", path="x", context=["q"], choices="c", right="r").task
    rows: list[dict[str, Any]] = [{"q": context, "c": list(choices), "r": 0} for context, choices in ITEMS]
    return documents_of([(f"row {n}", item_of(row, task, lambda: "a row")) for n, row in enumerate(rows)])


def targets_of(tokenizer: Any) -> dict[int, list[list[int]]]:
    """The tokens of each choice of each item, as lm-evaluation-harness takes them (`_encode_pair` of its 0.4.13)."""
    targets: dict[int, list[list[int]]] = {}
    for item, (context, choices) in enumerate(ITEMS):
        context_ids = tokenizer(context.rstrip())["input_ids"] if context.rstrip() else []
        wholes = [tokenizer(context + each, add_special_tokens=context != "")["input_ids"] for each in choices]
        targets[item] = [whole[len(context_ids) :] for whole in wholes]
    return targets


def test_an_item_is_left_out_whole_where_a_choice_has_no_token_of_its_own(tokenizer: Any) -> None:
    targets, cut = targets_of(tokenizer), dict[tuple[int, int], list[int]]()
    read = documents()
    for document, window in zip(read, cut_as_harness(read, tokenizer, 64), strict=True):
        assert window.doc_id == document.doc_id
        cut[document.part.item, document.part.choice] = window.ids[window.scored].tolist()
        assert (window.n_bytes_scored > 0) == bool(window.n_scored)
    joined = {item for item, of in targets.items() if not all(of)}
    assert {1, 4} <= joined < {*range(len(ITEMS))}
    expected = {(item, n): [] if item in joined else ids for item, of in targets.items() for n, ids in enumerate(of)}
    assert cut == expected
