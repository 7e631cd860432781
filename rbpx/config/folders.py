"""Locates conf/ and experiments/, in an installed package or a checkout, and lists their files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rbpx.errors import RbpxError

GROUPS: Final = ("model", "dataset", "protocol", "parallel", "engine", "experiment")
"""The groups of files of conf/, to which a user may add."""

_PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """Returns the path of `conf` or `experiments`: in the installed package, else beside the package in a checkout."""
    for place in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise RbpxError(f"the folder {name}/ is missing beside {_PACKAGE}; install rbpx again")


def experiments(own: Sequence[Path] = ()) -> list[Path]:
    """Returns the files of named studies, by name; a user's study replaces ours of the same name.

    Args:
        own: folders of the user's configuration, with studies in experiment/; the first one with a name counts.
    """
    found: dict[str, Path] = {}
    for place in (*(each / "experiment" for each in own), folder("experiments")):
        for path in place.glob("*.yaml"):
            found.setdefault(path.stem, path)
    return [found[name] for name in sorted(found)]


def study_file(name: str, own: Sequence[Path]) -> Path:
    """Returns the file of a study.

    Raises:
        RbpxError: no study has this name.
    """
    found = {path.stem: path for path in experiments(own)}
    if name not in found:
        raise RbpxError(f"no study is called {name}; known: {', '.join(found)}")
    return found[name]


def options(group: str, own: Sequence[Path] = ()) -> list[str]:
    """Returns the names that `group=` takes: files in conf/ and in the user's folders, or studies."""
    if group == "experiment":
        return [path.stem for path in experiments(own)]
    return sorted({path.stem for place in (folder("conf"), *own) for path in (place / group).glob("*.yaml")})
