"""A question is one new folder: the documented steps in a copy of the project, seen wherever questions are."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.clone import Clone
from tests.support.places import DOCS, PROJECT
from tests.support.stores import runs_by_size
from tests.support.synthetic import Truth, write_store

EXAMPLE = DOCS / "examples" / "medians"
PAGE = DOCS / "contributing" / "analysis.md"

FROM_PYTHON = """
import json, sys
import rbpx
answer = rbpx.open(sys.argv[1]).medians(ties="optimistic")
print(json.dumps([answer.results[0].medians, answer.records[0]["alpha"], rbpx.Measurements.medians.__doc__]))
"""
REFERENCE = "import sys; sys.path.insert(0, sys.argv[1]); from ext.code import verbs; print(verbs())"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("questions") / "store", Truth(scatter=0.02), seed=5, n_documents=30).root


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """The project with one folder more."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    shutil.copytree(EXAMPLE, clone.root / "rbpx" / "analyses" / "medians", ignore=shutil.ignore_patterns("__pycache__"))
    yield clone
    clone.close()


@pytest.fixture(scope="module")
def law(store: Path) -> tuple[list[float], float]:
    """Medians of the optimistic ranks by numpy, and the slope of the line through their logarithms."""
    medians = [float(np.median(tokens["greater"] + 1.0)) for tokens in runs_by_size(store).values()]
    return medians, -float(np.polyfit(np.log(list(Truth.S)), np.log(medians), 1)[0])


def test_it_is_a_verb(copy: Clone, store: Path, law: tuple[list[float], float], tmp_path: Path) -> None:
    asked = ["medians", "ties=optimistic", "--store", store]
    (fit,) = json.loads(copy.rbpx(tmp_path, *asked, "--format", "json"))
    assert fit["params"]["y"] == pytest.approx(law[0], rel=1e-12)
    assert fit["alpha"] == pytest.approx(law[1], rel=1e-9)
    printed = copy.rbpx(tmp_path, *asked)
    assert f"{law[1]:.4f}" in printed
    kept = json.loads(copy.rbpx(tmp_path, "sql", "FROM fits", "--store", store, "--format", "json"))
    assert [(row["law"], row["fit_id"]) for row in kept] == [("median_rank", fit["fit_id"])]


def test_it_is_in_the_help_and_in_completion(copy: Clone, tmp_path: Path) -> None:
    summary = "how the median rank of the true token falls with size"
    assert f"medians    {summary}" in copy.rbpx(tmp_path, "--help")
    assert "Half of all tokens" in copy.rbpx(tmp_path, "medians", "--help")
    assert " medians " in copy.rbpx(tmp_path, "completion", "bash")


def test_it_is_a_method_in_python(copy: Clone, store: Path, law: tuple[list[float], float], tmp_path: Path) -> None:
    medians, alpha, lesson = json.loads(copy.python(tmp_path, "-c", FROM_PYTHON, store))
    assert medians == pytest.approx(law[0], rel=1e-12)
    assert alpha == pytest.approx(law[1], rel=1e-9)
    assert "Half of all tokens" in lesson


def test_it_is_a_section_of_the_report(copy: Clone, store: Path, tmp_path: Path) -> None:
    asked = ["report", "k=1", "n=1", "resamples=20", "--store", store, "--output", tmp_path / "report.md"]
    copy.rbpx(tmp_path, *asked, "--format", "md")
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "The median rank" in page
    assert "Half of all tokens have a rank of at most the median." in page


def test_it_is_in_the_documentation(copy: Clone, tmp_path: Path) -> None:
    assert "\n## medians\n" in copy.python(tmp_path, "-c", REFERENCE, PROJECT / "docs")


def test_no_file_outside_of_its_folder_knows_it(copy: Clone) -> None:
    folder = copy.root / "rbpx" / "analyses" / "medians"
    files = [path for path in copy.root.rglob("*") if path.suffix in (".py", ".sql", ".yaml") and path.is_file()]
    assert [path for path in files if not path.is_relative_to(folder) and "medians" in path.read_text()] == []


def test_the_page_shows_its_files() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [path.name for path in EXAMPLE.glob("*.*") if f"../examples/medians/{path.name}" not in text]
    assert missing == []
