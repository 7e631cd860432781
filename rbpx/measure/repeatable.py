"""Arithmetic that gives the same bits again (`deterministic=true`): one thread, and no kernel whose order may vary.

How a product is divided among threads, or which kernel multiplies matrices of a shape, moves float32 logits by
rounding. With one window a forward pass, a window always has the same shapes, and one thread adds in the same order.
The bits are those of this kind of device and these versions of the libraries; another may give others.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_CUBLAS = "CUBLAS_WORKSPACE_CONFIG"  # without it cuBLAS may choose another kernel for the same product


@contextmanager
def repeatable() -> Iterator[None]:
    """Compute in one thread, and on a GPU by deterministic kernels alone, for as long as the block takes.

    Torch raises RuntimeError where an operation on a GPU has no such kernel. On a CPU one thread is all it takes.
    """
    n_threads, on_gpu = torch.get_num_threads(), torch.cuda.is_available()
    was_on = torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault(_CUBLAS, ":4096:8")
    torch.set_num_threads(1)
    if on_gpu:
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
        if on_gpu:
            torch.use_deterministic_algorithms(was_on)
