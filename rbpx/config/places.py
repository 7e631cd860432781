"""Where conf/ and experiments/ lie: inside an installed package, or beside it in a checkout."""

from pathlib import Path

from rbpx.errors import RbpxError

_PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """`conf` or `experiments`: inside an installed package, else beside the package in a checkout."""
    for place in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise RbpxError(f"the folder {name}/ is missing beside {_PACKAGE}; install rbpx again")


def experiments(primary: str) -> list[Path]:
    """The named studies for a primary configuration; a first line `# verb: train` marks those of `train`."""
    found = []
    for path in sorted(folder("experiments").glob("*.yaml")):
        with path.open(encoding="utf-8") as file:
            trains = file.readline().strip() == "# verb: train"
        if trains == (primary == "train"):
            found.append(path)
    return found
