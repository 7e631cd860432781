"""Locates conf/ and experiments/, in an installed package or a checkout, and lists their files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rbpx.errors import RbpxError

GROUPS: Final = ("model", "dataset", "protocol", "parallel", "engine", "experiment")
"""The groups of files of conf/, to which a user may add."""

_PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """The path of `conf` or `experiments`: in the installed package, else beside it in a checkout."""
    for place in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise RbpxError(f"the folder {name}/ is missing beside {_PACKAGE}; install rbpx again")


def options(group: str, own: Sequence[Path] = ()) -> dict[str, Path]:
    """The names that `group=` takes with their files; one of the user's replaces ours."""
    ours = folder("experiments") if group == "experiment" else folder("conf") / group
    places = [ours, *(each / group for each in reversed(own))]
    found = {path.stem: path for place in places for path in place.glob("*.yaml")}
    return dict(sorted(found.items()))
