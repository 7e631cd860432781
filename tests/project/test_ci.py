"""Continuous integration does what the README tells a new user to type; each of its commands installs what it needs."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.places import PROJECT

INHERITED = dict.fromkeys(("MAKEFLAGS", "PYTHONPATH", "RBPX_STORE", "HF_HOME"), "elsewhere")


@pytest.mark.parametrize(
    ("status", "typed"),
    [(0, ["make demo", "make test", "make --jobs=2 format types imports docs"]), (3, ["make demo"])],
)
def test_ci_types_the_commands_of_the_readme_in_a_clean_environment_and_ends_with_the_first_that_fails(
    status: int, typed: list[str], tmp_path: Path
) -> None:
    does = f'echo "make $*" >> {tmp_path}/typed\nenv >> {tmp_path}/environment\nexit {status}'
    for name, script in (("chromium", ""), ("make", does)):  # a browser is here, so that none is installed
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, **INHERITED, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run([PROJECT / ".ci" / "run"], env=environment, capture_output=True).returncode == status
    assert (tmp_path / "typed").read_text().splitlines() == typed
    names = {line.partition("=")[0] for line in (tmp_path / "environment").read_text().splitlines()}
    assert not names & set(INHERITED)


@pytest.mark.parametrize(
    ("target", "with_tools"), [("demo", False), ("studies", False), ("test", True), ("docs", True), ("nightly", True)]
)
def test_a_target_installs_what_it_needs_and_no_more(target: str, with_tools: bool, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    words = ["make", "--dry-run", target, f"VENV={tmp_path / 'venv'}"]
    told = subprocess.run(words, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True).stdout
    assert ("-e '.[dev]'" in told) is with_tools
    assert "-e .\n" in told
