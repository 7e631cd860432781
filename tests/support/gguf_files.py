"""Tiny llama models as a folder of safetensors and as GGUF files, laid out as llama.cpp's converter lays them out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
HEADS, GROUPS, CONTEXT = 4, 2, 64


def build_llama(folder: Path, seed: int = 0, scaled: bool = False) -> Path:
    """Save a llama of two layers with random float32 weights and a byte-level tokenizer; `scaled` as Llama 3 is."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.support.checkpoints import VOCAB_ROWS, build_tokenizer

    tokenizer = build_tokenizer("qwen2")
    rope: dict[str, Any] = {"rope_theta": 500.0, "rope_type": "default"}
    if scaled:
        rope |= {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        rope |= {"original_max_position_embeddings": 32}
    config = LlamaConfig(
        vocab_size=VOCAB_ROWS,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=GROUPS,
        max_position_embeddings=CONTEXT,
        rope_parameters=rope,
        initializer_range=0.2,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_gguf(
    folder: Path,
    path: Path,
    kind: str = "F32",
    more: Mapping[str, Any] | None = None,
    pre: str = "gpt-2",
    drop: str = "",
) -> Path:
    """Write a llama's folder as a GGUF file.

    Args:
        folder: as `build_llama` saved it.
        path: the file.
        kind: what its matrices are rounded to, as Q8_0.
        more: metadata, as numbers and texts, in addition or instead.
        pre: the rule by which the tokenizer cuts a text.
        drop: a tensor that is left out.
    """
    import gguf
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    vocabulary = json.loads((folder / "tokenizer.json").read_text())
    n_rows = config["vocab_size"]
    tokens = {i: token for token, i in vocabulary["model"]["vocab"].items()}
    tokens |= {each["id"]: each["content"] for each in vocabulary["added_tokens"]}
    special = {each["id"] for each in vocabulary["added_tokens"]}
    writer = gguf.GGUFWriter(path, "llama")
    facts: dict[str, Any] = {
        "llama.block_count": config["num_hidden_layers"],
        "llama.context_length": CONTEXT,
        "llama.embedding_length": config["hidden_size"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": GROUPS,
        "llama.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "llama.rope.freq_base": config["rope_parameters"]["rope_theta"],
        "llama.rope.dimension_count": config["head_dim"],
        "llama.vocab_size": n_rows,
        "general.file_type": gguf.LlamaFileType[f"{'ALL' if kind == 'F32' else 'MOSTLY'}_{kind}"].value,
    }
    for key, value in (facts | dict(more or {})).items():
        add = {str: writer.add_string, float: writer.add_float32, bool: writer.add_bool}.get(
            type(value), writer.add_uint32
        )
        add(key, value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([tokens.get(i, f"[PAD{i}]") for i in range(n_rows)])
    writer.add_token_types([3 if i in special else 1 if i in tokens else 5 for i in range(n_rows)])
    writer.add_token_merges([" ".join(pair) for pair in vocabulary["model"]["merges"]])
    writer.add_eos_token_id(min(special))
    writer.add_add_bos_token(False)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, weights in load_file(folder / "model.safetensors").items():
        own = names.get_name(name, [".weight"])
        if own == drop:
            continue
        heads = {"q_proj": HEADS, "k_proj": GROUPS}.get(name.split(".")[-2])
        weights = _turned(weights, heads) if heads else weights
        of_kind = gguf.GGMLQuantizationType[kind] if weights.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(own, gguf.quantize(weights, of_kind), raw_dtype=of_kind)
    if config["rope_parameters"]["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", _rope_factors(config))
    return written(writer, path)


def written(writer: Any, path: Path) -> Path:
    """Write what was added to a writer; its file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _turned(weights: Array, heads: int) -> Array:
    """Rows of queries or keys as llama.cpp has them, where the dimensions that turn together lie side by side."""
    rows, width = weights.shape
    return weights.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)


def _rope_factors(config: dict[str, Any]) -> Array:
    """How much slower each pair of dimensions turns, by the rule of Llama 3.1's release."""
    rope, n = config["rope_parameters"], config["head_dim"] // 2
    turns = rope["original_max_position_embeddings"] * rope["rope_theta"] ** (-np.arange(n) / n) / (2 * np.pi)
    share = (turns - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
    share = np.clip(share, 0, 1)
    return (1 / (share + (1 - share) / rope["factor"])).astype(np.float32)
