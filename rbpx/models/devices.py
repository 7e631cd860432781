"""Devices: CUDA availability, the devices of a model, out-of-memory errors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rbpx.errors import RbpxError


def require_cuda() -> None:
    """Check that CUDA is available.

    Raises:
        RbpxError: it is not.
    """
    if not torch.cuda.is_available():
        raise RbpxError("device=cuda was requested, but torch finds no CUDA device; use device=cpu or device=auto")


def input_device(model: Any) -> torch.device:
    """The device of a model's input; for a split model the first device that computes."""
    placed = getattr(model, "hf_device_map", None)
    if not placed:
        device: torch.device = model.device
        return device
    return torch.device(next((device for device in placed.values() if device not in ("cpu", "disk")), "cpu"))


def uploaded(arrays: Sequence[npt.NDArray[np.int64]], device: torch.device) -> list[torch.Tensor]:
    """Integer arrays on a device, in one copy that is asynchronous on a GPU."""
    flat = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]))
    if device.type == "cuda":
        flat = flat.pin_memory()
    parts = flat.to(device, non_blocking=True).split([array.size for array in arrays])
    return [part.view(array.shape) for part, array in zip(parts, arrays, strict=True)]


def devices_of(model: Any) -> tuple[str, ...]:
    """The devices that compute a model or hold its weights, e.g. `cuda:0`, `cpu`, `disk`."""
    devices = getattr(model, "hf_device_map", {}).values()
    names = (f"cuda:{device}" if isinstance(device, int) else str(device) for device in devices)
    return tuple(dict.fromkeys([str(input_device(model)), *names]))


def is_out_of_memory(problem: BaseException) -> bool:
    """Whether a GPU or the CPU ran out of memory."""
    return isinstance(problem, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator" in str(problem)
