"""The exponential of a logarithm, where a float can represent it."""

import math

__all__ = ["exp_or_none"]


def exp_or_none(exponent: float | None) -> float | None:
    """A constant or a size from its logarithm; None where that is unknown, or outside the range of a float."""
    return None if exponent is None or not -700 < exponent < 700 else math.exp(exponent)
