"""From Python: a grid of which a cell fails, and a report."""

from pathlib import Path

import pytest

import rbpx
from tests.support.commands import here
from tests.support.stores import Family
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verbs") / "store"
    write_store(root, Truth(), seed=1, n_documents=20)
    return root


def test_a_cell_that_fails_is_a_row_and_a_grid_that_fails_is_an_error(family: Family, tmp_path: Path) -> None:
    opened = rbpx.open(tmp_path / "store", create=True)
    text = {"dataset": "file", "dataset.path": family.text, "limit": 2, "model": "hub", "model.family": "mine"}
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in family.folders["m"].iterdir():
        (broken / path.name).write_bytes(path.read_bytes()[: 2000 if path.suffix == ".safetensors" else None])
    answer = opened.measure(**text, **{"model.id": [family.folders["xs"], broken]})  # type: ignore[arg-type]
    assert [row["state"] for row in answer.records] == ["done", "failed"]
    assert "mine broken on file failed: " in str(answer)
    with pytest.raises(rbpx.RbpxError, match="mine broken on file failed"):
        opened.measure(**text, **{"model.id": [broken]})  # type: ignore[arg-type]
    with pytest.raises(rbpx.RbpxError, match=r"nosuch\.jsonl is not a file"):
        opened.measure(**{**text, "dataset.path": "nosuch.jsonl", "model.id": [broken]})  # type: ignore[arg-type]
    with pytest.raises(rbpx.RbpxError, match="measure has no key limti; did you mean limit"):
        opened.measure(limti=3)  # type: ignore[call-arg]


def test_a_report_from_python_is_that_of_the_verb(
    store: Path, cwd: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = rbpx.open(store).report(tmp_path / "own.md", k=1, n=1, resamples=20)
    assert path == tmp_path / "own.md"
    assert capfd.readouterr().out == ""
    verb = tmp_path / "verb.md"
    here("report", "k=1", "n=1", "resamples=20", "--output", verb, "--store", store, cwd=cwd, check=0)
    lines = [each.read_text().splitlines() for each in (path, verb)]  # advice is in the words of whoever asks
    same = [[line for line in of if " UTC" not in line and "not drawn" not in line] for of in lines]
    assert same[0] == same[1]
    (tmp_path / "mine.md").write_text("my own notes")
    with pytest.raises(rbpx.RbpxError, match="exists and is not a report of rbpx"):
        rbpx.open(store).report(tmp_path / "mine.md")
