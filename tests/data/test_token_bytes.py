"""Bytes of tokens: however a tokenizer cuts a text, its tokens stand for all of its bytes, each once."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.data.corpus import Document
from rbpx.data.windows import cut_windows, token_bytes
from tests.support.real_tokenizers import load_real

TEXT = st.text(st.one_of(st.sampled_from("aé東🙂 \n"), st.characters(codec="utf-8")), max_size=30)


@settings(max_examples=80, deadline=None)
@given(TEXT, st.data())
def test_the_tokens_of_a_text_stand_for_all_of_its_bytes(text: str, data: st.DataObject) -> None:
    ends = [*sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8))), len(text)]
    begins = [data.draw(st.integers(0, end)) for end in ends]  # white space trimmed off, characters of several tokens
    n_bytes_T = token_bytes(text, [(0, 0), *zip(begins, ends, strict=True), (0, 0)])
    assert n_bytes_T.sum() == len(text.encode())
    assert (n_bytes_T >= 0).all()
    assert n_bytes_T[0] == n_bytes_T[-1] == 0, "specials stand for nothing"
    for reached, end in enumerate(ends, 1):
        assert n_bytes_T[: reached + 1].sum() == len(text[:end].encode())


def with_markers(letters: str) -> Any:
    """As Llama 2's: a marker before a text, here with no token that joins it to a letter; other letters in bytes."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *letters]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    backend = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    backend.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")


@pytest.mark.parametrize(
    "text", ["\u4e1c\u897f\u5357\u5317\u4e2d\u53d1\u767da", "\U0001f642a", " a", "  \u4e1c a", "a"]
)
def test_a_marker_of_its_own_stands_for_no_byte_of_the_text_behind_it(text: str) -> None:
    tokenizer = with_markers("\u4e1c\u897f\u5357\u5317\u4e2d\u53d1\u767da")
    (window,) = cut_windows([Document(0, "0", text)], tokenizer, 64)
    assert window.scored.tolist() == [False] + [True] * (len(window.ids) - 1), "all but the marker"
    assert window.n_bytes == window.n_bytes_scored == len(text.encode())
    assert window.bytes_T[0] == 0


@pytest.mark.parametrize(
    ("arch", "text", "tokens", "window"),
    [
        ("gpt_neox", "cafe\u0301 cafe\u0301", ["c", "af", "e\u0301", " cafe\u0301"], 64),
        ("gpt_neox", "cafe\u0301 cafe\u0301", ["c", "af", "e\u0301"], 3),
        ("qwen2", "cafe\u0301 cafe\u0301", ["ca", "fe\u0301", " cafe\u0301"], 64),
        ("qwen2", "a \u1100\u1161\u11a8", ["a", " \u1100\u1161\u11a8"], 64),
        ("gpt2", "cafe\u0301", ["c", "afe", "\u0301", ""], 64),  # of two tokens; nothing is joined
    ],
)
def test_what_a_normaliser_joins_to_a_letter_belongs_to_the_letters_token(
    arch: str, text: str, tokens: list[str], window: int, shared_data: Path, tmp_path: Path
) -> None:
    tokenizer = load_real(arch, shared_data / "data" / "tokenizers", tmp_path / arch)
    (cut,) = cut_windows([Document(0, "0", text)], tokenizer, window)
    assert cut.bytes_T.tolist() == [len(token.encode()) for token in tokens]
    assert cut.n_bytes_scored == len("".join(tokens[1:]).encode())
