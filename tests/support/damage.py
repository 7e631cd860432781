"""What harms a file, and what is asked of a store that has one."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rbpx.store.store import Store
from rbpx.store.verify import Fault, verify
from tests.support.stores import cell_records, write_unsealed

Harm = Callable[[Path], None]


def run_of(store: Path, size: str) -> str:
    """The run of the model of that size."""
    (run_id,) = [record["run_id"] for record in cell_records(store) if record["size"] == size]
    return str(run_id)


def faults(store: Path) -> list[Fault]:
    """What `store verify` names."""
    return verify(Store(store)).faults


def say(path: Path, **facts: Any) -> None:
    """Let a JSON record say something else, as if it had been written so."""
    write_unsealed(path, json.loads(path.read_text()) | facts)


def flip(path: Path, at: int, bit: int = 3) -> None:
    """Flip one bit of one byte."""
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1 << bit
    path.write_bytes(whole)


def flipped(path: Path) -> None:
    """Flip a bit in the middle."""
    flip(path, path.stat().st_size // 2)


def flipped_with_the_old_times(path: Path) -> None:
    """Flip a bit and leave the times as they were."""
    stat = path.stat()
    flipped(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def truncated(path: Path) -> None:
    """Leave the first half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    """Leave nothing."""
    path.write_bytes(b"")


HARMS: list[Harm] = [flipped, flipped_with_the_old_times, truncated, emptied, Path.unlink]
