"""Tiny forms of the language models of transformers: a model type in, a configuration of some ten thousand parameters
out; of multimodal ones, with tiny towers.
"""

from pathlib import Path
from typing import Any

from tests.support.checkpoints import CONTEXT, VOCAB_ROWS, build_tokenizer

_WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embed_dim", "embedding_dim", "embedding_size")
_WIDTHS += ("word_embed_proj_dim", "attention_hidden_size", "lru_width")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "num_decoder_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads", "encoder_attention_heads")
_INNER = ("intermediate_size", "ffn_dim", "n_inner", "decoder_ffn_dim", "encoder_ffn_dim", "feed_forward_size")
_INNER += ("dim_ff", "dff", "moe_intermediate_size", "shared_expert_intermediate_size")
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
_CONTEXTS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions", "context_length")
_CONTEXTS += ("model_max_length", "n_ctx")
_LATENT = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8}
SMALL: dict[str, Any] = {
    **dict.fromkeys(_WIDTHS, 32),
    **dict.fromkeys(_LAYERS, 2),
    **dict.fromkeys(("encoder_layers", "num_encoder_layers"), 1),
    **dict.fromkeys(_HEADS, 4),
    **{"num_key_value_heads": 2, "head_dim": 8, "rotary_dim": 4, "state_size": 8},
    **dict.fromkeys(_INNER, 64),
    **dict.fromkeys(_EXPERTS, 4),
    **{"num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1},
    **_LATENT,
    **dict.fromkeys(_CONTEXTS, CONTEXT),
    **{
        "vocab_size": VOCAB_ROWS,
        "vocab_size_per_layer_input": VOCAB_ROWS,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    **{"is_decoder": True, "initializer_range": 0.2},
}
_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8}
_ALL_HEADS = {"num_key_value_heads": 4}  # of latent attention
# What some need beside, because one value of theirs has to fit another.
OWN: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("axk1", "axk2", "deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite"), _ALL_HEADS),
    **dict.fromkeys(("glm_moe_dsa", "minicpm3", "youtu"), _ALL_HEADS),
    **dict.fromkeys(("bamba", "granitemoehybrid"), _MAMBA),
    "cohere": {"logit_scale": 0.0613},
    "dots1": {"n_shared_experts": 1},
    **dict.fromkeys(("bailing_hybrid", "kimi_linear", "dots3_note", "dots3_note_text"), _ALL_HEADS),
    "longcat_flash": _ALL_HEADS | {"ffn_hidden_size": 64, "expert_ffn_hidden_size": 32},
    "reformer": {"axial_pos_embds": False},
    "falcon_h1": {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "granite": {"logits_scaling": 7.0},
    "hyperclovax": {"logits_scaling": 0.3},
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1},
    "prophetnet": {"max_position_embeddings": 512},  # its second stream looks one position beyond what it reads
    "xmod": {"default_language": "en_XX"},
    "zaya": {"num_experts_per_tok": 1},
}


def tiny_config(model_type: str, **changes: Any) -> Any:
    """A small configuration of that architecture; its text model's, where it is one of several.

    Args:
        model_type: a name in MODEL_FOR_CAUSAL_LM_MAPPING of transformers.
        changes: values of the text model's configuration that are set beside.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[model_type]
    whole = kind()
    text = whole.get_text_config(decoder=True)
    parts = [name for name in kind.sub_configs if getattr(whole, name) is text]
    has = (text if parts else whole).to_dict()  # an encoder with a decoder has no part of its own for text
    small = {key: value for key, value in SMALL.items() if key in has}
    layer_types = list(dict.fromkeys(has.get("layer_types") or []))
    if layer_types:
        small["layer_types"] = (layer_types * 2)[:2]
    small |= OWN.get(model_type, {}) | changes
    return kind(**{parts[0]: small} if parts else small)


def on_meta(config: Any) -> Any:
    """A model of this configuration, without weights."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def save_random(config: Any, folder: Path) -> None:
    """A checkpoint of this configuration, with random weights and the tiny tokenizer of GPT-NeoX."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    build_tokenizer("gpt_neox").save_pretrained(folder)


_ROTATED = {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [1, 1, 2]}}
_OF_TEXT = ("vocab_size", "vocab_size_per_layer_input", "pad_token_id", "bos_token_id", "eos_token_id")
_OF_TOWERS = {
    **{key: value for key, value in SMALL.items() if key not in _OF_TEXT},
    **dict.fromkeys(("out_hidden_size", "text_hidden_size", "vision_output_dim", "projection_dim"), 32),
    **{"encoder_ffn_dim": 64, "depth": 2, "num_key_value_heads": 4, "num_mel_bins": 16},
    **{"image_size": 28, "patch_size": 14},
}


def tiny_multimodal(model_type: str) -> Any:
    """A small configuration of a multimodal model: as `tiny_config`, and its towers small where these build so."""
    from huggingface_hub.errors import StrictDataclassError
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    whole = tiny_config(model_type, **(_ROTATED if model_type.startswith(("glm", "qwen", "paddle")) else {}))
    text = whole.get_text_config(decoder=True)
    parts = {name: part for name in type(whole).sub_configs if (part := getattr(whole, name, None)) is not None}
    small = {
        name: part.to_dict() if part is text else {key: _OF_TOWERS[key] for key in part.to_dict().keys() & _OF_TOWERS}
        for name, part in parts.items()
    }
    try:
        return CONFIG_MAPPING[model_type](**small)
    except (StrictDataclassError, TypeError, ValueError):  # one value of a tower has to fit another
        return whole
