"""Imports of a command without what it has no use for, which would take half a second.

Arrow and lmfit look for pandas when they are loaded, and do without it where it is not installed. Commands make no data
frames, so a process that is a command hides it from these two; libraries and models that ask for it themselves get it,
and so do notebooks. SciPy copies every name of numpy into a module of its own, and with them come a compiler of Fortran
and tools for tests; these two are loaded when something in them is first used.
"""

import gc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Final

__all__ = ["import_lean"]

_DO_WITHOUT: Final = ("pyarrow", "lmfit", "rbpx")  # Arrow's compiled code asks in the name of whoever calls it
_LATER: Final = ("numpy.f2py", "numpy.testing")  # what threads may be the first to use cannot be among them
_NEW_OBJECTS: Final = 200_000  # before Python looks for circles among them, where it would after 700


class _Lean:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas" and _asking() in _DO_WITHOUT:
            raise ModuleNotFoundError("commands do without pandas", name=name)
        if name not in _LATER:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _asking() -> str:
    """The package of the innermost code that is not Python's own import."""
    frame = sys._getframe(2)
    while frame.f_back is not None and "importlib" in str(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def import_lean() -> None:
    """From here on, until the process ends."""
    sys.meta_path.insert(0, _Lean)
    gc.set_threshold(_NEW_OBJECTS)  # of a command most objects are code, and live as long as it
