"""The learning rate: warm-up, constant, and a decay that branches off wherever a finished model is wanted."""

import math

from rbpx.config.recipe import Recipe, Shape

__all__ = ["learning_rate_at"]


def learning_rate_at(step: int, recipe: Recipe, shape: Shape, branch: tuple[int, int] | None = None) -> float:
    """Linear warm-up to learning_rate / sqrt(hidden), then constant; in a branch 1 - sqrt of the share gone, to zero.

    A constant rate with a short decay ends at the loss of a cosine made for that length, and one training serves all
    lengths; 1 - sqrt(x) does better than a line: arXiv 2405.18392, "Scaling laws and compute-optimal training beyond
    fixed training durations", section 3 and its appendix on the shape.

    Args:
        step: from 0.
        recipe: of the ladder.
        shape: of the size.
        branch: the step at which the decay begins and the one at which the model is finished; None on the trunk.
    """
    peak = (shape.learning_rate or recipe.learning_rate) / math.sqrt(shape.hidden)
    if step < recipe.warmup_steps:
        return peak * (step + 1) / recipe.warmup_steps
    if branch is None or step < branch[0]:
        return peak
    start, end = branch
    return peak * (1 - math.sqrt((step - start) / (end - start)))
