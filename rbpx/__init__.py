"""Relative-Based Probability: scaling laws of language models, measured token by token (arXiv 2510.20387).

In a notebook or a script: `rbpx.measure(model="ladder")`, `rbpx.open("store").fit(dataset="stdlib")`; laws of arrays
are in `rbpx.laws`. On a command line: `python -m rbpx --help`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from rbpx.version import __version__ as __version__

__all__ = ["Answer", "MeasureError", "Measurements", "RbpxError", "Status", "Store", "measure", "open"]

if TYPE_CHECKING:
    from rbpx.api.answer import Answer
    from rbpx.api.measurements import Measurements, measure
    from rbpx.api.measurements import open_measurements as open
    from rbpx.errors import MeasureError, RbpxError
    from rbpx.status import Status
    from rbpx.store.store import Store
else:
    _PLACES = {
        "Answer": ("api.answer", "Answer"),
        "MeasureError": ("errors", "MeasureError"),
        "Measurements": ("api.measurements", "Measurements"),
        "RbpxError": ("errors", "RbpxError"),
        "Status": ("status", "Status"),
        "Store": ("store.store", "Store"),
        "measure": ("api.measurements", "measure"),
        "open": ("api.measurements", "open_measurements"),
    }

    def __getattr__(name: str) -> object:
        """Imports a name of the interface when it is first used, as the command line needs none."""
        if name not in _PLACES:
            raise AttributeError(f"module 'rbpx' has no attribute {name!r}; it has {', '.join(__all__)}")
        module, attribute = _PLACES[name]
        return getattr(import_module(f"rbpx.{module}"), attribute)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
