"""Models: only safetensors and no code of theirs is opened, what does not fit is refused, identity is content."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from rbpx.errors import RbpxError
from rbpx.models.architecture import read_architecture
from rbpx.models.folder import hash_model, local_folder, weight_files
from rbpx.models.hub import fetch
from rbpx.models.load import load_model
from rbpx.models.tokenizer import hash_tokenizer
from tests.support.architectures import save_random, tiny_config
from tests.support.checkpoints import VOCAB_ROWS, build_tokenizer
from tests.support.composed import here
from tests.support.measuring import load
from tests.support.pickles import plant_pickle


@pytest.fixture
def folder(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> Path:
    """A GPT-2 of its own, to be spoilt."""
    return Path(shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / "model"))


def refusal(path: Path | str) -> str:
    """The one line with which a model is refused."""
    with pytest.raises(RbpxError) as caught:
        load(path)
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line, "an error says which model"
    return line


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value != "REMOVE"}))


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


# --------------------------------------------------------------------------------------- nothing runs, nothing pickled


def test_the_trap_would_work(tmp_path: Path) -> None:
    plant_pickle(tmp_path / "a.bin", tmp_path / "sprung")
    with (tmp_path / "a.bin").open("rb") as file:
        pickle.load(file)
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.bin"])
def test_a_folder_with_only_pickled_weights_is_refused_and_they_are_never_opened(
    name: str, folder: Path, tmp_path: Path
) -> None:
    (folder / "model.safetensors").unlink()
    plant_pickle(folder / name, tmp_path / "sprung")
    line = refusal(folder)
    assert "safetensors" in line
    assert name in line
    assert not (tmp_path / "sprung").exists()


def test_pickled_weights_beside_safetensors_and_behind_others_are_never_opened(folder: Path, tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt", "tokenizer.pkl"):
        plant_pickle(folder / name, tmp_path / "sprung")
    load(folder)
    (folder / "model.safetensors").rename(folder / "decoy.safetensors")
    assert "cannot be loaded" in refusal(folder)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["weights.bin", "../outside.safetensors"])
def test_an_index_that_names_a_pickle_or_a_file_outside_the_folder_is_refused(name: str, folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "weights.bin")
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    save_file({"unused": torch.zeros(1)}, folder / "decoy.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert f"model.safetensors.index.json names {name}" in refusal(folder)


def plant_code(folder: Path, marker: Path) -> None:
    for name in ("modeling_own", "configuration_own", "tokenization_own"):
        code = f"from pathlib import Path\nPath({str(marker)!r}).touch()\nclass Own: pass\n"
        (folder / f"{name}.py").write_text(code)


def test_code_that_a_model_brings_is_not_run_and_the_model_is_refused(folder: Path, tmp_path: Path) -> None:
    plant_code(folder, tmp_path / "ran")
    auto_map = {"AutoConfig": "configuration_own.Own", "AutoModelForCausalLM": "modeling_own.Own"}
    edit_config(folder, model_type="own", architectures=["Own"], auto_map=auto_map)
    assert "needs code of its own, and rbpx runs none" in refusal(folder)
    assert not (tmp_path / "ran").exists()


def test_code_of_a_model_that_transformers_knows_anyway_is_left_aside(folder: Path, tmp_path: Path) -> None:
    plant_code(folder, tmp_path / "ran")
    edit_config(folder, auto_map={"AutoConfig": "configuration_own.Own", "AutoModelForCausalLM": "modeling_own.Own"})
    path = folder / "tokenizer_config.json"
    own = {"auto_map": {"AutoTokenizer": ["tokenization_own.Own", "tokenization_own.Own"]}}
    path.write_text(json.dumps(json.loads(path.read_text()) | own))
    assert type(load(folder).model).__name__ == "GPT2LMHeadModel"
    assert not (tmp_path / "ran").exists()


# ------------------------------------------------------------------------------------------------- what is no model


@pytest.mark.parametrize(
    "missing", ["transformer.h.1.mlp.c_fc.weight", "transformer.wte.weight", "transformer.ln_f.bias"]
)
def test_weights_that_are_missing_are_named_not_made_up(missing: str, folder: Path) -> None:
    edit_weights(folder, lambda weights: weights.pop(missing))
    line = refusal(folder)
    assert "too few" in line
    assert missing in line or missing == "transformer.wte.weight"  # tied: the head is missing then


OF_OTHER_SHAPES = "weights of other shapes than config.json says"
NO_MODEL = "cannot be loaded as a causal language model"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"n_layer": 3}, "transformer.h.2."),
        ({"tie_word_embeddings": False}, "lm_head.weight"),
        ({"n_embd": 64}, OF_OTHER_SHAPES),
        ({"n_positions": 4}, OF_OTHER_SHAPES),
        ({"n_head": 5}, NO_MODEL),
        ({"n_head": 0}, NO_MODEL),
        *(({"model_type": kind}, NO_MODEL) for kind in ("nosuch", "REMOVE", "t5")),
        ({"activation_function": "nosuch"}, NO_MODEL),
        ({"n_layer": "two"}, NO_MODEL),
        ({"num_hidden_layers": 1_000_000}, "has 1,000,000 layers by its config.json"),  # before they are built
    ],
    ids=str,
)
def test_a_configuration_that_does_not_fit_the_weights_is_refused(
    changes: dict[str, Any], reason: str, folder: Path
) -> None:
    edit_config(folder, **changes)
    assert reason in refusal(folder)


@pytest.mark.parametrize("keep", [0, 100, 20_000])
def test_weights_that_were_cut_short_are_refused(keep: int, folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    assert "cannot be loaded" in refusal(folder)


# A tensor that the model of config.json has no place for -> what it means.
LEFT_OVER = {
    "transformer.h.1.attn.c_attn.weight_scale": "the file is quantised, and config.json has no quantization_config",
    "transformer.h.0.attn.c_attn.weight_scale_inv": "the file is quantised",
    "transformer.h.0.attn.c_attn.lora_A.weight": "a part of an adapter that is not merged",
    "transformer.h.0.attn.sinks": "a part that this architecture has not",
    "transformer.h.2.mlp.c_fc.bias": "a layer more than config.json says",
    "h.2.ln_1.weight": "a layer more than config.json says",
    "lm_head.bias": "a bias in the file that config.json switches off",
    "extra.weight": "a part that this architecture has not",
}


@pytest.mark.parametrize("key", LEFT_OVER)
def test_a_tensor_without_a_place_in_the_model_is_named_with_its_meaning(key: str, folder: Path) -> None:
    edit_weights(folder, lambda weights: weights.update({key: torch.ones(1)}))
    line = refusal(folder)
    assert f"1 of the tensors in its files have no place in config.json, the first is {key} ({LEFT_OVER[key]}" in line


@pytest.mark.parametrize(
    ("arch", "key"),
    [
        ("gpt2", "h.0.attn.bias"),
        ("gpt2", "transformer.h.1.attn.masked_bias"),
        ("gpt_neox", "gpt_neox.layers.0.attention.bias"),
        ("gpt_neox", "gpt_neox.layers.1.attention.masked_bias"),
        ("gpt_neox", "gpt_neox.layers.1.attention.rotary_emb.inv_freq"),
        ("qwen2", "model.layers.1.self_attn.rotary_emb.inv_freq"),
        ("opt", "model.decoder.version"),
    ],
)
def test_what_older_versions_saved_and_a_model_computes_is_left_aside(
    arch: str, key: str, tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_checkpoint(arch), tmp_path / "model"))
    edit_weights(folder, lambda weights: weights.update({key: torch.ones(1, 1, 4, 4)}))
    load(folder)


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.float8_e4m3fn, torch.float8_e5m2])
def test_integers_and_8_bit_numbers_are_not_read_for_weights(dtype: torch.dtype, pickled: bool, folder: Path) -> None:
    key = "transformer.h.1.mlp.c_fc.weight"
    edit_weights(folder, lambda weights: weights.update({key: (weights[key] * 50).to(dtype)}))
    if pickled:
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    with pytest.raises(RbpxError, match=rf"integers or 8-bit numbers for weights, the first is {key} ") as caught:
        load_model(str(folder), None, "float32", torch.device("cpu"), pickled=pickled)
    assert "no quantization_config" in str(caught.value)


def test_numbers_of_8_bits_are_read_as_their_quantization_config_says(tmp_path: Path) -> None:
    """Blocks of float8 times their scales, which is what transformers makes of them without a GPU."""
    save_random(tiny_config("llama"), tmp_path)
    key = "model.layers.0.mlp.up_proj.weight"
    coarse = (load_file(tmp_path / "model.safetensors")[key] * 100).to(torch.float8_e4m3fn)

    def quantise(weights: dict[str, torch.Tensor]) -> None:
        for name in [name for name in weights if name.endswith("_proj.weight")]:
            weights[name] = (weights[name] * 100).to(torch.float8_e4m3fn)
            weights[f"{name}_scale_inv"] = torch.full((1, 1), 0.01)

    edit_weights(tmp_path, quantise)
    with pytest.raises(RbpxError, match="the file is quantised"):
        load(tmp_path)
    edit_config(tmp_path, quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
    torch.testing.assert_close(load(tmp_path).model.get_parameter(key).detach(), coarse.float() * 0.01)


@pytest.mark.parametrize("name", ["org/attention", "org/attention@v1:forward", "paged|org/attention"])
@pytest.mark.parametrize("nested", [False, True])
def test_attention_code_of_a_hub_is_never_looked_for(
    name: str, nested: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.integrations import hub_kernels

    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a loader of kernels was reached")

    monkeypatch.setattr(hub_kernels, "load_and_register_attn_kernel", never)
    monkeypatch.setattr(hub_kernels, "is_kernels_available", never)
    asked: Any = {"": name} if nested else name
    edit_config(folder, attn_implementation=asked)
    assert f"asks for attn_implementation={name}, which is code from a hub, and rbpx runs none" in refusal(folder)
    assert read_architecture(folder) is None


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_attention_of_torch_may_be_asked_for(name: str, folder: Path) -> None:
    edit_config(folder, attn_implementation=name)
    assert load(folder).model.config._attn_implementation == name


CONFIGS = {"broken": b"{", "empty": b"", "not utf-8": b'{"model_type": "\xff"}', "deep": b'{"a":' * 100_000}
REASONS = ["line 1 column 2", "line 1 column 1", "'utf-8' codec", "nested too deeply"]


@pytest.mark.parametrize(("raw", "reason"), list(zip(CONFIGS.values(), REASONS, strict=True)), ids=CONFIGS)
def test_a_config_json_that_is_none_is_refused_also_where_a_model_is_only_hashed(
    raw: bytes, reason: str, folder: Path
) -> None:
    (folder / "config.json").write_bytes(raw)
    line = refusal(folder)
    assert "config.json" in line
    assert reason in line
    with pytest.raises(RbpxError, match=r"config\.json"):
        hash_model(folder, "mine")


@pytest.mark.parametrize("model", ["", "nosuch", "./no/such", "../nosuch", "~/no/such/folder", "/no/such", "a/b/c"])
def test_an_id_that_is_neither_a_folder_nor_a_hub_id_is_refused(model: str) -> None:
    with pytest.raises(RbpxError, match=r"model\.id="):
        local_folder(model)


def test_a_hub_id_is_no_folder() -> None:
    assert local_folder("someorg-that-is-no-folder/model") is None


def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    assert "config.json" in refusal(tmp_path)
    (tmp_path / "file").touch()
    assert "is neither a folder" in refusal(tmp_path / "file")
    (tmp_path / "config.json").write_text("{}")
    assert "safetensors" in refusal(tmp_path)


def test_a_folder_may_be_named_from_the_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert local_folder("model") == local_folder("./model") == folder.resolve()
    assert fetch("./model", None) == (folder.resolve(), None)


def test_a_token_beyond_the_rows_of_the_model_is_refused_where_a_text_has_it(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    folder = tiny_checkpoint("gpt2", folder=tmp_path / "model")
    tokenizer = build_tokenizer("gpt2")
    tokenizer.add_tokens([f"<{n}>" for n in range(VOCAB_ROWS - len(tokenizer))])
    assert max(tokenizer.get_vocab().values()) == VOCAB_ROWS - 1
    tokenizer.save_pretrained(folder)
    load(folder)
    tokenizer.add_tokens(["<one too many>"])
    tokenizer.save_pretrained(folder)
    words = ["measure", "model=hub", f"model.id={folder}", "dataset=file", "--store", tmp_path / "store"]
    texts = tmp_path / "texts.jsonl"
    texts.write_text(json.dumps({"text": "The sea reads nothing."}))
    here(*words, f"dataset.path={texts}", cwd=cwd, check=0)
    texts.write_text(json.dumps({"text": "The sea <one too many> reads."}))
    said = here(*words, f"dataset.path={texts}", cwd=cwd, check=2).stderr
    assert f"document 0 contains '<one too many>', id {VOCAB_ROWS} of the tokenizer, but {folder} has" in said


def test_a_tokenizer_of_another_model_is_refused(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = tiny_checkpoint("gpt2", folder=tmp_path / "model")
    stored = json.loads((folder / "tokenizer.json").read_text())
    vocab = stored["model"]["vocab"]
    token = next(iter(vocab))
    vocab[token] = VOCAB_ROWS
    (folder / "tokenizer.json").write_text(json.dumps(stored))
    line = refusal(folder)
    assert "tokenizer that does not fit" in line
    assert str(VOCAB_ROWS) in line


def test_weights_that_were_saved_inside_a_wrapper_name_its_prefix(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tiny_checkpoint("gpt2", folder=tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    save_file({f"_orig_mod.{name}": tensor for name, tensor in weights.items()}, folder / "model.safetensors")
    assert "names all begin with _orig_mod.: strip it" in refusal(folder)


def test_an_adapter_beside_the_weights_is_mentioned(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tiny_checkpoint("gpt2", folder=tmp_path / "model")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    with caplog.at_level("INFO", "rbpx"):
        load(folder)
    told = "has an adapter beside its weights (adapter_config.json), which is not read; to have it, give model.adapter="
    assert f"{told}{folder}" in caplog.text


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_broken_tokenizer_is_refused(name: str, folder: Path) -> None:
    (folder / name).write_text("{")
    assert "has no fast tokenizer" in refusal(folder)


def test_a_model_without_a_tokenizer_is_refused(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    assert "tokenizer" in refusal(folder)


def test_a_model_that_sees_what_it_predicts_is_refused(tmp_path: Path) -> None:
    """BERT loads as a causal language model; its logits know the label, and the padding."""
    save_random(tiny_config("bert", is_decoder=False), tmp_path)
    with pytest.raises(RbpxError, match="BertLMHeadModel is not causal"):
        load(tmp_path)


# --------------------------------------------------------------------------------------------------- what is loaded


def test_nothing_is_dropped_out_while_measuring(tiny_checkpoint: Callable[..., Path]) -> None:
    model = load(tiny_checkpoint("gpt2")).model
    assert model.config.resid_pdrop > 0
    with torch.no_grad():
        first, second = (model(torch.arange(9)[None]).logits for _ in range(2))
    assert torch.equal(first, second)


# --------------------------------------------------------------------------------------------------------- identity


def test_a_model_that_was_copied_is_the_same_model(folder: Path, tmp_path: Path) -> None:
    elsewhere = Path(shutil.copytree(folder, tmp_path / "elsewhere"))
    os.utime(elsewhere / "model.safetensors", (1, 1))
    (elsewhere / "README.md").write_text("No weights, and no configuration.")
    assert hash_model(folder, "a") == hash_model(elsewhere, "b")
    assert load(folder).weights_hash == hash_model(folder, "a")


def test_a_single_changed_weight_makes_another_model(folder: Path) -> None:
    before = hash_model(folder, "a")
    edit_weights(folder, lambda weights: weights["transformer.ln_f.bias"][0].add_(1e-6))
    assert hash_model(folder, "a") != before


@pytest.mark.parametrize(
    ("changes", "is_another"),
    [
        ({"layer_norm_epsilon": 1e-3}, True),
        ({"activation_function": "relu"}, True),
        ({"transformers_version": "4.0", "_name_or_path": "x", "dtype": "float16", "torch_dtype": "float16"}, False),
    ],
    ids=["epsilon", "activation", "who wrote it"],
)
def test_a_configuration_counts_where_it_computes_something_else(
    changes: dict[str, Any], is_another: bool, folder: Path
) -> None:
    before = hash_model(folder, "a")
    edit_config(folder, **changes)
    assert (hash_model(folder, "a") != before) is is_another


def test_a_tokenizer_is_the_same_however_it_was_used_and_wherever_it_lies(folder: Path) -> None:
    tokenizer = load(folder).tokenizer
    before = hash_tokenizer(tokenizer)
    tokenizer(["a text", "another, longer text"], truncation=True, max_length=3)
    assert hash_tokenizer(tokenizer) == before
    assert load(folder).tokenizer_hash == before == hash_tokenizer(build_tokenizer("gpt2"))


def test_what_decides_the_ids_of_a_text_or_which_are_scored_makes_another_tokenizer() -> None:
    tokenizers = [build_tokenizer(arch) for arch in ("gpt2", "gpt2", "gpt2", "opt", "gpt_neox")]
    tokenizers[1].add_tokens(["harbour"])
    tokenizers[2].add_special_tokens({"additional_special_tokens": ["a"]})
    assert len({hash_tokenizer(tokenizer) for tokenizer in tokenizers}) == len(tokenizers)


def test_the_same_vocabulary_with_other_special_tokens_is_another_tokenizer() -> None:
    from transformers import PreTrainedTokenizerFast

    named = build_tokenizer("gpt2")
    plain = PreTrainedTokenizerFast(tokenizer_object=build_tokenizer("gpt2").backend_tokenizer)
    assert plain.backend_tokenizer.to_str() == named.backend_tokenizer.to_str()
    assert (len(named.all_special_ids), len(plain.all_special_ids)) == (1, 0)
    assert hash_tokenizer(plain) != hash_tokenizer(named)


def test_weights_in_several_files_are_all_of_the_identity(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_checkpoint("gpt_neox"), dtype=torch.float32)
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    build_tokenizer("gpt_neox").save_pretrained(tmp_path)
    shards = weight_files(tmp_path, "mine")
    assert len(shards) > 1
    loaded = load(tmp_path)
    for name, parameter in model.named_parameters():
        assert torch.equal(loaded.model.get_parameter(name), parameter)
    raw = bytearray(shards[-1].read_bytes())
    raw[-1] ^= 1
    shards[-1].write_bytes(raw)
    assert hash_model(tmp_path, "mine") != loaded.weights_hash
