"""Continuous integration does what the README tells a new user to type; each of its commands installs what it needs."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.demo import demo_command
from tests.support.places import PROJECT

INHERITED = {
    "MAKEFLAGS": "w",
    "MAKELEVEL": "1",
    "PYTHONPATH": "elsewhere",
    "RBPX_STORE": "elsewhere",
    "HF_HOME": "here",
}


def program(path: Path, does: str) -> None:
    """A command of this name."""
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)


def test_ci_types_the_commands_of_the_readme_first_and_in_a_clean_environment(tmp_path: Path) -> None:
    program(tmp_path / "chromium", "")  # is here, so that none is installed
    program(tmp_path / "make", f'echo "make $*" >> {tmp_path}/typed\nenv >> {tmp_path}/environment')
    environment = {**os.environ, **INHERITED, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run([PROJECT / ".ci" / "run"], env=environment, check=True, capture_output=True)
    typed = (tmp_path / "typed").read_text().splitlines()
    assert typed == ["make demo", "make test", "make --jobs=2 format types imports docs"]
    names = {line.partition("=")[0] for line in (tmp_path / "environment").read_text().splitlines()}
    assert not names & set(INHERITED)


def test_a_command_that_fails_ends_ci(tmp_path: Path) -> None:
    program(tmp_path / "chromium", "")
    program(tmp_path / "make", f'echo "make $*" >> {tmp_path}/typed\nexit 3')
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run([PROJECT / ".ci" / "run"], env=environment, capture_output=True).returncode == 3
    assert (tmp_path / "typed").read_text() == "make demo\n"


def test_the_demo_is_found_whatever_another_make_says_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAKEFLAGS", "MAKELEVEL"):
        monkeypatch.setenv(name, INHERITED[name])
    assert demo_command() == "python -m rbpx -m model=ladder dataset=pydoc,stdlib"


def recipe(target: str, venv: Path) -> str:
    """What a target would do where nothing is installed yet."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    words = ["make", "--dry-run", target, f"VENV={venv}"]
    return subprocess.run(words, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_target_installs_what_it_needs_and_no_more(tmp_path: Path) -> None:
    for target, with_tools in (("demo", False), ("studies", False), ("test", True), ("docs", True), ("nightly", True)):
        told = recipe(target, tmp_path / "venv")
        assert ("-e '.[dev]'" in told) is with_tools, target
        assert "-e .\n" in told, target


def test_what_a_change_has_to_pass_is_what_ci_runs_and_the_night_has_the_rest(tmp_path: Path) -> None:
    (tmp_path / ".tools").touch()
    tests, night = (recipe(target, tmp_path) for target in ("test", "nightly"))
    assert "pytest" in tests
    assert "nightly" not in tests
    assert "tests/nightly" in night
    assert [word for word in ("census", "mutate") if word in night] == [], "the census is a test of the night"
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"^(?:slow|durations|long|golden):", makefile, re.MULTILINE) == []
