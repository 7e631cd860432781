"""An installed copy, away from the checkout, finds its configuration, its studies and its models."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.places import PROJECT


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the project, as it would into site-packages."""
    site = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*words, "--target", site, PROJECT], check=True, capture_output=True, timeout=300)
    return site


def run(site: Path, cwd: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-m", "rbpx", *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_copy_composes_from_any_working_directory(installed: Path, tmp_path: Path) -> None:
    code = "import rbpx; print(rbpx.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert Path(found.stdout.strip()).is_relative_to(installed)
    config = yaml.safe_load(run(installed, tmp_path, "dataset=pydoc", "--cfg", "job"))
    assert config["model"]["family"] == "ladder"
    assert config["dataset"]["kind"] == "pydoc"
    assert list(tmp_path.iterdir()) == []


def test_an_installed_copy_knows_its_studies_and_families(installed: Path, tmp_path: Path) -> None:
    page = run(installed, tmp_path, "--help")
    assert "hub, ladder" in page
    assert "experiment=NAME   attempts, attempts_sampled, baseline, closure, " in page


def test_an_installed_copy_writes_a_page(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    run(installed, tmp_path, "report", "--store", str(tmp_path / "store"))
    assert "This store holds no runs yet" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_installed_copy_brings_in_the_published_figures(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, "experiment=published_pythia_wikipedia", "--store", str(tmp_path / "store"))
    sizes = run(
        installed, tmp_path, "sql", "SELECT DISTINCT size FROM observations", "--store", str(tmp_path / "store")
    )
    assert "12b" in sizes
