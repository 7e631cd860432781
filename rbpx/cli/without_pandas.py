"""Commands without pandas: Arrow and lmfit look for it when they are loaded, and its import takes 0.4 s.

Both do without it where it is not installed. Commands make no data frames, so a process that is a command hides it from
these two; libraries and models that ask for it themselves get it, and so do notebooks.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Final

__all__ = ["hide_pandas"]

_DO_WITHOUT: Final = ("pyarrow", "lmfit", "rbpx")  # Arrow's compiled code asks in the name of whoever calls it


class _Hidden:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas" and _asking() in _DO_WITHOUT:
            raise ModuleNotFoundError("commands do without pandas", name=name)
        return None


def _asking() -> str:
    """The package of the innermost code that is not Python's own import."""
    frame = sys._getframe(2)
    while frame.f_back is not None and "importlib" in str(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def hide_pandas() -> None:
    """From here on, until the process ends."""
    sys.meta_path.insert(0, _Hidden)
