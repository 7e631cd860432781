"""Beginnings of texts give the tokens of whole texts: twenty thousand drawn texts of each kind of tokenizer."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.data.breaks import break_rule
from tests.support.kinds_of_tokenizers import KINDS, PIECES, kinds_of_tokenizers, plain_first_tokens


@pytest.fixture(scope="module")
def tokenizers(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return kinds_of_tokenizers(shared_data / "data" / "tokenizers", tmp_path_factory.mktemp("tokenizers"))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20_000, deadline=None)
@given(st.lists(PIECES | st.characters(exclude_categories=["Cs"]), min_size=2, max_size=60).map("".join))
def test_tokens_before_every_break_are_those_of_the_beginning_alone(
    kind: str, tokenizers: dict[str, Any], text: str
) -> None:
    rule = break_rule(tokenizers[kind])
    whole = plain_first_tokens(tokenizers[kind], text, len(text) * 5)
    for place in rule.finditer(text):
        beginning = plain_first_tokens(tokenizers[kind], text[: place.start()], len(text) * 5)
        assert whole[: len(beginning)] == beginning
