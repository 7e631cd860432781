"""Activations in one operation: the states of a model stay, but for rounding."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rbpx.models.head import head_input
from rbpx.models.load import in_one_pass


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "qwen2"])
def test_states_of_a_model_differ_by_rounding(name: str, tiny_checkpoint: Callable[..., Path]) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_checkpoint(name), dtype=torch.float32).eval()
    ids_BT = torch.arange(24).view(2, 12) % 20
    with torch.inference_mode():
        plain = head_input(model, ids_BT)
        in_one_pass(model)
        in_one = head_input(model, ids_BT)
    torch.testing.assert_close(in_one, plain, rtol=1e-4, atol=1e-5)
    names = {type(module).__name__ for module in model.modules()}
    assert "NewGELUActivation" not in names
    assert ("GELU" in names) == (name == "gpt2")
