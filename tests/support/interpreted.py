"""The GPU's kernel in a process whose Triton interprets it, on a CPU."""

import os

from torch import Tensor


def interpret() -> None:
    """Before Triton is imported."""
    os.environ["TRITON_INTERPRET"] = "1"


def rank_there(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """What the kernel makes of these logits."""
    from rbpx.ranks.gpu_kernel import rank_rows

    return rank_rows(logits_NV, targets_N)
