"""lmfit without scipy.stats, which takes half of its import: it is read when a distribution there is first used.

lmfit asks it for the confidence of its own profiles and for two losses, none of which a law here uses.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["lmfit"]

_NAME = "scipy.stats"


class _Distribution:
    """A distribution of scipy.stats by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(getattr(import_module(_NAME), self._name), attribute)


class _Distributions(ModuleType):
    """What stands in place of scipy.stats while lmfit takes distributions from it."""

    def __getattr__(self, name: str) -> _Distribution:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Distribution(name)


if _NAME in sys.modules or "lmfit" in sys.modules:
    import lmfit
else:
    sys.modules[_NAME] = _Distributions(_NAME)
    try:
        import lmfit
    finally:
        del sys.modules[_NAME]
