"""Quantises the weights of a loaded model's linear layers with torchao.

Every `nn.Linear` but the output head is quantised, as in transformers; embeddings, norms, the head and all activations
keep their precision. torchao computes the scales from the weights alone.
"""

import logging
import math
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import nn

from rbpx.config.options import Quantise
from rbpx.errors import RbpxError

_GROUP: Final = 32  # weights of a row that share a scale (int4)
_BLOCK: Final = 64  # weights that share a scale (nf4), and
_SCALES: Final = 256  # scales that share a second one
RECIPE: Final = {  # part of the identity of a run
    Quantise.int8: "int8, symmetric, one scale a row",
    Quantise.int4: f"int4, symmetric, one scale for {_GROUP} weights of a row",
    Quantise.nf4: f"nf4, one scale for {_BLOCK} weights, these of 8 bits with one scale for {_SCALES}",
}


def silence() -> None:
    """Silence torchao's warnings about kernels for other GPUs; transformers imports it wherever installed."""
    for noisy in ("torchao", "torch.utils._pytree"):
        logging.getLogger(noisy).setLevel(logging.ERROR)


def linear_layers(model: nn.Module, kind: Quantise, name: str) -> list[nn.Linear]:
    """The layers to be quantised: all linear ones but the output head; raises RbpxError for none."""
    head = model.get_output_embeddings()  # type: ignore[operator]
    layers = [each for each in model.modules() if type(each) is nn.Linear and each is not head]
    if not layers:
        raise RbpxError(
            f"{name} has no linear layers that torchao knows ({type(model).__name__} is written without nn.Linear), so "
            f"model.quantise={kind.value} would change nothing; drop it"
        )
    return layers


def round_weights(layers: Sequence[nn.Linear], kind: Quantise) -> None:
    """Quantise the weights of layers in place, on their device.

    A scale is shared by as many weights as `RECIPE` says, or the largest part of that number that divides a layer.
    """
    from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig, PerGroup, quantize_, to_nf4

    for layer in layers:
        if kind is Quantise.nf4:
            block = math.gcd(layer.weight.numel(), _BLOCK)
            scales = math.gcd(layer.weight.numel() // block, _SCALES)
            layer.weight = nn.Parameter(to_nf4(layer.weight.detach(), block, scales), requires_grad=False)
            continue
        group = PerGroup(math.gcd(layer.in_features, _GROUP))
        config: Any = (
            Int8WeightOnlyConfig()
            if kind is Quantise.int8
            else IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=group)  # type: ignore[attr-defined]
        )
        quantize_(layer, config)
