"""Active parameters of models with experts, against counts by hand of tiny random checkpoints."""

from typing import Any

import pytest

from rbpx.models.architecture import active_params, architecture_of, non_embedding_params
from rbpx.models.costs import TokensRead, flops
from tests.support.architectures import on_meta, tiny_config

EXPERT = 3 * 32 * 64  # gate, up and down of one expert, in every architecture below but where it says so
# (architecture, changes) -> weights of a layer's experts that a token leaves idle, layers with experts.
# A token is sent to 2 of 4 experts, of which 2 stand idle; shared experts and routers are never idle.
BY_HAND: dict[str, tuple[dict[str, Any], int, int]] = {
    "mixtral": ({}, 2 * EXPERT, 2),
    "qwen2_moe": ({}, 2 * EXPERT, 2),
    "qwen3_moe": ({"num_experts_per_tok": 1}, 3 * EXPERT, 2),
    "olmoe": ({"num_experts": 8}, 6 * EXPERT, 2),
    "deepseek_v2": ({}, 2 * EXPERT, 1),  # the first of its two layers is dense
    "deepseek_v3": ({}, 2 * EXPERT, 1),
    "gpt_oss": ({}, 2 * (EXPERT + 2 * 64 + 32), 2),  # its experts have biases
    "jetmoe": ({}, 2 * (EXPERT + 2 * 2 * 128 * 32), 2),  # in attention too: two heads of 128 in and out
    "jamba": ({}, 2 * EXPERT, 1),
    "gemma4_text": ({"enable_moe_block": True, "top_k_experts": 1}, 3 * EXPERT, 2),
}


def build(model_type: str, changes: dict[str, Any]) -> Any:
    return on_meta(tiny_config(model_type, **changes))


@pytest.mark.parametrize("model_type", BY_HAND)
def test_a_token_uses_its_experts_the_shared_ones_and_the_router(model_type: str) -> None:
    changes, idle, layers = BY_HAND[model_type]
    model = build(model_type, changes)
    assert active_params(model) == non_embedding_params(model) - layers * idle


@pytest.mark.parametrize("model_type", ["llama", "gpt2", "mamba", "xlnet"])
def test_a_dense_model_uses_all_parameters(model_type: str) -> None:
    model = build(model_type, {})
    assert active_params(model) == non_embedding_params(model)


def test_an_olmoe_of_released_shape_has_its_published_active_parameters() -> None:
    # OLMoE-1B-7B (arXiv 2409.02060): 6.9B in all, 1.3B active, embeddings and head among both
    shape = {"num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 1024, "num_experts": 64}
    shape |= {"num_experts_per_tok": 8, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 128}
    model = build("olmoe", shape | {"vocab_size": 50_304})
    beside = 2 * 50_304 * 2048
    assert round((non_embedding_params(model) + beside) / 1e9, 1) == 6.9
    assert round((active_params(model) or 0) / 1e9 + beside / 1e9, 1) == 1.3


def test_costs_are_of_the_active_parameters() -> None:
    read = architecture_of(build("mixtral", {}))
    assert read.active_params == read.non_embedding_params - 4 * EXPERT
    two, one = (flops(read, TokensRead(0, n, 0)) for n in (2, 1))
    assert two - one == 2 * read.active_params
