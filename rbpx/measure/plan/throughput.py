"""How fast this machine is: FLOPs a second of runs in the store, or of a small model run for a second."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

from rbpx.errors import RbpxError
from rbpx.models.costs import flops, load_of
from rbpx.models.head import head_input, open_head
from rbpx.models.shapes import shape_of_model

CALIBRATED = "calibrate=true"  # the source of a pace that was measured for this plan
_SECONDS = 1.0
_WINDOW, _WINDOWS = 512, 2
_ON_CPU = {"n_embd": 512, "n_layer": 2, "n_head": 8, "vocab_size": 16_384}
_ON_GPU = {"n_embd": 2048, "n_layer": 2, "n_head": 16, "vocab_size": 50_304}


@dataclass(frozen=True)
class Pace:
    """A pace that was measured.

    Attributes:
        source: what was measured, as people read it.
        flops_per_s: FLOPs a second of the whole pass, ranks included.
        flops_per_token: of that model; small ones are slow for their FLOPs.
    """

    source: str
    flops_per_s: float
    flops_per_token: float


def nearest(paces: Sequence[Pace], flops_per_token: float) -> Pace | None:
    """The pace of the model whose FLOPs a token are nearest, as a ratio; None where nothing was measured."""
    return min(paces, key=lambda p: abs(math.log(p.flops_per_token / flops_per_token)), default=None)


@cache
def calibrate(device: str, dtype: str) -> Pace:
    """Measure a small random GPT-2 for about a second, the way that a cell is measured.

    Args:
        device: `cpu` or `cuda`.
        dtype: of the weights.

    Raises:
        RbpxError: the device is not here.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise RbpxError("device=cuda was asked for, but torch sees no CUDA device; use device=cpu or device=auto")
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = _ON_CPU if device == "cpu" else _ON_GPU
    config = AutoConfig.for_model("gpt2", n_positions=_WINDOW, bos_token_id=None, eos_token_id=None, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype)).to(device).eval()
    shape, head = shape_of_model(model), open_head(model)
    ids_BT = torch.zeros((_WINDOWS, _WINDOW), dtype=torch.int64, device=device)
    assert shape is not None, "the shape of GPT-2 is known"
    targets_N = ids_BT.flatten()
    passes = -1  # the first one warms up
    began = time.monotonic()
    while passes < 1 or time.monotonic() - began < _SECONDS:
        with torch.inference_mode():
            states_BTD = head_input(model, ids_BT)
            head.rank(states_BTD.flatten(0, 1), targets_N)
        passes += 1
        if passes == 0:
            began = time.monotonic()
    n = _WINDOW * _WINDOWS
    work = flops(shape, load_of([_WINDOW] * _WINDOWS, n))
    return Pace(CALIBRATED, work * passes / (time.monotonic() - began), work / n)
