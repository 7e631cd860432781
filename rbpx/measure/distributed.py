"""The process group of a launch, set up by accelerate: rank, world size, device, collectives, tensor parallelism."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import torch

from rbpx.errors import RbpxError, UnexpectedError
from rbpx.models.devices import require_cuda
from rbpx.models.tensor_parallel import TensorGroup, tensor_group

T = TypeVar("T")


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of this launch, seen from one of them.

    Attributes:
        tensor: the processes that share one model with this one.
    """

    rank: int
    world_size: int
    device: torch.device
    tensor: TensorGroup | None = None

    @property
    def is_main(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    @property
    def n_models(self) -> int:
        """Number of copies of the model, each of which measures its share of the windows."""
        return self.world_size // (1 if self.tensor is None else self.tensor.size)

    @property
    def of_model(self) -> int:
        """Index of the copy that this process holds, wholly or in part."""
        return self.rank // (1 if self.tensor is None else self.tensor.size)

    @property
    def tells(self) -> bool:
        """Whether this process reports the results of its copy; the others have the same."""
        return self.tensor is None or self.tensor.rank == 0

    def gather(self, part: T) -> list[T]:
        """The parts of all processes in rank order, on every process."""
        if self.world_size == 1:
            return [part]
        from accelerate.utils import gather_object

        return list(gather_object([part]))

    def together(self, work: Callable[[], T]) -> T:
        """What `work` returns here; an error in one process is raised in all, which would wait forever.

        Processes that share a model all meet the same `RbpxError`; any other error is raised at once, and the launcher
        ends them.
        """
        if self.world_size == 1:
            return work()
        problem: RbpxError | None = None
        try:
            result = work()
        except RbpxError as raised:
            if self.tensor is not None and isinstance(raised, UnexpectedError):
                raise
            problem = raised
        except Exception as raised:
            if self.tensor is not None:
                raise
            problem = UnexpectedError.of(raised, f"process {self.rank} failed")
        problems = [reported for reported in self.gather(problem) if reported is not None]
        if problems:
            raise problems[0]
        return result

    def broadcast(self, value: T) -> T:
        """The value of the main process, on every process."""
        if self.world_size == 1:
            return value
        from accelerate.utils import broadcast_object_list

        values: list[Any] = [value]
        broadcast_object_list(values)
        return values[0]  # type: ignore[no-any-return]


def init_process_group(device: str, tensor: int | None = 1) -> ProcessGroup:
    """Join the processes of this launch, on cpu, cuda or (auto, split) the best device available.

    `tensor` processes share a model; None for all of the launch.

    Raises:
        RbpxError: there is no cuda, device=split has several processes, or `tensor` does not divide them.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState

    n_launched = int(os.environ.get("WORLD_SIZE", "1"))
    if device == "split" and n_launched > 1:
        raise RbpxError(
            f"device=split spreads one model over all devices from a single process, but {n_launched} processes were "
            "launched; start one, or drop device=split"
        )
    if tensor != 1 and n_launched == 1:
        raise RbpxError(
            f"parallel.tensor={'all' if tensor is None else tensor} splits a model over processes, but there is one; "
            "start several with torchrun --nproc-per-node N -m rbpx ..., or drop parallel="
        )
    if device == "cuda":
        require_cuda()
    if n_launched == 1:  # jobs of a sweep may change the device
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
    else:
        # Its functions bind the default process group on import; imported later, they would keep a destroyed group.
        import_module("torch.distributed.nn")
    # Without a GPU accelerate starts no group.
    on_cpu = device == "cpu" or (n_launched > 1 and not torch.accelerator.is_available())
    accelerator = Accelerator(cpu=on_cpu)
    compute_exactly()
    group = None if tensor == 1 else tensor_group(tensor or n_launched, accelerator.device)
    return ProcessGroup(accelerator.process_index, accelerator.num_processes, accelerator.device, group)


def compute_exactly() -> None:
    """Multiply float32 in float32, and accumulate 16-bit products in more bits.

    TF32 has a 10-bit mantissa and would change ranks; torch uses it for convolutions by default.
    """
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def destroy_process_group() -> None:
    """Destroy the process group, whose threads can abort when they outlive the interpreter."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


_CUBLAS = "CUBLAS_WORKSPACE_CONFIG"  # else cuBLAS may vary the kernel of a product


@contextmanager
def repeatable() -> Iterator[None]:
    """Compute in one thread, and on a GPU with deterministic kernels, so that a repetition gives the same bits.

    One window per pass fixes the shapes, one thread the order of summation. Torch raises RuntimeError where a GPU
    operation has no deterministic kernel.
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
