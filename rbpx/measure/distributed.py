"""The processes that measure together: who I am, what the others hold. Accelerate decides; nothing is assumed."""

import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import torch

from rbpx.errors import RbpxError

T = TypeVar("T")


@dataclass(frozen=True)
class Crew:
    """This process among the `world` that were launched; rank 0 writes and prints."""

    rank: int
    world: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def gather(self, part: T) -> list[T]:
        """One part from each process, in rank order, on every process."""
        if self.world == 1:
            return [part]
        from accelerate.utils import gather_object

        return list(gather_object([part]))

    def share(self, value: T) -> T:
        """The first process's value, on every process."""
        if self.world == 1:
            return value
        from accelerate.utils import broadcast_object_list

        box: list[Any] = [value]
        broadcast_object_list(box)
        return box[0]  # type: ignore[no-any-return]


def assemble(device: str) -> Crew:
    """Meet the other processes of this launch, if any, on cpu, cuda or (auto, split) the best device there is.

    Raises:
        RbpxError: cuda is asked for and absent, a split model is asked of several processes, or fewer came up than the
            launcher promised.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState

    promised = int(os.environ.get("WORLD_SIZE", "1"))
    if device == "split" and promised > 1:
        raise RbpxError(
            f"device=split puts one model over all devices from one process, and {promised} were launched; start one, "
            "or drop device=split"
        )
    if device == "cuda" and not torch.cuda.is_available():
        raise RbpxError("device=cuda was asked for, but torch sees no CUDA device; use device=cpu or device=auto")
    if promised == 1:  # a sweep in one process may change the device from job to job
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
    else:
        # Its functions take the group of the moment of import as a default, and would hold it beyond its end.
        import_module("torch.distributed.nn")
    accelerator = Accelerator(cpu=device == "cpu")
    if accelerator.num_processes != promised:
        raise RbpxError(
            f"the launcher set WORLD_SIZE={promised}, but {accelerator.num_processes} process(es) came up together, so "
            "each would measure everything; on CPU launch with ACCELERATE_USE_CPU=true (or device=cpu)"
        )
    # Sums of 16-bit products in 16 bits would move ranks; float32 products stay exact (no TF32) by torch's default.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    return Crew(accelerator.process_index, accelerator.num_processes, accelerator.device)


def disband() -> None:
    """Leave the process group, if there is one; threads of it that outlive the interpreter now and then abort."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
