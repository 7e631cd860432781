"""Commands as users type them: words in, exit status and both streams out; as a process of its own, or in this one.

No command may leave anything in its working directory, so both ways look there afterwards.
"""

import contextlib
import io
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

Answer = subprocess.CompletedProcess[str]


def rbpx(*args: object, cwd: Path, env: Mapping[str, str] | None = None, check: int | None = None) -> Answer:
    """Run `python -m rbpx ARGS` in the folder `cwd` and wait for it; `check` is the exit status that it must have."""
    with _untouched(cwd):
        process = start(*args, cwd=cwd, env=env)
        stdout, stderr = process.communicate(timeout=300)
    return _checked(Answer([str(arg) for arg in args], process.returncode, stdout, stderr), check)


def start(*args: object, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `python -m rbpx ARGS` and return at once."""
    words = [sys.executable, "-m", "rbpx", *(str(arg) for arg in args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=cwd, env=command_environment(env), stdout=pipe, stderr=pipe, text=True)


def here(
    *args: object,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    check: int | None = None,
    writes: bool = False,
    terminal: TextIO | None = None,
) -> Answer:
    """As `rbpx`, without a new process: torch is imported once for all commands of a test session.

    One that `writes` may leave files in its working directory. Both streams go to a `terminal` where there is one.
    """
    from rbpx.__main__ import main

    words = [str(arg) for arg in args]
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.nullcontext() if writes else _untouched(cwd), _as_before(), contextlib.chdir(cwd):
        environment = command_environment(env)
        os.environ.clear()
        os.environ.update(environment)
        with contextlib.redirect_stdout(terminal or stdout), contextlib.redirect_stderr(terminal or stderr):
            try:
                status = main(words)
            except SystemExit as left:
                status = left.code if isinstance(left.code, int) else 1
    return _checked(Answer(words, status, stdout.getvalue(), stderr.getvalue()), check)


def command_environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """This process's environment without what would change a command's answer: a store of the developer, a width."""
    plain = {name: value for name, value in os.environ.items() if name not in ("RBPX_STORE", "COLUMNS")}
    return plain | dict(env or {})


def _checked(answer: Answer, check: int | None) -> Answer:
    assert check is None or answer.returncode == check, (
        f"rbpx {' '.join(answer.args)}: exit status {answer.returncode}, expected {check}\n"
        f"{answer.stdout[-2000:]}\n{answer.stderr[-4000:]}"
    )
    return answer


@contextlib.contextmanager
def _untouched(folder: Path) -> Iterator[None]:
    before = sorted(folder.iterdir())
    yield
    assert sorted(folder.iterdir()) == before, "a command left something in its working directory"


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Put back what Hydra and the command line set for the whole process."""
    root = logging.getLogger()
    argv, environment, handlers, level = sys.argv, dict(os.environ), root.handlers[:], root.level
    try:
        yield
    finally:
        sys.argv = argv
        os.environ.clear()
        os.environ.update(environment)
        root.handlers[:] = handlers
        root.setLevel(level)
