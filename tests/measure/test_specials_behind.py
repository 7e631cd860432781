"""Tokenizers that put special tokens behind a text: these are neither context nor label, in items and in texts."""

import json
from pathlib import Path
from typing import Any

import pytest

from rbpx.data.corpus import Document
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.windows import cut_windows, ids_around
from tests.support.checkpoints import TINY_TEXT, build_checkpoint, build_tokenizer
from tests.support.composed import here
from tests.support.items import CHOICES, QUESTIONS, documents
from tests.support.stores import manifests


def tokenizer_with(template: str) -> Any:
    """GPT-NeoX's tiny tokenizer with this template, in which `<|endoftext|>` is the special token."""
    from tokenizers import processors

    tokenizer = build_tokenizer("gpt_neox")
    end = "<|endoftext|>"
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=template.replace("END", end), special_tokens=[(end, tokenizer.convert_tokens_to_ids(end))]
    )
    return tokenizer


BEHIND = ("$A END", "END $A END", "END $A END END")


@pytest.mark.parametrize("template", BEHIND)
def test_a_target_is_all_of_its_tokens_and_nothing_behind_them(template: str) -> None:
    front_alone, both = (tokenizer_with(each) for each in (template.partition("$A")[0] + "$A", template))
    of_items = documents(QUESTIONS, CHOICES)
    for window, right in zip(
        cut_as_harness(of_items, both, 64), cut_as_harness(of_items, front_alone, 64), strict=True
    ):
        assert window.ids.tolist() == right.ids.tolist()
        assert window.scored.tolist() == right.scored.tolist()
        assert window.n_bytes_scored == right.n_bytes_scored == int(window.scored_bytes[1].sum())


@pytest.mark.parametrize("template", BEHIND)
@pytest.mark.parametrize("window", [8, 64])
def test_what_stands_behind_a_text_is_never_scored(template: str, window: int) -> None:
    both, texts = tokenizer_with(template), [Document(n, str(n), text) for n, text in enumerate(TINY_TEXT)]
    before, behind = ids_around(both)
    assert (len(before), len(behind)) == tuple(part.count("END") for part in template.split("$A"))
    named = cut_windows(texts, both, window)
    for token in ("bos_token", "eos_token", "unk_token"):
        setattr(both, token, None)
    unnamed = cut_windows(texts, both, window)
    assert both.all_special_ids == []
    for cut, one, text in zip(unnamed, named, texts, strict=True):
        assert cut.ids.tolist() == one.ids.tolist() == both(text.text, truncation=True, max_length=window)["input_ids"]
        assert not cut.scored[-len(behind) :].any()
    both = tokenizer_with(template)
    of_harness = [w for w in cut_as_harness(texts, both, window) if w.n_scored]
    plain = [both(text.text, add_special_tokens=False)["input_ids"] for text in texts]
    assert sum(w.n_scored for w in of_harness) == sum(len(before) + len(ids) for ids in plain)
    (of_nothing,) = cut_as_harness([Document(0, "0", "")], both, window)
    assert (of_nothing.n_scored, of_nothing.n_bytes, of_nothing.n_bytes_scored) == (len(before), 0, 0)


def test_measure_says_that_the_harness_scores_the_bos_of_a_text(tmp_path: Path, cwd: Path) -> None:
    folder, texts, store = build_checkpoint("opt", tmp_path / "model"), tmp_path / "texts.jsonl", tmp_path / "store"
    texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in TINY_TEXT[:5]))
    words = ["measure", "model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={texts}", "protocol=harness"]
    told = here(*words, "--store", store, cwd=cwd, check=0).stderr
    assert "the </s> that the tokenizer puts before each of 5 texts is scored too, as the harness does;" in told
    assert "model.bos=none" not in here(*words, "model.bos=none", "--store", store, cwd=cwd, check=0).stderr
    n_tokens = {run["bos"]: run["n_tokens"] for run in manifests(store).values()}
    assert n_tokens["tokenizer"] == n_tokens["none"] + 5
