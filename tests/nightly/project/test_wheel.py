"""A wheel in an empty environment: it installs with its libraries alone, and runs the demo without a checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.places import PROJECT

PYTHONS = ("3.11", "3.12", "3.13")


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;~! ]", requirement)[0].lower() for requirement in requirements}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*words, "--wheel-dir", folder, PROJECT], check=True, capture_output=True, timeout=300)
    (built,) = folder.iterdir()
    return built


def python_of(version: str) -> str | None:
    """An interpreter of that version; one that a version manager lists but does not have does not start."""
    found = shutil.which(f"python{version}")
    return found if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0 else None


@pytest.mark.parametrize("version", PYTHONS)
def test_a_wheel_runs_the_demo_without_a_checkout(version: str, wheel: Path, tmp_path: Path) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "RBPX_STORE")}

    def done(*words: str | Path) -> str:
        ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=3600)
        assert ran.returncode == 0, ran.stderr[-2000:]
        return ran.stdout

    done(python, "-m", "venv", tmp_path / "venv")
    bin_ = tmp_path / "venv" / "bin"
    if subprocess.run([bin_ / "pip", "download", "-q", "--no-deps", "-d", tmp_path / "there", "rich"]).returncode:
        pytest.skip("no package index in reach")
    done(bin_ / "pip", "install", "-q", "--no-compile", "-c", PROJECT / "constraints.txt", "torch==2.13.0", wheel)
    listed = {each["name"].lower() for each in json.loads(done(bin_ / "pip", "list", "--format", "json"))}
    tools = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    assert listed & (names(tools) - {"psutil", "rbpx", "triton"}) == set()  # accelerate and torch ask for these too
    printed = done(bin_ / "rbpx", "-m", "model=ladder", "dataset=pydoc,stdlib")
    assert "ladder on pydoc" in printed
    assert "ladder on stdlib" in printed
    assert done(bin_ / "rbpx", "sql", "SELECT count(*) AS runs FROM runs", "--format", "csv").split() == ["runs", "14"]
