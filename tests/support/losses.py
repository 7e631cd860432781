"""Losses of two families on two texts, which one curve relates: y = E_Y + K (x - E_X)^KAPPA, as a table to import."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tests.support.loss_pairs import losses

S: Final = np.geomspace(1e6, 1e9, 7)


def off(at: int, family: str) -> float:
    """An error of a model, in percent, that falls nowhere in line."""
    sign = 1 if (at + (family == "b")) % 2 else -1
    return 0.1 * sign * (1 + at % 3)


def table(factors: Mapping[str, float] | None = None) -> str:
    """Losses on prose and code, and what is right on code; those on code times a factor of the family."""
    lines = ["family,S,prose,code,right"]
    for family in ("a", "b"):
        for at, size in enumerate(S * (1 if family == "a" else 1.7)):
            x, y = losses(size)
            y *= (factors or {}).get(family, 1.0) * (1 + off(at, family) / 100)
            lines.append(f"{family},{size:.0f},{x:.9f},{y:.9f},{1 / (1 + y):.9f}")
    return "\n".join(lines)
