"""Windows: which tokens a model reads, which of them are scored, and how many bytes of text they stand for."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.config.text.dataset import SHORTEST
from rbpx.data.corpus import Document
from rbpx.data.windows import Window, cut_windows, scored_positions
from tests.support.checkpoints import ARCHITECTURES, CONTEXT, build_tokenizer

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
def test_a_window_is_the_first_tokens_of_its_document_special_ones_included(arch: str, tiny_text: list[str]) -> None:
    tokenizer = build_tokenizer(arch)
    for window in (2, 7, CONTEXT, 10_000):
        windows = cut(tokenizer, *tiny_text, window=window)
        assert [w.doc_id for w in windows] == list(range(len(tiny_text)))
        for cut_window, text in zip(windows, tiny_text, strict=True):
            assert cut_window.ids.tolist() == tokenizer.backend_tokenizer.encode(text).ids[:window]
            assert cut_window.ids.dtype == np.int32


@pytest.mark.parametrize("arch", FAMILIES)
def test_scored_are_the_tokens_whose_input_and_label_are_plain_text(arch: str, tiny_text: list[str]) -> None:
    tokenizer = build_tokenizer(arch)
    special = set(tokenizer.all_special_ids)
    for window in cut(tokenizer, *tiny_text):
        expected = scored_by_the_rule(window.ids.tolist(), special)
        assert window.scored.tolist() == expected
        assert window.n_scored == sum(expected)


@pytest.mark.parametrize("arch", FAMILIES)
def test_the_first_token_is_never_predicted(arch: str, tiny_text: list[str]) -> None:
    assert not any(window.scored[0] for window in cut(build_tokenizer(arch), *tiny_text))


def test_the_first_text_token_of_opt_is_predicted_from_a_special_one_and_not_scored() -> None:
    tokenizer = build_tokenizer("opt")
    (window,) = cut(tokenizer, "The sea reads nothing.")
    assert tokenizer.convert_ids_to_tokens(window.ids.tolist())[0] == "</s>"
    assert window.scored.tolist() == [False, False] + [True] * (len(window.ids) - 2)
    (same,) = cut(build_tokenizer("gpt2"), "The sea reads nothing.")
    assert len(same.ids) == len(window.ids) - 1
    assert same.n_scored == window.n_scored  # there the first text token has nothing in front of it


def test_special_tokens_written_out_in_a_text_are_neither_input_nor_label() -> None:
    tokenizer = build_tokenizer("gpt2")
    (window,) = cut(tokenizer, "ab<|endoftext|>cd")
    tokens = tokenizer.convert_ids_to_tokens(window.ids.tolist())
    middle = tokens.index("<|endoftext|>")
    assert tokens == ["a", "b", "<|endoftext|>", "c", "d"]
    assert window.scored.tolist() == [False, True, False, False, True]
    assert middle == 2


def test_the_special_token_of_another_family_is_plain_text() -> None:
    (window,) = cut(build_tokenizer("gpt2"), "ab</s>cd")
    assert window.scored.tolist() == [False] + [True] * (len(window.ids) - 1)


def test_a_token_that_only_looks_like_text_is_skipped_if_the_tokenizer_calls_it_special() -> None:
    tokenizer = build_tokenizer("qwen2")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    (window,) = cut(tokenizer, "a<|im_start|>bc")
    assert window.scored.tolist() == [False, False, False, True]


def test_special_tokens_count_among_the_tokens_of_a_window() -> None:
    text = "The sea reads nothing. " * 20
    (opt,) = cut(build_tokenizer("opt"), text, window=10)
    (gpt2,) = cut(build_tokenizer("gpt2"), text, window=10)
    assert (len(opt.ids), len(gpt2.ids)) == (10, 10)
    assert (opt.n_scored, gpt2.n_scored) == (8, 9)


def test_a_special_token_at_the_end_counts_too_and_is_no_label() -> None:
    from tokenizers import processors

    tokenizer = build_tokenizer("opt")
    end = tokenizer.convert_tokens_to_ids("</s>")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        "$A </s>", special_tokens=[("</s>", end)]
    )
    short, long = cut(tokenizer, "of", "The sea reads nothing. " * 20, window=10)
    assert short.scored.tolist() == [False] + [True] * (len(short.ids) - 2) + [False]
    assert len(long.ids) == 10
    assert long.ids[-1] == end
    assert long.scored.tolist() == [False] + [True] * 8 + [False]


def test_a_window_is_the_beginning_also_where_the_tokenizer_would_cut_the_beginning_off() -> None:
    text = "The sea reads nothing. " * 20
    tokenizer = build_tokenizer("gpt2")
    (wanted,) = cut(tokenizer, text, window=10)
    tokenizer.truncation_side = "left"
    (found,) = cut(tokenizer, text, window=10)
    assert found.ids.tolist() == wanted.ids.tolist()


@pytest.mark.parametrize(("arch", "text"), [("gpt2", ""), ("gpt2", "a"), ("opt", ""), ("opt", "a")])
def test_a_document_without_two_tokens_in_a_row_has_a_window_and_nothing_to_score(arch: str, text: str) -> None:
    (window,) = cut(build_tokenizer(arch), text)
    assert window.n_scored == 0
    assert len(window.ids) == len(window.scored) == len(text) + (arch == "opt")
    assert len(window.ids) - (arch == "opt") < SHORTEST


def test_documents_of_nothing_but_special_tokens_have_nothing_to_score() -> None:
    (window,) = cut(build_tokenizer("gpt2"), "<|endoftext|>" * 5)
    assert len(window.ids) == 5
    assert window.n_scored == 0


def test_no_documents_give_no_windows() -> None:
    assert cut_windows([], build_tokenizer("gpt2"), CONTEXT) == []


def test_cutting_leaves_no_trace_in_the_next_cut(tiny_text: list[str]) -> None:
    tokenizer = build_tokenizer("opt")
    before = [w.ids.tolist() for w in cut(tokenizer, *tiny_text, window=9)]
    cut(tokenizer, *tiny_text, window=3)
    assert [w.ids.tolist() for w in cut(tokenizer, *tiny_text, window=9)] == before


# ---------------------------------------------------------------------------------------------------------- bytes


@pytest.mark.parametrize("arch", FAMILIES)
def test_bytes_are_those_of_the_whole_text_where_the_window_holds_it(arch: str, tiny_text: list[str]) -> None:
    windows = cut(build_tokenizer(arch), *tiny_text, window=10_000)
    assert [w.n_bytes for w in windows] == [len(text.encode()) for text in tiny_text]


@pytest.mark.parametrize("arch", FAMILIES)
@pytest.mark.parametrize("window", [2, 3, 4, 5, 9, 23, CONTEXT])
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


@pytest.fixture(scope="module")
def neox_tokenizer(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Pythia's own tokenizer: it trims white space off its offsets, and normalises."""
    from transformers import PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    with gzip.open(shared_data / "data" / "tokenizers" / "gpt_neox_20B_tokenizer.json.gz") as packed:
        path.write_bytes(packed.read())
    return PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|endoftext|>")


def test_pythias_windows_of_humaneval_cover_the_text_that_their_tokens_spell(
    neox_tokenizer: Any, shared_data: Path
) -> None:
    with gzip.open(shared_data / "data" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["prompt"] for line in lines][:40]
    texts += ["Grüße  \n\n", "a \n b  ", "東京 \N{SAILBOAT} "]
    for window in (64, 512):
        for cut_window, text in zip(cut(neox_tokenizer, *texts, window=window), texts, strict=True):
            assert cut_window.n_bytes == bytes_covered(neox_tokenizer, cut_window, text)


@pytest.mark.parametrize(
    ("ids", "special", "expected"),
    [
        ([], [], []),
        ([5], [], [False]),
        ([5, 6], [], [False, True]),
        ([0, 5, 6, 0, 7, 8], [0], [False, False, True, False, False, True]),
        ([0, 5, 1, 6, 6], [0, 1], [False, False, False, False, True]),
    ],
)
def test_scored_positions_of_worked_examples(ids: list[int], special: list[int], expected: list[bool]) -> None:
    assert scored_positions(np.asarray(ids, np.int32), special).tolist() == expected
