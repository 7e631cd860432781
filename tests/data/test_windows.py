"""Windows: which tokens a model reads, which of them are scored, and how many bytes of text they stand for."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.data.corpus import Document
from rbpx.data.windows import Window, cut_windows
from tests.support.checkpoints import ARCHITECTURES, CONTEXT, build_tokenizer
from tests.support.real_tokenizers import load_real

FAMILIES = [arch for arch in ARCHITECTURES if arch != "opt350"]  # which has OPT's tokenizer


def documents(texts: Sequence[str]) -> list[Document]:
    return [Document(doc_id, f"source {doc_id}", text) for doc_id, text in enumerate(texts)]


def cut(tokenizer: Any, *texts: str, window: int = CONTEXT) -> list[Window]:
    return cut_windows(documents(texts), tokenizer, window)


def scored_by_the_rule(ids: Sequence[int], special: set[int]) -> list[bool]:
    """A token is scored if it has a predecessor, and neither of the two is special."""
    return [t > 0 and ids[t] not in special and ids[t - 1] not in special for t in range(len(ids))]


def bytes_by_character() -> dict[str, int]:
    """GPT-2's table: the printable bytes stand for themselves, the others for the characters from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def bytes_covered(tokenizer: Any, window: Window, text: str) -> int:
    """Bytes of the whole characters that the tokens reach into, by spelling the tokens out."""
    table = bytes_by_character()
    spelled = b""
    for token in tokenizer.convert_ids_to_tokens(window.ids.tolist()):
        literal = token in tokenizer.get_added_vocab()
        if literal and not text.encode()[len(spelled) :].startswith(token.encode()):
            continue  # put there by the tokenizer
        spelled += token.encode() if literal else bytes(table[character] for character in token)
    assert text.encode().startswith(spelled)
    covered = 0
    for character in text:
        if covered >= len(spelled):
            break
        covered += len(character.encode())
    return covered


@pytest.mark.parametrize("arch", FAMILIES)
def test_a_window_is_the_first_tokens_of_its_document_and_scores_those_whose_input_and_label_are_plain_text(
    arch: str, tiny_text: list[str]
) -> None:
    tokenizer = build_tokenizer(arch)
    special = set(tokenizer.all_special_ids)
    for window in (2, 7, CONTEXT, 10_000):
        windows = cut(tokenizer, *tiny_text, window=window)
        assert [w.doc_id for w in windows] == list(range(len(tiny_text)))
        for cut_window, text in zip(windows, tiny_text, strict=True):
            tokenizer.backend_tokenizer.no_truncation()
            assert cut_window.ids.tolist() == tokenizer.backend_tokenizer.encode(text).ids[:window]
            assert cut_window.ids.dtype == np.int32
            expected = scored_by_the_rule(cut_window.ids.tolist(), special)
            assert cut_window.scored.tolist() == expected
            assert cut_window.n_scored == sum(expected)


@pytest.mark.parametrize(
    ("arch", "text", "tokens", "scored"),
    [
        ("gpt2", "ab<|endoftext|>cd", ["a", "b", "<|endoftext|>", "c", "d"], [False, True, False, False, True]),
        ("gpt2", "</s>", ["<", "/", "s", ">"], [False, True, True, True]),  # special in another family
        ("gpt2", "<|endoftext|>" * 3, ["<|endoftext|>"] * 3, [False] * 3),
        ("opt", "abc", ["</s>", "a", "b", "c"], [False, False, True, True]),
        *(("gpt2", text, [*text], [False] * len(text)) for text in ("", "a")),
        *(("opt", text, ["</s>", *text], [False] * (1 + len(text))) for text in ("", "a")),
    ],
)
def test_tokens_and_scores_of_worked_examples(arch: str, text: str, tokens: list[str], scored: list[bool]) -> None:
    tokenizer = build_tokenizer(arch)
    (window,) = cut(tokenizer, text)
    assert tokenizer.convert_ids_to_tokens(window.ids.tolist()) == tokens
    assert window.scored.tolist() == scored
    assert cut_windows([], tokenizer, CONTEXT) == []


def test_a_window_is_the_beginning_also_where_the_tokenizer_would_cut_the_beginning_off() -> None:
    text = "The sea reads nothing. " * 20
    tokenizer = build_tokenizer("gpt2")
    (wanted,) = cut(tokenizer, text, window=10)
    tokenizer.truncation_side = "left"
    (found,) = cut(tokenizer, text, window=10)
    assert found.ids.tolist() == wanted.ids.tolist()


# ---------------------------------------------------------------------------------------------------------- bytes


@pytest.mark.parametrize("arch", FAMILIES)
@pytest.mark.parametrize("window", [2, 3, 4, 5, 9, 23, CONTEXT, 10_000])
def test_bytes_are_those_of_the_characters_that_the_window_reaches(
    arch: str, window: int, tiny_text: list[str]
) -> None:
    tokenizer = build_tokenizer(arch)
    texts = [*tiny_text, "東京" * 40, "\N{SAILBOAT}" * 40, "  a  b \n\n" * 20, "e\u0301" * 40]
    for cut_window, text in zip(cut(tokenizer, *texts, window=window), texts, strict=True):
        assert cut_window.n_bytes == bytes_covered(tokenizer, cut_window, text)


def test_bytes_of_a_cut_inside_a_character_are_those_of_the_whole_character() -> None:
    # no Chinese in the training text of the tiny tokenizer: a token a byte, three a character
    windows = [cut(build_tokenizer("gpt2"), "東京", window=n)[0] for n in range(1, 7)]
    assert [len(w.ids) for w in windows] == [1, 2, 3, 4, 5, 6]
    assert [w.n_bytes for w in windows] == [3, 3, 3, 6, 6, 6]


def test_pythias_windows_of_humaneval_cover_the_text_that_their_tokens_spell(shared_data: Path, tmp_path: Path) -> None:
    """Its tokenizer trims white space off its offsets, and normalises."""
    tokenizer = load_real("gpt_neox", shared_data / "data" / "tokenizers", tmp_path / "tokenizer")
    with gzip.open(shared_data / "data" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["prompt"] for line in lines][:40]
    texts += ["Grüße  \n\n", "a \n b  ", "東京 \N{SAILBOAT} "]
    for window in (64, 512):
        for cut_window, text in zip(cut(tokenizer, *texts, window=window), texts, strict=True):
            assert cut_window.n_bytes == bytes_covered(tokenizer, cut_window, text)
