"""Beginnings of texts give the tokens of whole texts: held against full tokenisation, at hostile places."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.config.options import Bos
from rbpx.data import windows as home
from rbpx.data.breaks import break_rule
from rbpx.data.corpus import Document
from rbpx.data.windows import cut_windows
from tests.support.kinds_of_tokenizers import KINDS, PIECES, kinds_of_tokenizers, plain_first_tokens


def check(tokenizer: Any, text: str, window: int, least: int = 1) -> None:
    """Cut as `cut_windows` does, with beginnings so short that the place of the cut decides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "_CHARACTERS", 1)
        patch.setattr(home, "_LEAST_READ", least)
        ids, places = home._first_tokens([text], tokenizer, window, Bos.tokenizer)
    assert ids[0] == plain_first_tokens(tokenizer, text, window)
    assert places[0] == home.encoded([text], tokenizer, None, Bos.tokenizer)[1][0][:window]


@pytest.fixture(scope="module")
def tokenizers(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return kinds_of_tokenizers(shared_data / "data" / "tokenizers", tmp_path_factory.mktemp("tokenizers"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_here_proves_places_to_cut(kind: str, tokenizers: dict[str, Any]) -> None:
    rule = break_rule(tokenizers[kind])
    assert [match.start() for match in rule.finditer("a b  c, d")] == [1, 3]


@pytest.fixture(scope="module")
def texts(shared_data: Path) -> list[str]:
    """Prose, code, laws and sums, one after the other, each several thousand characters."""
    data = shared_data / "data"
    with gzip.open(data / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        code = "\n".join(json.loads(line)["prompt"] for line in lines)
    laws = (data / "south_australian_legislation_sample.jsonl").open(encoding="utf-8")
    with laws:
        law = json.loads(laws.readline())["text"]
    sums = (data / "gsm8k_test.jsonl").read_text(encoding="utf-8")
    wiki = (data / "wikitext-2-raw-test.txt").read_text(encoding="utf-8")
    return [each[start : start + 6_000] for each in (code, law, sums, wiki) for start in (0, 9_000)]


@pytest.mark.parametrize("kind", KINDS)
def test_first_tokens_of_real_texts_are_those_of_the_whole(
    kind: str, tokenizers: dict[str, Any], texts: list[str]
) -> None:
    for at, text in enumerate(texts):
        for window in (1, 2, 3, 7, 64, 301)[at % 3 :: 3]:
            check(tokenizers[kind], text, window)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(st.lists(PIECES, min_size=2, max_size=30).map("".join), st.integers(1, 12), st.integers(1, 9))
def test_first_tokens_of_any_text_are_those_of_the_whole(
    kind: str, tokenizers: dict[str, Any], text: str, window: int, least: int
) -> None:
    check(tokenizers[kind], text, window, least)


def without_a_proof() -> dict[str, Any]:
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    def with_changes(**changes: Any) -> Any:
        letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz "
        vocabulary = {letter: number for number, letter in enumerate(letters)} | {"a b": 70, "a ": 71}
        merges = [("a", " "), ("a ", "b")]
        backend = Tokenizer(models.BPE(vocabulary, merges, **changes.pop("model", {})))
        added = changes.pop("added", None)
        if added is not None:
            backend.add_tokens([added])
        for name, value in changes.items():
            setattr(backend, name, value)
        return PreTrainedTokenizerFast(tokenizer_object=backend)

    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return {
        "a merge over a space": with_changes(),
        "an unknown pattern": with_changes(pre_tokenizer=pre_tokenizers.Split(Regex(r"\S+\s\S+"), "isolated")),
        "bytes without a rule": with_changes(pre_tokenizer=pre_tokenizers.ByteLevel(use_regex=False)),
        "a normaliser that looks around": with_changes(
            normalizer=normalizers.Replace(Regex("a b"), "c"), pre_tokenizer=bytes_
        ),
        "a normaliser of the end": with_changes(normalizer=normalizers.Strip(), pre_tokenizer=bytes_),
        "an added token over a space": with_changes(added=AddedToken("new york"), pre_tokenizer=bytes_),
        "an added token that takes space in": with_changes(added=AddedToken("MASK", rstrip=True), pre_tokenizer=bytes_),
        "merges by chance": with_changes(model={"dropout": 0.5}, pre_tokenizer=bytes_),
    }


@pytest.mark.parametrize(("kind", "tokenizer"), without_a_proof().items(), ids=list(without_a_proof()))
def test_a_tokenizer_without_a_proof_reads_the_whole_text(kind: str, tokenizer: Any) -> None:
    assert break_rule(tokenizer) is None
    text = "a b new york MASK  a b" * 40
    if kind != "merges by chance":
        check(tokenizer, text, 5)


def test_a_long_line_is_read_as_far_as_its_window_needs(tokenizers: dict[str, Any]) -> None:
    lengths: list[int] = []

    class Counting:
        """The tokenizer, noting how many characters it is given."""

        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizers["gpt2"], name)

        def __call__(self, texts: Sequence[str], **options: Any) -> Any:
            lengths.extend(map(len, texts))
            return tokenizers["gpt2"](texts, **options)

    text = "The sea reads nothing. " * 20_000
    (window,) = cut_windows([Document(0, "0", text)], Counting(), 512)
    assert sum(lengths) < 2 * home._CHARACTERS * 512 < len(text) / 50
    assert window.ids.tolist() == plain_first_tokens(tokenizers["gpt2"], text, 512)
