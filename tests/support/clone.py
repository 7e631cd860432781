"""A copy of the project to which a test adds what the documentation says, and commands that run in it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.places import PROJECT

# Commands one after another, so that the libraries are read once for all.
_COMMANDS = """
import io, json, sys
from contextlib import redirect_stdout
from rbpx.__main__ import main
answers = []
for words in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as out:
        status = main(words)
    assert status == 0, words
    answers.append(out.getvalue())
print(json.dumps(answers))
"""


class Clone:
    """The project as a clone has it; the weights of the ladder are linked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("rbpx", "conf", "experiments"):
            shutil.copytree(PROJECT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "ladder"))
        (root / "rbpx" / "ladder").symlink_to(PROJECT / "rbpx" / "ladder")
        self._environment = {**os.environ, "PYTHONPATH": str(root)}

    def rbpx(self, cwd: Path, *lines: Sequence[object]) -> list[str]:
        """What commands print to standard output, in one process; they have to end well."""
        printed = self.python(cwd, "-c", _COMMANDS, json.dumps([[str(word) for word in line] for line in lines]))
        return list(json.loads(printed))

    def python(self, cwd: Path, *words: object) -> str:
        """What a Python of its own prints to standard output; it has to end well."""
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, cwd=cwd, env=self._environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout
