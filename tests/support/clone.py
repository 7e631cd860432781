"""A copy of the project to which a test adds what the documentation says, and commands that run in it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.places import PROJECT

# Commands one after another, so that the libraries are read once for all: a line of JSON in, a line out.
_COMMANDS = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
answers = sys.stdout
for line in sys.stdin:
    words, cwd = json.loads(line)
    os.chdir(cwd)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        from rbpx.__main__ import main
        status = main(words)
    print(json.dumps([status, out.getvalue(), err.getvalue()]), file=answers, flush=True)
"""


class Clone:
    """The project as a clone has it; the weights of the ladder are linked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("rbpx", "conf", "experiments"):
            shutil.copytree(PROJECT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "ladder"))
        (root / "rbpx" / "ladder").symlink_to(PROJECT / "rbpx" / "ladder")
        self._environment = {**os.environ, "PYTHONPATH": str(root)}
        self._process: subprocess.Popen[str] | None = None

    def rbpx(self, cwd: Path, *words: object) -> str:
        """What a command prints to standard output; it has to end well. What it imports stays as the first has it."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                [sys.executable, "-c", _COMMANDS], env=self._environment, stdin=pipe, stdout=pipe, text=True
            )
        print(json.dumps([[str(word) for word in words], str(cwd)]), file=self._process.stdin, flush=True)
        status, stdout, stderr = json.loads(self._process.stdout.readline())
        assert status == 0, stderr
        return str(stdout)

    def python(self, cwd: Path, *words: object) -> str:
        """What a Python of its own prints to standard output; it has to end well."""
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, cwd=cwd, env=self._environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        """End its process of commands."""
        if self._process is not None:
            self._process.communicate()
