"""A question is one new folder: the documented steps in a copy of the project, seen wherever questions are."""

import csv
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

EXAMPLE = DOCS / "examples" / "typical"

FROM_PYTHON = """
import json, sys
import rbpx
answer = rbpx.open(sys.argv[1]).typical(ties="optimistic")
marks = [layer["mark"]["type"] for layer in answer.plot().to_dict()["layer"]]
print(json.dumps([answer.results[0].ranks, answer.records[0]["alpha"], rbpx.Measurements.typical.__doc__, marks]))
"""
REFERENCE = "import sys; sys.path.insert(0, sys.argv[1]); from ext.code import verbs; print(verbs())"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("questions") / "store", Truth(scatter=0.02), seed=5, n_documents=30).root


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """The project with one folder more."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    shutil.copytree(
        EXAMPLE, clone.root / "rbpx" / "questions" / "typical", ignore=shutil.ignore_patterns("__pycache__")
    )
    yield clone
    clone.close()


@pytest.fixture(scope="module")
def law(store: Path) -> tuple[list[float], float]:
    """Geometric means of the optimistic ranks by numpy, and the slope of the line through their logarithms."""
    ranks = [float(np.exp(np.log(tokens["greater"] + 1.0).mean())) for tokens in runs_by_size(store).values()]
    return ranks, -float(np.polyfit(np.log(list(Truth.S)), np.log(ranks), 1)[0])


def test_it_is_a_verb(copy: Clone, store: Path, law: tuple[list[float], float], tmp_path: Path) -> None:
    asked = ["typical", "ties=optimistic", "--store", store]
    (fit,) = json.loads(copy.rbpx(tmp_path, *asked, "--format", "json", "--details"))
    assert fit["params"]["y"] == pytest.approx(law[0], rel=1e-12)
    assert fit["alpha"] == pytest.approx(law[1], rel=1e-9)
    assert fit["alpha_lo"] < fit["alpha"] < fit["alpha_hi"]
    (row,) = csv.DictReader(copy.rbpx(tmp_path, *asked, "--format", "csv").splitlines())
    assert float(row["alpha"]) == fit["alpha"]
    printed = copy.rbpx(tmp_path, *asked)
    assert f"{law[1]:.4f}  {fit['alpha_lo']:.4f}..{fit['alpha_hi']:.4f}" in printed
    kept = json.loads(copy.rbpx(tmp_path, "sql", "FROM fits", "--store", store, "--format", "json"))
    assert [(row["law"], row["fit_id"]) for row in kept] == [("typical_rank", fit["fit_id"])]


def test_its_law_is_judged_as_any_law_in_size_is(copy: Clone, tmp_path: Path) -> None:
    """A largest model that is as bad as one of a hundredth of its size misses what the smaller ones announce of it."""
    small, large = Truth(S=Truth.S[:-1]), Truth(S=Truth.S[-1:], C=Truth.C * 100**Truth.alpha)
    for truth in (small, large):
        write_store(tmp_path / "store", truth, seed=5, n_documents=30)
    (fit,) = json.loads(
        copy.rbpx(tmp_path, "typical", "ties=optimistic", "--store", tmp_path / "store", "--format", "json")
    )
    assert abs(fit["backtest_error"]) > 0.19
    assert fit["status"] == fit["params"]["reasons"][0] != "ok"
    assert "backtest_failed" in fit["params"]["reasons"]


def test_it_has_every_format(copy: Clone, store: Path, law: tuple[list[float], float], tmp_path: Path) -> None:
    asked = ["typical", "ties=optimistic", "resamples=50", "--store", store, "--format"]
    for form, begins in (("md", "<!-- rbpx report"), ("tex", "% rbpx report"), ("html", "<!doctype html>")):
        text = copy.rbpx(tmp_path, *asked, form)
        assert text.lstrip().startswith(begins)
        assert f"{law[1]:.4f}" in text
    figure = tmp_path / "typical.svg"
    copy.rbpx(tmp_path, *asked, "svg", "--output", figure, "width=3.3", "font_size=8")
    assert "typical rank" in figure.read_text()


def test_it_is_in_the_help_and_in_completion(copy: Clone, tmp_path: Path) -> None:
    summary = "how the typical rank of the true token falls with size"
    assert f"typical     {summary}" in copy.rbpx(tmp_path, "--help")
    assert "geometric mean of the ranks" in copy.rbpx(tmp_path, "typical", "--help")
    assert " typical " in copy.rbpx(tmp_path, "completion", "bash")


def test_it_is_a_method_in_python(copy: Clone, store: Path, law: tuple[list[float], float], tmp_path: Path) -> None:
    ranks, alpha, lesson, marks = json.loads(copy.python(tmp_path, "-c", FROM_PYTHON, store))
    assert ranks == pytest.approx(law[0], rel=1e-12)
    assert alpha == pytest.approx(law[1], rel=1e-9)
    assert "geometric mean of the ranks" in lesson
    assert marks == ["area", "line", "point"]


def test_it_is_a_section_of_the_report(copy: Clone, store: Path, tmp_path: Path) -> None:
    asked = ["report", "k=1", "n=1", "resamples=20", "--store", store, "--output", tmp_path / "report.md"]
    copy.rbpx(tmp_path, *asked, "--format", "md")
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "The typical rank falls as S^−α" in page
    assert "exp of the mean of ln rank" in page


def test_it_is_in_the_documentation(copy: Clone, tmp_path: Path) -> None:
    assert "\n## typical\n" in copy.python(tmp_path, "-c", REFERENCE, PROJECT / "docs")
