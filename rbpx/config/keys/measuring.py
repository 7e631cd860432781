"""Keys that say how a grid is measured, and on what."""

from typing import Any, Final

from rbpx.config.keys.key import Asked, Key, as_typed, positive, whole
from rbpx.config.model.engine import EngineConfig
from rbpx.config.model.placement import MemoryLimits, ParallelConfig, read_limits
from rbpx.config.options import Device
from rbpx.errors import RbpxError

__all__ = ["N_BEST", "MeasuringKeys"]

N_BEST: Final = 5  # tokens that are kept of each place where they are asked for


def _best(key: str, value: int) -> int:
    if value not in (0, N_BEST):
        raise RbpxError(f"best={value} is not kept; give best={N_BEST} for the five best tokens, or leave it out")
    return value


def _limits(key: str, value: Any) -> MemoryLimits | None:
    return None if value is None else read_limits(value)


class MeasuringKeys(Asked):
    """How and on what."""

    device: Key[Device] = Key(Device, Device.auto, as_typed, "auto").says(
        "or cpu, cuda; split: a model larger than one GPU, over all GPUs, memory and disk"
    )
    # a dict; Hydra adds no keys to one that is typed
    memory: Key[MemoryLimits | None] = Key(Any, None, _limits, "").says(
        "with device=split: '{0: 20GiB, cpu: 60GiB}' limits each of them; what it does not name holds nothing"
    )
    tokens_per_batch: Key[int] = Key(int, 4096, whole(1), "4096").says(
        "padded tokens of a batch: changes speed, and by rounding logprobs (1e-5) and close ranks"
    )
    deterministic: Key[bool] = Key(bool, False, as_typed, "true").says(
        "the same bits for any tokens_per_batch (not for any number of processes); a window a pass"
    )
    parallel: Key[ParallelConfig] = Key(ParallelConfig, ParallelConfig(), as_typed, "tensor").says(
        "one model split over all processes of torchrun; parallel.tensor=4: over groups of four"
    )
    engine: Key[EngineConfig | None] = Key(EngineConfig | None, None, as_typed, "vllm").says(
        "a running server measures: engine.url=http://host:8000/v1 dtype=bfloat16, its own"
    )
    best: Key[int] = Key(int, 0, _best, "0").says(
        "or 5: keeps the five best tokens of each place, for view; reads the model twice, 25 bytes a token"
    )
    calibrate: Key[bool] = Key(bool, False, as_typed, "false").says("or true: plan measures how fast this machine is")
    tolerance: Key[float] = Key(float, 2.0, positive("how far an engine may be off, as in tolerance=2"), "2").says(
        "how many times as far as rounding explains another engine may be from float32"
    )
