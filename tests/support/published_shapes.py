"""Models of the reference tables' shapes, built without weights on the meta device."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from transformers import PretrainedConfig

Shape = Mapping[str, Any]


def _config_of(shape: Shape) -> "PretrainedConfig":
    from transformers import GPT2Config, GPTNeoXConfig, OPTConfig, Qwen2Config

    hidden, layers, heads, ffn = (int(shape[name]) for name in ("hidden", "layers", "heads", "ffn"))
    common = {"vocab_size": int(shape["vocab_rows"]), "tie_word_embeddings": bool(int(shape["tied_embeddings"]))}
    positions = int(shape["max_positions"])
    if shape["family"] == "gpt2":
        assert ffn == 4 * hidden  # what n_inner=None means
        return GPT2Config(**common, n_embd=hidden, n_layer=layers, n_head=heads, n_positions=positions)
    common |= {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": positions,
    }
    if shape["family"] == "opt":
        is_350m = shape["model"] == "facebook/opt-350m"  # "word_embed_proj_dim 512, ... post-LN, no final LN"
        width = 512 if is_350m else hidden
        return OPTConfig(**common, ffn_dim=ffn, word_embed_proj_dim=width, do_layer_norm_before=not is_350m)
    if shape["family"] == "pythia":
        return GPTNeoXConfig(**common, intermediate_size=ffn)
    assert shape["family"] == "qwen2.5"
    return Qwen2Config(**common, intermediate_size=ffn, num_key_value_heads=int(shape["kv_heads"]))


def build_published(shape: Shape) -> nn.Module:
    """The model of a row of architectures.csv."""
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model: nn.Module = AutoModelForCausalLM.from_config(_config_of(shape))
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    return model
