"""The demo and the commands that the pages show, run here on as many texts as a test needs."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from rbpx.data import corpus
from rbpx.data.corpus import draw
from rbpx.data.texts import Source
from tests.support.commands import here
from tests.support.places import PROJECT

_READERS = {"pydoc": corpus.read_pydoc, "stdlib": corpus.read_stdlib}


def in_python(command: str) -> list[str]:
    """The words of a command line, run by the interpreter of the tests."""
    words = shlex.split(command)
    return [sys.executable, *words[1:]] if Path(words[0]).name == "python" else words


@cache
def _few(dataset: str, n: int) -> Source:
    return [(document.source_id, document.text) for document in draw(_READERS[dataset](), n, seed=0)]


def run(
    words: Sequence[str], cwd: Path, store: Path, few: dict[str, int] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command line: in this process, where a dataset of `few` has that many documents, or in its own.

    Figures are drawn in a process of their own: beside the threads of torch the drawing can wait for ever.
    """
    environment = {"RBPX_STORE": str(store), "COLUMNS": "80", "HF_HUB_OFFLINE": "1"}
    if list(words[:3]) != [sys.executable, "-m", "rbpx"] or "pdf" in words:
        return subprocess.run(words, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=900)
    with pytest.MonkeyPatch.context() as patch:
        for dataset, n in (few or {}).items():
            patch.setattr(corpus, f"read_{dataset}", lambda dataset=dataset, n=n: _few(dataset, n))
        return here(*words[3:], cwd=cwd, env=environment, writes="report" in words or "--output" in words)


def demo_command() -> str:
    """What the recipe of `make demo` types, read and not asked of make, which says other things beside it."""
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    (command,) = re.findall(r"^demo:.*\n\t\$\(BIN\)/(.+)\n\n", makefile, re.MULTILINE)
    return command


def run_demo(folder: Path, few: dict[str, int] | None = None) -> tuple[Path, str]:
    """The store that `make demo` fills, and what it printed."""
    (folder / "cwd").mkdir()
    done = run(in_python(demo_command()), folder / "cwd", folder / "store", few)
    assert done.returncode == 0, done.stderr
    return folder / "store", done.stdout
