"""What a row is depends on its window alone: models that a longer window beside it would change read it without."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rbpx.data.windows import Window
from rbpx.errors import RbpxError
from rbpx.models.lengths import Lengths, lengths_of
from rbpx.models.load import LoadedModel
from tests.support.architectures import save_random, tiny_config
from tests.support.audits import audit
from tests.support.checkpoints import CONTEXT, TINY_TEXT
from tests.support.composed import here
from tests.support.items import assert_as_alone, counted
from tests.support.measuring import load, measure, windows_of

BORDER = 24
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 4,
    "long_factor": [1.0, 3.0, 9.0, 27.0],
}
TEXTS = [TINY_TEXT[6][at:] for at in range(5)]


def build(architecture: str, folder: Path, **changes: Any) -> LoadedModel:
    save_random(tiny_config(architecture, **changes), folder)
    return load(folder)


def cut(loaded: LoadedModel, *lengths: int) -> list[Window]:
    """A window of each length of each text."""
    of_texts = windows_of(loaded, TEXTS)
    places = [(window, n) for window in of_texts for n in lengths]
    return [Window(at, w.ids[:n], w.scored[:n], n, n) for at, (w, n) in enumerate(places)]


def texts_around(loaded: LoadedModel) -> list[str]:
    """Texts of one token less than the border, and of one more."""
    tokens = loaded.tokenizer(TINY_TEXT[6], return_offsets_mapping=True)["offset_mapping"]
    return [TINY_TEXT[6][: tokens[n - 1][1]] for n in (BORDER - 1, BORDER, BORDER + 1)]


def lengths_read(loaded: LoadedModel, windows: list[Window], budget: int) -> list[set[int]]:
    """The lengths of the windows of each pass, as the model is given them."""
    passes: list[set[int]] = []
    own = {window.ids.tobytes(): len(window.ids) for window in windows}

    def note(_: Any, args: Any, out: Any) -> None:
        rows = args[0].numpy().astype("int32")
        passes.append({n for row in rows for key, n in own.items() if row[:n].tobytes() == key and not row[n:].any()})

    hook = loaded.model.get_input_embeddings().register_forward_hook(note)
    try:
        measure(loaded, windows, budget)
    finally:
        hook.remove()
    return passes


def test_short_windows_keep_their_frequencies_beside_long_ones(tmp_path: Path) -> None:
    rope = LONGROPE | {"original_max_position_embeddings": BORDER}
    loaded = build("phi3", tmp_path / "model", original_max_position_embeddings=BORDER, rope_parameters=rope)
    assert loaded.lengths == Lengths((BORDER,))
    windows = cut(loaded, 16, BORDER - 1, BORDER, BORDER + 1, 50)
    alone = measure(loaded, windows, 1)
    assert_as_alone(measure(loaded, windows, 10**6), alone)
    beside = measure(replace(loaded, lengths=Lengths()), windows, 10**6)
    assert (beside["greater"] != alone["greater"]).mean() > 0.05, "other frequencies, other ranks"
    passes = lengths_read(loaded, windows, 10**6)
    assert all(max(each) <= BORDER or min(each) > BORDER for each in passes)
    assert any(len(each) > 1 for each in passes), "windows on one side of it are read together"


def test_an_audit_sees_what_a_batch_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: Path) -> None:
    rope = LONGROPE | {"original_max_position_embeddings": BORDER}
    folder = tmp_path / "model"
    loaded = build("phi3", folder, original_max_position_embeddings=BORDER, rope_parameters=rope)
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts_around(loaded)))
    monkeypatch.setattr(Lengths, "kind", lambda self, n_tokens: 0)
    model = ["model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={tmp_path / 'texts.jsonl'}"]
    here("measure", *model, "--store", tmp_path / "store", cwd=cwd, check=0)
    found, failed = audit(tmp_path / "store", dtype="float32")
    (row,) = [row for row in found.of_kind("run") if row["law"] == "cross_entropy"]
    assert (failed, row["n_changed"] > 0.02 * row["n_tokens"]) == ([], True)


def test_a_model_that_sees_how_long_its_batch_is_reads_windows_of_one_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sees_length(model: Any) -> None:
        model.get_input_embeddings().register_forward_hook(lambda _, args, out: out * (1 + out.shape[-2] / CONTEXT))

    monkeypatch.setattr("rbpx.models.load.in_one_pass", sees_length)
    loaded = build("gpt_neox", tmp_path / "model")
    assert loaded.lengths == Lengths((), one=True)
    windows = cut(loaded, 49, 50, 51)
    with counted(loaded) as n_read:
        rows = measure(loaded, windows, 10**6)
    assert_as_alone(rows, measure(loaded, windows, 1))
    assert n_read == [5 * 51, 5 * 50, 5 * 49]


@pytest.mark.parametrize("arch", ["gpt2", "opt350", "qwen2"])
def test_models_that_read_a_window_beside_others_as_alone_have_no_borders(
    arch: str, tiny_checkpoint: Callable[..., Path]
) -> None:
    assert load(tiny_checkpoint(arch)).lengths == Lengths()


def test_a_model_that_draws_in_its_forward_pass_is_refused(tmp_path: Path) -> None:
    chunks = {"lsh_attn_chunk_length": 8, "local_attn_chunk_length": 8, "num_buckets": 4}
    with pytest.raises(RbpxError) as refusal:
        build("reformer", tmp_path / "model", attn_layers=["lsh", "lsh"], **chunks)
    assert "ReformerModelWithLMHead reads the same 64 tokens twice" in str(refusal.value)


def test_a_model_whose_longer_texts_see_what_is_behind_is_refused_before_a_short_one_hides_it(tmp_path: Path) -> None:
    """BigBird's sparse blocks are not causal and begin at 29 tokens here; a shorter text ends them for good."""
    sparse = {"attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 1}
    with pytest.raises(RbpxError, match="BigBirdForCausalLM is not causal"):
        build("big_bird", tmp_path / "model", **sparse)


def test_half_precision_hides_no_leak_behind_many_tokens() -> None:
    """Among 150 tokens one that XLM sees from before moves its states by less than bfloat16 rounds."""
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(tiny_config("xlm", max_position_embeddings=300))
    with pytest.raises(RbpxError, match="XLMWithLMHeadModel is not causal"):
        lengths_of(model.to(torch.bfloat16).eval(), 300)


def test_a_model_that_a_short_text_switches_is_refused_by_what_it_switched(tmp_path: Path) -> None:
    with pytest.raises(RbpxError) as refusal:
        build("big_bird", tmp_path / "sparse", attention_type="block_sparse", block_size=64)
    assert "its attention_type was block_sparse and is original_full" in str(refusal.value)
    loaded = build("big_bird", tmp_path / "full", attention_type="original_full")
    assert loaded.lengths == Lengths()
    windows = cut(loaded, 16, 50)
    assert_as_alone(measure(loaded, windows, 10**6), measure(loaded, windows, 1))
