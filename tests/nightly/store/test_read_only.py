"""A store that is read-only, or on a full disk, answers every question, keeps nothing, and says so in one line."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import command_environment
from tests.support.composed import here
from tests.support.mounts import read_only_copy
from tests.support.stores import Family, Measured

QUESTIONS = [
    ["fit", "resamples=20", "laws=[rbp]", "k=10"],
    ["ranks", "resamples=20", "k=10"],
    ["run", "resamples=20", "laws=[rbp]", "k=10"],
]
SILENT = [["status"], ["sql", "SELECT count(*) FROM tokens"], ["export", "runs"], ["store", "verify"]]


@pytest.fixture
def read_only(untouched: Measured, tmp_path: Path) -> Iterator[Path]:
    with read_only_copy(untouched.store, tmp_path) as store:
        yield store


@pytest.fixture
def full(untouched: Measured, tmp_path: Path) -> Iterator[Path]:
    """A store on a disk without room for another byte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no right to mount a disk that can be filled")
    try:
        store = Path(shutil.copytree(untouched.store, disk / "store"))
        with contextlib.suppress(OSError), (disk / "filled").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        yield store
    finally:
        subprocess.run(["umount", disk], check=True)


def test_on_a_full_disk_every_question_is_answered(full: Path, family: Family, cwd: Path) -> None:
    for words in QUESTIONS:
        words = [words[0], *(family.words() if words[0] == "run" else []), *words[1:]]
        answer = here(*words, "k=[2]", "--store", full, cwd=cwd, check=0)
        assert "mine on file" in answer.stdout
        (line,) = answer.stderr.splitlines()
        assert line == f"rbpx: store={full} cannot be written: No space left on device; the answer is not kept in it"
    for words in SILENT:
        answer = here(*words, "--store", full, cwd=cwd, check=0)
        assert answer.stdout
        assert answer.stderr == ""


def test_what_cannot_be_computed_again_is_refused_on_a_full_disk(full: Path, cwd: Path) -> None:
    answer = here("predict", "S=1e8", "register=mine", "resamples=20", "k=1", "--store", full, cwd=cwd, check=1)
    assert answer.stderr.splitlines()[-1].endswith("No space left on device; make room and run the same line again")


def test_a_folder_that_may_not_be_read_is_named_in_one_line(untouched: Measured, cwd: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(untouched.store, tmp_path / "store"))
    rights = "-dac_override,-dac_read_search"
    drop = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"] if os.geteuid() == 0 else []
    if drop and subprocess.run([*drop, "true"], capture_output=True).returncode:
        pytest.skip("root that cannot give up the right to read everything")
    (store / "runs").chmod(0)
    words = [*drop, sys.executable, "-m", "rbpx", *QUESTIONS[0], "--store", str(store)]
    try:
        done = subprocess.run(words, cwd=cwd, env=command_environment({}), capture_output=True, text=True, timeout=120)
    finally:
        (store / "runs").chmod(0o755)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr == f"rbpx: {store / 'runs'}: Permission denied\n"
