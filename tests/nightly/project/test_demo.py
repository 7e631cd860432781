"""The demo, as `make demo` fills its store: pages show what it prints, studies find on it what their files say."""

import re
import sys
from pathlib import Path

import nbformat
import pytest

from docs.retell import execute, told
from tests.support.demo import run, run_demo
from tests.support.places import DOCS, EXPERIMENTS, PROJECT
from tests.support.shown import compare_with_shown, of_many

PAGES = (PROJECT / "README.md", DOCS / "tutorial.md")
NOTEBOOK = DOCS / "example.ipynb"
SHOWN = [pair for page in PAGES for pair in told(page.read_text(encoding="utf-8")) if not of_many(pair[0])]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The store that `make demo` fills, and what it printed."""
    return run_demo(tmp_path_factory.mktemp("demo"))


def test_a_second_demo_measures_nothing_and_prints_the_same(demo: tuple[Path, str]) -> None:
    store, printed = demo
    files = {path: path.stat().st_mtime_ns for path in (store / "runs").rglob("*")}
    again = run([sys.executable, "-m", "rbpx", "-m", "model=ladder", "dataset=pydoc,stdlib"], store.parent, store)
    assert again.returncode == 0
    assert again.stdout == printed
    assert again.stderr == ""
    assert {path: path.stat().st_mtime_ns for path in (store / "runs").rglob("*")} == files


@pytest.mark.parametrize(("commands", "shown"), SHOWN, ids=lambda it: it[0])
def test_readme_and_tutorial_show_what_their_commands_print(
    commands: list[str], shown: str, demo: tuple[Path, str], cwd: Path
) -> None:
    compare_with_shown(commands, shown, demo[0], cwd, {})


def test_the_example_notebook_runs_on_the_demo(demo: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    kept, fresh = nbformat.read(NOTEBOOK, as_version=4), execute(NOTEBOOK, demo[0].parent)
    assert [cell.source for cell in kept.cells] == [cell.source for cell in fresh.cells]
    kinds = [
        [output.output_type for cell in book.cells for output in cell.get("outputs", [])] for book in (kept, fresh)
    ]
    assert kinds[0] == kinds[1]
    assert "error" not in kinds[0]
    pictures = [output.data for cell in fresh.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("image/svg+xml" in data for data in pictures)


# ----------------------------------------------------------------------------------------------------------- studies


def of_the_ladder(path: Path) -> bool:
    return "override /model: ladder" in path.read_text() and "\n  result:" in path.read_text()


def of_the_grid(path: Path) -> bool:
    """Whether a study measures more than the demo, checkpoints, other seeds or tasks: many minutes."""
    text = path.read_text()
    return any(words in text for words in ("model: {revision: ", "override /model: ladder-seeds", "dataset: python_"))


STUDIES = [path for path in sorted(EXPERIMENTS.glob("*.yaml")) if of_the_ladder(path)]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_findings_in_a_study_are_those_of_a_new_run(path: Path, demo: tuple[Path, str], tmp_path: Path) -> None:
    (kept, texts), (new, new_texts) = findings(path), findings(record(path, demo[0], tmp_path))
    assert kept[0] == new[0]
    if texts != new_texts:
        pytest.skip("this Python carries other texts than the one that the findings were recorded with: other digits")
    assert_same(kept, new)


def record(path: Path, store: Path, folder: Path) -> Path:
    """A copy of the study with the findings of now."""
    (folder / "cwd").mkdir()
    own = [] if of_the_grid(path) else ["model=ladder"]
    words = ["record", f"experiment={path.stem}", *own, "--output", str(folder / path.name)]
    done = run([sys.executable, "-m", "rbpx", *words], folder / "cwd", store)
    assert done.returncode == 0, done.stderr
    return folder / path.name


def assert_same(kept: list[list[str]], new: list[list[str]]) -> None:
    assert len(kept) == len(new)
    for line, fresh in zip(kept, new, strict=True):
        for cell, other in zip(line, fresh, strict=True):
            if re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell) and re.fullmatch(r"-?[\d.]+(e-?\d+)?", other):
                decimals = len(cell.partition("e")[0].partition(".")[2])
                turned = 1.01 * 10.0**-decimals if decimals else 0.0  # the last digit, where it was rounded
                assert float(other) == pytest.approx(float(cell), rel=0.02, abs=max(2e-3, turned))
            else:
                assert other == cell


def findings(path: Path) -> tuple[list[list[str]], str]:
    """The table at the end of a study's file, and the line that says which texts it is of."""
    text = path.read_text()
    head, table = text[text.index("# ---- findings") :].split("\n#\n")
    (texts,) = [line for line in head.split("\n") if line.startswith("# texts: ")]
    return [line.removeprefix("# ").split() for line in table.strip().split("\n")], texts
