"""A copy of the project to which a test adds what the documentation says, and commands that run in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.places import PROJECT


def clone(root: Path) -> Path:
    """The project as a clone has it; the weights of the ladder are linked."""
    for name in ("rbpx", "conf", "experiments"):
        shutil.copytree(PROJECT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "ladder"))
    (root / "rbpx" / "ladder").symlink_to(PROJECT / "rbpx" / "ladder")
    return root


def python(copy: Path, cwd: Path, *words: object) -> str:
    """What Python prints to standard output with `copy` in place of this checkout; it has to end well."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
