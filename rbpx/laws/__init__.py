"""Fits, intervals and distributions, from numbers alone: no framework is imported.

What people import stands in `rbpx.laws.public`, which is loaded when a name of it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["bootstrap", "fit_k_law", "fit_power_law", "fit_surface", "predict", "rank_distributions"]

if TYPE_CHECKING:
    from rbpx.laws.public import bootstrap, fit_k_law, fit_power_law, fit_surface, predict, rank_distributions
else:

    def __getattr__(name: str) -> object:
        """Import the interface when one of its names is first used."""
        if name not in __all__:
            raise AttributeError(f"module 'rbpx.laws' has no attribute {name!r}; it has {', '.join(__all__)}")
        return getattr(import_module("rbpx.laws.public"), name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
