"""S of an architecture in closed form, from the shape of a transformers configuration: what rbpx counts, by hand.

q and kv are the widths of queries and of keys or values, d that of the model.
"""

from collections.abc import Callable
from typing import Any


def of_gpt(d: int, layers: int) -> int:
    """Attention and a fourfold MLP with biases, two norms a layer and a last one."""
    return layers * (4 * (d * d + d) + (8 * d * d + 5 * d) + 4 * d) + 2 * d


def of_opt(s: dict[str, Any]) -> int:
    d, layers, width = s["hidden_size"], s["num_hidden_layers"], s["word_embed_proj_dim"]
    assert s["ffn_dim"] == 4 * d
    projections = 2 * d * width if width != d else 0
    last_norm = 2 * d if s.get("do_layer_norm_before", True) else 0
    return of_gpt(d, layers) - 2 * d + projections + last_norm


def of_neox(s: dict[str, Any]) -> int:
    assert s["intermediate_size"] == 4 * s["hidden_size"]
    return of_gpt(s["hidden_size"], s["num_hidden_layers"])


def of_llama(s: dict[str, Any], norms: int = 2, per_layer: Callable[[int, int, int], int] = lambda h, q, kv: 0) -> int:
    """Grouped attention and a gated MLP without biases; `per_layer` adds to that, of head, q and kv width."""
    d, layers, heads = s["hidden_size"], s["num_hidden_layers"], s["num_attention_heads"]
    head = s.get("head_dim", d // heads)
    q, kv = heads * head, s["num_key_value_heads"] * head
    attention, mlp = 2 * d * q + 2 * d * kv, 3 * d * s["intermediate_size"]
    return layers * (attention + mlp + norms * d + per_layer(head, q, kv)) + d


def of_mamba(s: dict[str, Any]) -> int:
    """Input, convolution, x to (step, B, C), step, A and D, output; the head is the embedding (arXiv 2312.00752)."""
    d, state, kernel, rank = s["hidden_size"], s["state_size"], s["conv_kernel"], s["time_step_rank"]
    inner = s["expand"] * d
    scan = inner * (rank + 2 * state) + (rank * inner + inner) + inner * state + inner
    return int(s["num_hidden_layers"]) * (d * 2 * inner + (kernel + 1) * inner + scan + inner * d + d) + d


def of_rwkv(s: dict[str, Any]) -> int:
    """Time mixing (4 matrices, 5 vectors), channel mixing (3 matrices, 2 vectors), norms; one before, one after."""
    d, layers = s["hidden_size"], s["num_hidden_layers"]
    assert (s["attention_hidden_size"], s["intermediate_size"]) == (d, 4 * d)
    return layers * ((4 * d * d + 5 * d) + (9 * d * d + 2 * d) + 4 * d) + 4 * d


FORMULAS: dict[str, Callable[[dict[str, Any]], int]] = {
    "bloom": lambda s: of_gpt(s["hidden_size"], s["n_layer"]) + 2 * s["hidden_size"],  # a norm of the embedding
    "gemma": of_llama,
    "gemma2": lambda s: of_llama(s, norms=4),
    "gpt2": lambda s: of_gpt(s["n_embd"], s["n_layer"]),
    "gpt_neo": lambda s: (
        of_gpt(s["hidden_size"], s["num_layers"]) - 3 * s["hidden_size"] * s["num_layers"]
    ),  # no biases
    "gpt_neox": of_neox,
    "llama": of_llama,
    "mamba": of_mamba,
    "olmo2": lambda s: of_llama(s, per_layer=lambda head, q, kv: q + kv),  # norms of queries and keys, whole
    "opt": of_opt,
    "qwen2": lambda s: of_llama(s, per_layer=lambda head, q, kv: q + 2 * kv),  # biases
    "qwen3": lambda s: of_llama(s, per_layer=lambda head, q, kv: 2 * head),  # norms of queries and keys, a head each
    "rwkv": of_rwkv,
}
