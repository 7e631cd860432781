"""What a ladder costs before it is trained: tokens, FLOPs, weights, and its time, from a few steps on this machine."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rbpx.config.recipe import Recipe
from rbpx.train.design import Trunk, total_params, training_flops
from rbpx.train.trunk import begin

_TIMED_STEPS = 3  # after one that is not counted


@dataclass(frozen=True)
class TrunkCost:
    """One trunk with its branches; time is in seconds, of what is left alone."""

    trunk: Trunk
    steps: int
    steps_left: int
    step_s: float
    flops: float
    mib: float

    @property
    def left_s(self) -> float:
        """Seconds until all of its models are written."""
        return self.steps_left * self.step_s


def all_steps(trunk: Trunk) -> int:
    """Steps of a trunk up to the last model that comes from it, and of its branches."""
    ends = [model.step if model.start is None else model.start for model in trunk.models]
    return max(ends) + sum(model.step - model.start for model in trunk.models if model.start is not None)


def costs(recipe: Recipe, planned: Sequence[tuple[Trunk, int]], device: str) -> list[TrunkCost]:
    """The cost of each trunk of which so many steps are left; a size is timed once, and not where nothing is left."""
    timed: dict[str, float] = {}
    rows = []
    for trunk, left in planned:
        if left and trunk.size not in timed:
            timed[trunk.size] = step_seconds(recipe, trunk.size, device)
        shape, steps = recipe.shapes[trunk.size], all_steps(trunk)
        flops = training_flops(recipe, shape, steps * recipe.tokens_per_step)
        mib = len(trunk.models) * 2 * total_params(recipe, shape) / 2**20
        rows.append(TrunkCost(trunk, steps, left, timed.get(trunk.size, 0.0), flops, mib))
    return rows


def step_seconds(recipe: Recipe, size: str, device: str) -> float:
    """Seconds of one step: the median of a few, on random tokens."""
    training = begin(recipe, size, recipe.seed, device)
    ids_BT = torch.randint(0, recipe.vocab_size, (recipe.windows_per_step, recipe.context + 1))
    seconds = []
    for _ in range(1 + _TIMED_STEPS):
        started = time.monotonic()
        training.advance(ids_BT, 1e-6)
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds[1:])
