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


def of_llama4(s: dict[str, Any]) -> int:
    """Every step-th layer has a router, experts and a shared expert, the others a gated MLP of another width."""
    d, layers, step, E = (
        s["hidden_size"],
        s["num_hidden_layers"],
        s["interleave_moe_layer_step"],
        s["num_local_experts"],
    )
    of_experts = layers // step
    dense = of_llama({**s, "intermediate_size": 0}) + (layers - of_experts) * 3 * d * s["intermediate_size_mlp"]
    return dense + of_experts * (d * E + (E + 1) * 3 * d * s["intermediate_size"])


def of_qwen3_5(s: dict[str, Any]) -> int:
    """Each fourth layer as Qwen3's with a gate as wide as its queries; the others scan by the gated delta rule.

    A scan has maps to queries, keys, values and gate, two numbers a head, a convolution of the first three, step and
    decay, a norm and the output (arXiv 2412.06464).
    """
    d, layers, H = s["hidden_size"], s["num_hidden_layers"], s["linear_num_value_heads"]
    k, v = s["linear_num_key_heads"] * s["linear_key_head_dim"], H * s["linear_value_head_dim"]
    convolved = 2 * k + v
    scan = (
        d * (convolved + v + 2 * H)
        + s["linear_conv_kernel_dim"] * convolved
        + 2 * H
        + s["linear_value_head_dim"]
        + v * d
    )
    full = layers // 4
    attention = of_llama(
        {**s, "num_hidden_layers": full, "intermediate_size": 0},
        norms=0,
        per_layer=lambda head, q, kv: d * q + 2 * head,
    )
    return attention + (layers - full) * scan + layers * (3 * d * s["intermediate_size"] + 2 * d)


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
    "gemma3_text": lambda s: of_llama(s, norms=4, per_layer=lambda head, q, kv: 2 * head),  # and norms as qwen3's
    "gpt2": lambda s: of_gpt(s["n_embd"], s["n_layer"]),
    "gpt_neo": lambda s: (
        of_gpt(s["hidden_size"], s["num_layers"]) - 3 * s["hidden_size"] * s["num_layers"]
    ),  # no biases
    "gpt_neox": of_neox,
    "llama": of_llama,
    "llama4_text": of_llama4,
    "mamba": of_mamba,
    "ministral3": of_llama,
    "olmo2": lambda s: of_llama(s, per_layer=lambda head, q, kv: q + kv),  # norms of queries and keys, whole
    "olmo3": lambda s: of_llama(s, per_layer=lambda head, q, kv: q + kv),
    "opt": of_opt,
    "qwen2": lambda s: of_llama(s, per_layer=lambda head, q, kv: q + 2 * kv),  # biases
    "qwen3": lambda s: of_llama(s, per_layer=lambda head, q, kv: 2 * head),  # norms of queries and keys, a head each
    "qwen3_5_text": of_qwen3_5,
    "rwkv": of_rwkv,
    "smollm3": of_llama,
}
