"""Multimodal models are read with text alone: their size is that of the text, their logits are their own."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from rbpx.errors import RbpxError
from rbpx.models.architecture import auto_class, read_architecture, total_params
from tests.support.architectures import on_meta, tiny_config, tiny_multimodal
from tests.support.checkpoints import build_tokenizer
from tests.support.commands import here
from tests.support.measuring import load
from tests.support.multimodal import check_size

# Towers for images or sounds; text in a class of its own (Llama 4, Qwen 3.5, Mllama), or in the whole alone.
KINDS = ("gemma3", "gemma4", "idefics3", "llama4", "llava_next", "mistral3", "mllama", "paligemma", "qwen2_audio")
KINDS += ("qwen2_5_vl", "qwen3_5", "qwen3_vl", "voxtral")


def whole_model(model_type: str, folder: Path) -> Any:
    """A tiny multimodal model with random weights, saved whole; with a class for images where it has one."""
    from transformers import AutoModelForMultimodalLM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForMultimodalLM.from_config(tiny_multimodal(model_type)).eval()
        for parameter in model.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    build_tokenizer("gpt_neox").save_pretrained(folder)
    return model


def edit_weights(folder: Path, prefix: str, add: str | None = None) -> None:
    """Take out the tensors of one tower, or add one."""
    weights = load_file(folder / "model.safetensors")
    found = [key for key in weights if f".{prefix}." in f".{key}"]
    assert found
    if add is None:
        weights = {key: tensor for key, tensor in weights.items() if key not in found}
    else:
        weights[found[0].partition(prefix)[0] + f"{prefix}.{add}"] = torch.zeros(3, 3)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("model_type", [*KINDS, "blip-2", "fuyu"])
def test_the_size_is_that_of_the_part_that_reads_text(model_type: str) -> None:
    check_size(model_type)


@pytest.mark.parametrize(
    ("model_type", "beside"), [("git", "git.image_encoder"), ("phi4_multimodal", "model.embed_tokens_extend")]
)
def test_a_tower_in_a_text_model_without_a_configuration_of_its_own_does_not_count(
    model_type: str, beside: str
) -> None:
    model = on_meta(tiny_config(model_type))
    others = sum(p.numel() for name, p in model.named_parameters() if not name.startswith(f"{beside}."))
    assert others == total_params(model) < sum(p.numel() for p in model.parameters()) / 2


@pytest.mark.parametrize("model_type", KINDS)
def test_logits_are_those_that_the_whole_model_makes_of_text_alone(model_type: str, tmp_path: Path) -> None:
    whole = whole_model(model_type, tmp_path)
    ids_BT = torch.arange(24)[None] * 7 % 250 + 50
    with torch.inference_mode():
        expected_BTV = whole(input_ids=ids_BT).logits
    if model_type == "paligemma":
        with pytest.raises(RbpxError, match="is not causal"):
            load(tmp_path)
        return
    loaded = load(tmp_path)
    with torch.inference_mode():
        logits_BTV = loaded.model(input_ids=ids_BT).logits
    assert float(expected_BTV.std()) > 0.1
    torch.testing.assert_close(logits_BTV, expected_BTV, rtol=0, atol=0)


@pytest.mark.parametrize(("model_type", "tower"), [("mistral3", "vision_tower"), ("llama4", "vision_model")])
def test_what_is_in_a_tower_or_lacks_there_is_no_matter_of_text(model_type: str, tower: str, tmp_path: Path) -> None:
    whole_model(model_type, tmp_path)
    sizes = load(tmp_path).non_embedding_params, load(tmp_path).total_params
    edit_weights(tmp_path, tower, add="another.weight")
    assert (load(tmp_path).non_embedding_params, load(tmp_path).total_params) == sizes
    edit_weights(tmp_path, tower)
    assert (load(tmp_path).non_embedding_params, load(tmp_path).total_params) == sizes


def test_what_lacks_in_the_text_of_a_multimodal_model_is_named(tmp_path: Path) -> None:
    whole_model("mistral3", tmp_path)
    edit_weights(tmp_path, "layers.1.mlp")
    with pytest.raises(RbpxError, match=r"weights too few, the first is .*layers\.1\.mlp"):
        load(tmp_path)


@pytest.mark.parametrize("model_type", ["blip-2", "kosmos-2"])
def test_a_model_that_reads_no_text_without_an_image_is_refused_in_one_line(model_type: str, tmp_path: Path) -> None:
    whole_model(model_type, tmp_path)
    with pytest.raises(RbpxError, match="is a multimodal model whose text part does not stand alone") as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)
    assert "pixel_values" in str(caught.value)


def test_a_plan_knows_a_model_whose_layers_have_heads_of_several_widths(tmp_path: Path, cwd: Path) -> None:
    """Gemma 4: 4 heads of 8 in one layer, of 512 in the other."""
    whole_model("gemma4", tmp_path)
    read = read_architecture(tmp_path)
    assert read.attention_width == (4 * 8 + 4 * 512) / 2
    assert read.non_embedding_params == load(tmp_path).non_embedding_params
    words = ("model=hub", f"model.id={tmp_path}", "dataset=pydoc", "limit=2", f"store={tmp_path / 'store'}")
    plan = json.loads(here("plan", *words, "--format", "json", cwd=cwd, check=0).stdout)
    assert str(read.non_embedding_params) in json.dumps(plan)


def test_memory_is_that_of_the_towers_too() -> None:
    config = tiny_multimodal("gemma3")
    read = read_architecture(config.to_dict())
    held = sum(p.numel() for p in auto_class(config).from_config(config).parameters())
    assert read.weights_mib("float32") == held * 4 / 2**20
    assert held > read.total_params
