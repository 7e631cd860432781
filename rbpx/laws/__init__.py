"""Fits, intervals and distributions from arrays; imports no deep-learning framework.

The public functions are in `rbpx.laws.public`, imported when one of them is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["bootstrap", "fit_k_law", "fit_power_law", "fit_schedule", "fit_surface", "predict", "rank_distributions"]

if TYPE_CHECKING:
    from rbpx.laws.public import (
        bootstrap,
        fit_k_law,
        fit_power_law,
        fit_schedule,
        fit_surface,
        predict,
        rank_distributions,
    )
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'rbpx.laws' has no attribute {name!r}; it has {', '.join(__all__)}")
        return getattr(import_module("rbpx.laws.public"), name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
