"""Plans which models a recipe trains: finished ones at budgets of tokens, and raw ones along the trunks."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rbpx.config.recipe import Recipe, Shape
from rbpx.errors import RbpxError

_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9}


@dataclass(frozen=True)
class Planned:
    """One model that will be written.

    Attributes:
        revision: its name within its size, such as 8m, raw-2m or seed43-8m, and that of its folder.
        step: optimizer steps that it is trained for.
        start: the step at which its rate begins to decay; None for a raw checkpoint, whose rate has not decayed.
    """

    revision: str
    step: int
    start: int | None

    @property
    def leaves(self) -> int:
        """The trunk's step at which this model leaves it: to decay in a branch, or to be written as it is."""
        return self.step if self.start is None else self.start


@dataclass(frozen=True)
class Trunk:
    """One training at a constant rate, and the models that leave it, in the order in which they do."""

    size: str
    seed: int
    models: tuple[Planned, ...]

    @property
    def name(self) -> str:
        """Unique within a ladder."""
        return f"{self.size}-seed{self.seed}"

    def model_of(self, step: int) -> Planned:
        """The finished model that is trained for `step` steps."""
        return next(model for model in self.models if model.start is not None and model.step == step)


def trunks(recipe: Recipe, sizes: Iterable[str]) -> list[Trunk]:
    """The trunks to train for these sizes, in their order; those of further seeds come last.

    Raises:
        RbpxError: an amount cannot be read, or a budget is too small for the warm-up or for one step.
    """
    sizes = list(sizes)
    for name in ("budgets", "checkpoints", "seeds"):
        value = getattr(recipe, name)
        for size in value if isinstance(value, Mapping) else ():
            if size not in recipe.shapes:
                raise RbpxError(
                    f"{name} names {size}, which has no shape; sizes with a shape: {', '.join(recipe.shapes)}"
                )
    if not 0 <= recipe.decay <= 1:
        raise RbpxError(f"decay={recipe.decay} is not a share; give one from 0 to 1")
    if len(_listed(recipe.flops_tokens)) != 2:
        raise RbpxError(f"flops_tokens={recipe.flops_tokens} is not a range; give the least and the most tokens")
    main = [_trunk(recipe, size, recipe.seed) for size in sizes]
    return main + [_trunk(recipe, size, seed) for size in sizes for seed in _seeds(recipe, size)]


def total_params(recipe: Recipe, shape: Shape) -> int:
    """N: parameters of a size with its tied head, counted once."""
    return recipe.vocab_size * shape.hidden + shape.non_embedding_params


def training_flops(recipe: Recipe, shape: Shape, tokens: int) -> float:
    """C = 6 N D, N with the head; operations that mix positions (attention's products, a scan) are not counted."""
    return 6.0 * total_params(recipe, shape) * tokens


def token_label(tokens: int) -> str:
    """Tokens in three digits: 8m, 1.24m, 930k."""
    for unit, scale in reversed(_UNITS.items()):
        if float(f"{tokens:.3g}") >= scale:
            return f"{float(f'{tokens:.3g}') / scale:.6g}{unit}"
    return str(tokens)


def token_count(value: Any, where: str) -> int:
    """Tokens from a number, or from text such as 8m, 1.24m and 930k.

    Raises:
        RbpxError: it is not a number of tokens, or not positive.
    """
    text = str(value).strip().lower().replace("_", "")
    scale = _UNITS.get(text[-1:], 1.0)
    try:
        count = float(text[:-1] if scale > 1 else text) * scale
    except ValueError:
        count = math.nan
    if isinstance(value, bool) or not 1 <= count < 1e15:
        raise RbpxError(f"{where}: {value} is not an amount of tokens; write 8_000_000, 8m or 930k")
    return round(count)


def _of_size(value: Any, size: str) -> Any:
    """The value for a size, or the one for all sizes; None if a mapping has none for it."""
    return value.get(size) if isinstance(value, Mapping) else value


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _seeds(recipe: Recipe, size: str) -> list[int]:
    seeds = [_whole(seed, f"seeds of {size}") for seed in _listed(_of_size(recipe.seeds, size))]
    return [seed for seed in dict.fromkeys(seeds) if seed != recipe.seed]


def _whole(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RbpxError(f"{where}: {value} is not a whole number from 0")
    return value


def _budgets(recipe: Recipe, size: str) -> list[int]:
    """The budgets of a size in tokens, as requested."""
    budgets = [token_count(recipe.tokens, "tokens")]
    budgets += [token_count(value, f"budgets of {size}") for value in _listed(_of_size(recipe.budgets, size))]
    least, most = (token_count(value, "flops_tokens") for value in recipe.flops_tokens)
    for flops in _listed(recipe.flops):
        try:
            tokens = float(flops) / training_flops(recipe, recipe.shapes[size], 1)
        except ValueError:
            raise RbpxError(f"flops: {flops} is not a number; write 1e13, or a list of such numbers") from None
        budgets += [round(tokens)] if least <= tokens <= most else []
    return budgets


def _trunk(recipe: Recipe, size: str, seed: int) -> Trunk:
    per_step, is_main = recipe.tokens_per_step, seed == recipe.seed
    budgets = _budgets(recipe, size) if is_main else [token_count(recipe.tokens, "tokens")]
    models: dict[str, Planned] = {}
    for tokens in budgets:
        step = tokens // per_step
        start = step - math.floor(step * recipe.decay)
        if step < 1:
            raise RbpxError(f"a budget of {tokens:,} tokens is less than one step of {per_step:,}")
        if start < recipe.warmup_steps:
            raise RbpxError(
                f"the rate of {size} at a budget of {tokens:,} tokens begins to decay at step {start}, within the "
                f"{recipe.warmup_steps} steps of warm-up; give a larger budget or a smaller warmup_steps"
            )
        revision = token_label(step * per_step) if is_main else f"seed{seed}-{token_label(step * per_step)}"
        models[revision] = Planned(revision, step, start)
    end = max(model.leaves for model in models.values())
    n_raw = _of_size(recipe.checkpoints, size) if is_main else None
    for step in _log_spaced(n_raw, end, size):
        revision = f"raw-{token_label(step * per_step)}"
        models[revision] = Planned(revision, step, None)
    return Trunk(size, seed, tuple(sorted(models.values(), key=lambda model: (model.leaves, model.step))))


def _log_spaced(count: Any, end: int, size: str) -> list[int]:
    """Steps from a hundredth of the trunk to its end, spaced by one ratio."""
    n = 0 if count is None else _whole(count, f"checkpoints of {size}")
    ratios = [(i + 1 - n) / max(1, n - 1) for i in range(n)]
    return sorted({max(1, round(end * 100**ratio)) for ratio in ratios})
