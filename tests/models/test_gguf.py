"""GGUF files: read as what they are, known by their bytes, compared by their quantisation, refused in one line."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rbpx.errors import RbpxError
from rbpx.models import gguf
from rbpx.models.gguf import read_header
from rbpx.models.load import load_model
from rbpx.models.tokenizer import load_tokenizer
from tests.support.commands import here
from tests.support.gguf_files import build_llama, write_gguf
from tests.support.stores import cell_records, manifests, run_folders

needs_gguf = pytest.mark.skipif(find_spec("gguf") is None, reason="gguf is not installed: pip install 'rbpx[gguf]'")
CPU = torch.device("cpu")
TEXT = "The letters are read twice: once by the one who writes them, 12 or  345 times."


def _logits(model: Any, tokenizer: Any) -> torch.Tensor:
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"][:, :60]
    with torch.inference_mode():
        logits: torch.Tensor = model(input_ids=ids).logits[0]
    return logits


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_llama(tmp_path_factory.mktemp("llama") / "tiny")


@needs_gguf
@pytest.mark.parametrize("scaled", [False, True])
def test_a_file_computes_what_the_folder_does_that_it_was_made_of(scaled: bool, llama: Path, tmp_path: Path) -> None:
    folder = build_llama(tmp_path / "scaled", scaled=True) if scaled else llama
    file = write_gguf(folder, tmp_path / "tiny.gguf")
    ours, theirs = (load_model(str(place), None, "float32", CPU) for place in (file, folder))
    assert torch.allclose(_logits(ours.model, ours.tokenizer), _logits(theirs.model, theirs.tokenizer), atol=2e-5)
    counts = [(m.non_embedding_params, m.total_params, m.context, m.vocab_size) for m in (ours, theirs)]
    assert counts[0] == counts[1]


@needs_gguf
def test_rounded_weights_are_the_blocks_of_the_file_multiplied_out(llama: Path, tmp_path: Path) -> None:
    file = write_gguf(llama, tmp_path / "tiny-Q8_0.gguf", "Q8_0")
    rounded, plain = (load_model(str(place), None, "float32", CPU).model for place in (file, llama))
    for name, weights in plain.state_dict().items():
        if weights.ndim == 2:  # 32 numbers of a row share a scale of 16 bits; each is a whole number of 8
            blocks = weights.double().numpy().reshape(-1, 32)
            if "q_proj" in name or "k_proj" in name:
                assert (rounded.state_dict()[name] - weights).abs().max() < abs(blocks).max() / 200
                continue
            scale = abs(blocks).max(1, keepdims=True) / 127
            expected = (np.round(blocks / scale) * np.float16(scale)).reshape(weights.shape)
            apart = abs(rounded.state_dict()[name].numpy() - expected)
            assert (apart > 1e-4).mean() < 0.002, name  # a half may be rounded to either side


@needs_gguf
def test_a_text_is_cut_by_the_rule_that_the_file_names(llama: Path, tmp_path: Path) -> None:
    plain = load_tokenizer(write_gguf(llama, tmp_path / "a.gguf"), "a")
    digits = load_tokenizer(write_gguf(llama, tmp_path / "b.gguf", pre="smollm"), "b")
    cut = [
        [text for text, _ in each.backend_tokenizer.pre_tokenizer.pre_tokenize_str("x  12")] for each in (plain, digits)
    ]
    assert cut == [["x", "Ġ", "Ġ12"], ["x", "ĠĠ", "1", "2"]]
    with pytest.raises(RbpxError, match="cuts its texts by the rule chameleon, which transformers does not know"):
        load_tokenizer(write_gguf(llama, tmp_path / "c.gguf", pre="chameleon"), "c")


@needs_gguf
def test_files_of_one_model_make_a_family_by_their_quantisation_and_are_known_by_their_bytes(
    llama: Path, tiny_jsonl: Path, tmp_path: Path, cwd: Path
) -> None:
    store = tmp_path / "store"
    for kind in ("F32", "Q8_0"):
        write_gguf(llama, tmp_path / f"tiny-{kind}.gguf", kind)
    text = ("model.family=mine", "dataset=file", f"dataset.path={tiny_jsonl}", "--store", store)
    names = "model.gguf=[tiny-F32.gguf,tiny-Q8_0.gguf]"
    here("measure", "model=hub", f"model.id={tmp_path}", names, *text, cwd=cwd, check=0)
    runs = sorted((run["dtype"], run["quantise"], run["run_id"]) for run in manifests(store).values())
    assert [run[:2] for run in runs] == [("float32", None), ("float32-Q8_0", "Q8_0")]
    assert {cell["size"] for cell in cell_records(store)} == {"tiny"}
    moved = tmp_path / "elsewhere-Q8_0.gguf"  # another name measures nothing, another byte does
    content = bytearray((tmp_path / "tiny-Q8_0.gguf").read_bytes())
    for n_runs in (2, 3):
        moved.write_bytes(bytes(content))
        here("measure", "model=hub", f"model.id={moved}", *text, cwd=cwd, check=0)
        assert len(run_folders(store)) == n_runs
        content[-40] ^= 1


@needs_gguf
def test_what_a_file_says_and_transformers_does_not_read_is_refused(llama: Path, tmp_path: Path) -> None:
    wrong = {
        "llama.rope.scaling.type=linear, of which": ({"llama.rope.scaling.type": "linear"}, "F32"),
        "llama.attention.scale=": ({"llama.attention.scale": 0.5}, "F32"),
        "one of 3 parts": ({"split.count": 3}, "F32"),
    }
    for told, (more, kind) in wrong.items():
        file = write_gguf(llama, tmp_path / "wrong.gguf", kind, more)
        with pytest.raises(RbpxError, match=told):
            load_model(str(file), None, "float32", CPU)
        os.remove(file)
    file = write_gguf(llama, tmp_path / "lacks.gguf", drop="blk.1.ffn_up.weight")
    with pytest.raises(RbpxError, match="has 1 weights too few"):
        load_model(str(file), None, "float32", CPU)


@needs_gguf
def test_a_damaged_file_is_refused_in_one_line_wherever_it_ends(llama: Path, tmp_path: Path, cwd: Path) -> None:
    content = write_gguf(llama, tmp_path / "whole.gguf").read_bytes()
    file = tmp_path / "cut.gguf"
    for n in (0, 3, 23, 24, 60, 300, 5000, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:n])
        with pytest.raises(RbpxError, match=r"cut\.gguf cannot be read as a GGUF file") as raised:
            read_header(file, "cut.gguf")
        assert "\n" not in str(raised.value)
    store = tmp_path / "store"
    asked = ("measure", "model=hub", f"model.id={file}", "dataset=pydoc", "--store", store)
    answer = here(*asked, cwd=cwd, check=2)
    assert answer.stderr.count("\n") == 1
    assert "is damaged or was cut off" in answer.stderr
    assert not store.exists()


@needs_gguf
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"general.architecture": "x\n" * 10**5}, "with architecture x.*; measure the model's safetensors"),
        ({"llama.unheard_of": "x" * 10**5}, "llama.unheard_of=x"),
    ],
    ids=["architecture", "key"],
)
def test_what_a_file_claims_is_told_in_few_words(more: dict[str, Any], told: str, llama: Path, tmp_path: Path) -> None:
    file = write_gguf(llama, tmp_path / "claims.gguf", more=more)
    with pytest.raises(RbpxError, match=told) as raised:
        load_model(str(file), None, "float32", CPU)
    assert len(str(raised.value)) < 300 + len(str(file))


def test_without_the_package_a_file_is_refused_in_one_line(
    tmp_path: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf, "find_spec", lambda name: None)
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    for verb in ("measure", "plan"):
        answer = here(
            verb, "model=hub", f"model.id={file}", "dataset=pydoc", "--store", tmp_path / "s", cwd=cwd, check=2
        )
        needed = f"rbpx: model.id={file} is a GGUF file, which needs the package gguf: pip install 'rbpx[gguf]'"
        assert answer.stderr.splitlines() == [needed]
    answer = here("plan", "model=hub", "model.id=ORG/NAME/x.gguf", "dataset=pydoc", cwd=cwd, check=2)
    assert "hf download" in answer.stderr
