"""A store that nobody may write to."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only_copy(store: Path, folder: Path) -> Iterator[Path]:
    """A copy of a store on a read-only mount; for who may not mount, in folders without the right to write."""
    copy = Path(shutil.copytree(store, folder / "writable"))
    mount = folder / "store"
    mount.mkdir()
    if os.geteuid() != 0:
        folders = (copy, *(path for path in copy.rglob("*") if path.is_dir()))
        for each in folders:
            each.chmod(0o555)
        yield copy
        for each in folders:
            each.chmod(0o755)
        return
    if subprocess.run(["mount", "--bind", copy, mount], capture_output=True).returncode:
        pytest.skip("root without the right to mount: no folder is read-only to it")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", mount], check=True)
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)
