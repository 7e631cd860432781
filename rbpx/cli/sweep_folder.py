"""The folder of a sweep: where Hydra works, and where jobs with a process of their own leave their outcomes."""

import pickle
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rbpx.cli.registry import Outcome
from rbpx.config.overrides import store_of
from rbpx.files.entries import atomic_write


def leave(sweep: Path, outcome: Outcome) -> None:
    """Put down the outcome of a job that has a process of its own."""
    number = sum(1 for _ in sweep.glob("*.outcome"))
    with atomic_write(sweep / f"{number:06d}-{uuid.uuid4().hex[:6]}.outcome", durable=False) as temporary:
        temporary.write_bytes(pickle.dumps(outcome))


def collect(sweep: Path) -> list[Outcome]:
    """The outcomes that were put down, in the order in which their jobs ended."""
    return [pickle.loads(path.read_bytes()) for path in sorted(sweep.glob("*.outcome"))]


def make(launcher: str, overrides: Sequence[str]) -> Path:
    """Where the jobs of a sweep leave their outcomes: in the store, beside their logs, if they may run elsewhere."""
    if launcher == "basic":
        return Path(tempfile.mkdtemp(prefix="rbpx-"))
    store = Path(store_of(overrides)).expanduser().resolve()
    sweep = store / "sweeps" / uuid.uuid4().hex[:12]
    sweep.mkdir(parents=True)
    return sweep


def remove(sweep: Path) -> None:
    """Remove the folder of a sweep, and those above it that it was made in and that hold nothing else."""
    shutil.rmtree(sweep, ignore_errors=True)
    if sweep.parent.name == "sweeps":
        with suppress(OSError):  # not empty
            sweep.parent.rmdir()
            sweep.parent.parent.rmdir()
