"""What is made once a session and read by all of its workers."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def once_a_session(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]) -> Path:
    """The path that `make` returns for an empty folder; it is called by the first worker that asks, the others wait.

    What it makes has to lie in that folder. Where it fails, the next that asks tries again.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # each worker has a folder of its own in that of the session
    folder, answer = base / f"shared-{name}", base / f"shared-{name}.path"
    with FileLock(base / f"shared-{name}.lock"):
        if not answer.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            answer.write_text(str(make(folder)))
    return Path(answer.read_text())
