"""The throughput of this machine, FLOPs/s, from runs in the store or from a small model run for a second."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

from rbpx.models.architecture import architecture_of
from rbpx.models.costs import flops, tokens_read
from rbpx.models.devices import require_cuda
from rbpx.models.head import head_input, open_head
from rbpx.models.load import in_one_pass

CALIBRATED = "calibrate=true"  # source of a throughput measured for this plan
_SECONDS = 1.0  # a few passes on a slow machine
_WINDOW, _WINDOWS = 512, 2
# Large enough that matrix products dominate a pass, as in planned models.
_ON_CPU = {"n_embd": 512, "n_layer": 2, "n_head": 8, "vocab_size": 16_384}
_ON_GPU = {"n_embd": 2048, "n_layer": 2, "n_head": 16, "vocab_size": 50_304}


@dataclass(frozen=True)
class Throughput:
    """A measured throughput.

    Attributes:
        flops_per_s: of the whole pass, ranks included.
        flops_per_token: of the measured model; small models reach fewer FLOPs/s.
    """

    source: str
    flops_per_s: float
    flops_per_token: float


def nearest(throughputs: Sequence[Throughput], flops_per_token: float) -> Throughput | None:
    """The throughput of the model with the most similar FLOPs per token, by ratio."""
    return min(throughputs, key=lambda t: abs(math.log(t.flops_per_token / flops_per_token)), default=None)


@cache
def calibrate(device: str, dtype: str) -> Throughput:
    """Measure a small random GPT-2 for about a second, as a cell; raises RbpxError where there is no such device."""
    if device == "cuda":
        require_cuda()
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = _ON_CPU if device == "cpu" else _ON_GPU
    config = AutoConfig.for_model("gpt2", n_positions=_WINDOW, bos_token_id=None, eos_token_id=None, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype)).to(device).eval()
    in_one_pass(model)
    architecture, head = architecture_of(model), open_head(model)
    ids_BT = torch.zeros((_WINDOWS, _WINDOW), dtype=torch.int64, device=device)
    assert architecture is not None, "GPT-2's configuration gives its architecture"
    targets_N = ids_BT.flatten()
    passes = -1  # the first one warms up
    began = time.monotonic()
    while passes < 1 or time.monotonic() - began < _SECONDS:
        with torch.inference_mode():
            states_BTD = head_input(model, ids_BT)
            head.rank(states_BTD.flatten(0, 1), targets_N)()
        passes += 1
        if passes == 0:
            began = time.monotonic()
    n = _WINDOW * _WINDOWS
    n_flops = flops(architecture, tokens_read([_WINDOW] * _WINDOWS, n))
    return Throughput(CALIBRATED, n_flops * passes / (time.monotonic() - began), n_flops / n)
