"""What a cell costs: FLOPs as torch counts them, memory by its parts, what fits into a made-up machine."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from rbpx.measure.plan.memory import FreeMemory, what_fits
from rbpx.models.architecture import Architecture, architecture_of, read_architecture, total_params
from rbpx.models.costs import flops, memory_mib, tokens_read
from tests.support.families import read_family

PLAIN: dict[str, Any] = {"vocab_size": 1000, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
SMALL: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 256, "n_layer": 3, "n_head": 4, "n_positions": 64},
    "opt": {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "ffn_dim": 1024},
    "gpt_neox": {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 1024},
    "qwen2": {
        "hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 700,
    },
}  # fmt: skip


def build(shape: dict[str, Any], **how: Any) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape), **how)


@pytest.mark.parametrize("model_type", SMALL)
def test_flops_are_those_that_torch_counts(model_type: str) -> None:
    """But for norms and biases, which are additions that torch does not count."""
    model = build({"model_type": model_type, **PLAIN, **SMALL[model_type]}, attn_implementation="eager").eval()
    ids_BT = torch.zeros((3, 48), dtype=torch.int64)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids_BT, use_cache=False)
    shape = architecture_of(model)
    n_flops = flops(shape, tokens_read([48] * 3, ids_BT.numel()))
    assert counter.get_total_flops() <= n_flops <= 1.015 * counter.get_total_flops()


def test_the_shape_of_a_configuration_is_that_of_the_model_made_of_it() -> None:
    shape = {"model_type": "qwen2", **PLAIN, **SMALL["qwen2"], "tie_word_embeddings": False}
    model, read = build(shape), read_architecture(shape)
    assert read.total_params == total_params(model)
    assert read.total_params - read.non_embedding_params == 2 * 1000 * 256
    assert (read.vocab_size, read.head_width, read.layers, read.inner) == (1000, 256, 3, 700)
    assert read.attention_width == 256


def test_the_shape_of_opt_350m_has_a_narrow_head() -> None:
    read = read_architecture(read_family("opt").shape_of("350m"))
    assert (read.width, read.head_width, read.context) == (1024, 512, 2048)


# --------------------------------------------------------------------------------------------------------- memory


SHAPE = Architecture(
    non_embedding_params=800 * 2**20, active_params=800 * 2**20, total_params=1000 * 2**20,
    held_params=1000 * 2**20,
    vocab_size=50_000, head_width=1024,
    width=1024, layers=24, inner=4096, attention_width=1024,
    context=2048,
)  # fmt: skip


def test_memory_is_weights_a_batch_and_its_logits() -> None:
    """A batch is 4 tensors as wide as the model, 3 as wide as the feed-forward part, and the input of the head."""
    weights_mib, batch_mib, chunk_mib = 1000 * 4, 4096 * (4 * 1024 + 3 * 4096 + 1024) * 4 / 2**20, 2.5 * 256
    whole, half = (memory_mib(SHAPE, dtype, "cuda", 4096, 512) for dtype in ("float32", "bfloat16"))
    assert whole == pytest.approx(weights_mib + batch_mib + chunk_mib)
    assert half == pytest.approx((weights_mib + batch_mib) / 2 + chunk_mib)


def test_a_window_longer_than_the_batch_is_read_whole() -> None:
    small, large = (memory_mib(SHAPE, "float32", "cuda", batch, 2048) for batch in (16, 4096))
    assert small < large
    assert small == memory_mib(SHAPE, "float32", "cuda", 2048, 2048)


@pytest.mark.parametrize(
    ("gpus", "cpu", "disk", "fits"),
    [
        ((6000.0,), 8000.0, 0.0, "float32"),
        ((3000.0,), 8000.0, 0.0, "bfloat16"),
        ((1500.0, 1500.0), 2000.0, 0.0, "split"),
        ((1500.0,), 100.0, 9000.0, "split"),
        ((1500.0,), 1000.0, 100.0, "no"),
        ((500.0,), 99000.0, 0.0, "no"),  # a layer's activations do not fit
    ],
)
def test_what_fits_is_the_least_change(gpus: tuple[float, ...], cpu: float, disk: float, fits: str) -> None:
    needed = {"float32": 5000.0, "bfloat16": 2500.0}
    assert what_fits(needed, 4000.0, FreeMemory("cuda", cpu, gpus, disk)) == fits


def test_nothing_is_said_where_the_system_does_not_tell_its_memory() -> None:
    needed = {"float32": 5000.0, "bfloat16": 2500.0}
    assert what_fits(needed, 4000.0, FreeMemory("cpu", None, (), 1e6)) is None
