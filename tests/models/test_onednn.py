"""What makes a model's layers fast on a CPU leaves its states what they were, but for rounding."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from rbpx.models import onednn
from rbpx.models.activations import in_one_pass
from rbpx.models.head import head_input
from rbpx.models.onednn import LinearByOneDNN

has_onednn = pytest.mark.skipif(not onednn._HAS_ONEDNN, reason="this torch has no oneDNN")


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the weights that oneDNN is given from now on."""
    given: list[tuple[int, ...]] = []
    plain = onednn._product

    def product(states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
        given.append(tuple(weight_VD.shape))
        result: Tensor = plain(states_ND, weight_VD, bias_V)
        return result

    monkeypatch.setattr(onednn, "_product", product)
    return given


@has_onednn
@pytest.mark.parametrize("shape", [(5, 24), (2, 5, 24)])
@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_layer_gives_its_products(shape: tuple[int, ...], bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, states = nn.Linear(24, 40, bias=bias), drawn(*shape)
    given = counted(monkeypatch)
    with torch.inference_mode(), LinearByOneDNN():
        result = layer(states)
    torch.testing.assert_close(result.double(), layer.double()(states.double()), rtol=1e-5, atol=1e-6)
    assert given == [(40, 24)]


@has_onednn
def test_the_transposed_layer_of_gpt2_gives_its_products(monkeypatch: pytest.MonkeyPatch) -> None:
    bias_V, states_ND, weight_DV = drawn(40), drawn(5, 24), drawn(24, 40)
    given = counted(monkeypatch)
    with torch.inference_mode(), LinearByOneDNN():
        result = torch.addmm(bias_V, states_ND, weight_DV)
    exact = bias_V.double() + states_ND.double() @ weight_DV.double()
    torch.testing.assert_close(result.double(), exact, rtol=1e-5, atol=1e-6)
    assert given == [(40, 24)]


def test_other_precisions_gradients_and_vectors_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    given = counted(monkeypatch)
    layer = nn.Linear(24, 40)
    with LinearByOneDNN():
        layer(drawn(5, 24)).sum().backward()
        with torch.inference_mode():
            assert layer(drawn(24)).shape == (40,)
            assert layer(drawn(0, 24)).shape == (0, 40)
            assert layer.bfloat16()(drawn(5, 24).bfloat16()).dtype == torch.bfloat16
            scaled = torch.addmm(drawn(40), drawn(5, 24), drawn(24, 40), beta=2)
    torch.testing.assert_close(scaled, 2 * drawn(40) + drawn(5, 24) @ drawn(24, 40))
    assert layer.weight.grad is not None
    assert given == []


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "qwen2"])
def test_states_of_a_model_differ_by_rounding(name: str, tiny_checkpoint: Callable[..., Path]) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_checkpoint(name), dtype=torch.float32).eval()
    ids_BT = torch.arange(24).view(2, 12) % 20
    with torch.inference_mode():
        plain = head_input(model, ids_BT)
        in_one_pass(model)
        with LinearByOneDNN():
            fast = head_input(model, ids_BT)
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
    names = {type(module).__name__ for module in model.modules()}
    assert "NewGELUActivation" not in names
    assert ("GELU" in names) == (name == "gpt2")
