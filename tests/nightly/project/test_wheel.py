"""A wheel away from the checkout finds what it needs; in an empty environment its libraries alone run the demo."""

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

KEPT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "RBPX_STORE")}


def done(*words: str | Path, cwd: Path, **environment: str) -> str:
    env = KEPT | environment
    ran = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=3600)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    words = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index")
    done(*words, "--wheel-dir", folder, PROJECT, cwd=folder)
    (built,) = folder.iterdir()
    return built


def test_an_installed_copy_finds_its_configuration_studies_and_models(wheel: Path, tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index")
    done(*pip, "--target", tmp_path / "site", wheel, cwd=tmp_path)
    (cwd := tmp_path / "cwd").mkdir()

    def rbpx(*words: str) -> str:
        command = (sys.executable, "-m", "rbpx", *words, "--store", str(tmp_path / "store"))
        return done(*command, cwd=cwd, PYTHONPATH=str(tmp_path / "site"))

    assert "family: ladder" in rbpx("dataset=pydoc", "--cfg", "job")
    rbpx("experiment=published_pythia_wikipedia")
    assert "12b" in rbpx("sql", "SELECT DISTINCT size FROM observations")
    rbpx("measure", "size=3k", "limit=1")
    rbpx("report", "k=1", "n=1", "resamples=20")
    assert [path.name for path in cwd.iterdir()] == ["report.html"]


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_wheel_runs_the_demo_without_a_checkout(version: str, wheel: Path, tmp_path: Path) -> None:
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode:
        pytest.skip(f"no Python {version} here")  # a version manager lists some that it does not have
    bin_ = tmp_path / "venv" / "bin"
    done(python, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    if subprocess.run([bin_ / "pip", "download", "-q", "--no-deps", "-d", tmp_path / "there", "rich"]).returncode:
        pytest.skip("no package index in reach")
    words = (bin_ / "pip", "install", "-q", "--no-compile", "-c", PROJECT / "constraints.txt")
    done(*words, "torch==2.13.0", wheel, cwd=tmp_path)
    listed = {each["name"].lower() for each in json.loads(done(bin_ / "pip", "list", "--format", "json", cwd=tmp_path))}
    tools = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    named = {re.split(r"[\[<>=;~! ]", each)[0].lower() for each in tools}
    assert listed & (named - {"psutil", "rbpx", "triton"}) == set()  # accelerate and torch ask for these too
    printed = done(bin_ / "rbpx", "-m", "model=ladder", "dataset=pydoc,stdlib", cwd=tmp_path)
    assert [text for text in ("ladder on pydoc", "ladder on stdlib") if text not in printed] == []
