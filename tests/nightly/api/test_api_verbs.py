"""What is no question, from Python: measure, report and export; and an answer printed as the verb prints it."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import rbpx
from tests.support.commands import here
from tests.support.stores import Family, cell_records, snapshot
from tests.support.synthetic import Truth, write_store

ASKED = {"laws": "rbp", "k": [1, 10], "resamples": 25}
WORDS = ("laws=[rbp]", "k=[1,10]", "resamples=25")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verbs") / "store"
    write_store(root, Truth(), seed=1, n_documents=20)
    return root


@pytest.mark.parametrize("columns", [80, 160])
def test_a_printed_answer_is_the_table_of_the_verb_as_wide_as_the_terminal(
    columns: int, store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    answer = rbpx.open(store).fit(**ASKED)  # type: ignore[arg-type]
    printed = here("fit", *WORDS, "--store", store, cwd=cwd, env={"COLUMNS": str(columns)}, check=0).stdout
    print(answer)
    shown = capsys.readouterr().out
    assert shown.rstrip("\n") == printed.rstrip("\n")
    assert str(answer) in shown
    assert repr(answer) == f"<Answer of fit: {len(answer.records)} rows; print() shows its table>"


def test_measuring_from_python_makes_the_cells_of_the_verb_and_prints_nothing(
    family: Family, cwd: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = {
        "model": "hub",
        "model.id": [family.folders[size] for size in ("s", "xs")],
        "model.family": "mine",
        "dataset": "file",
        "dataset.path": family.text,
        "limit": 4,
    }
    opened = rbpx.open(tmp_path / "store", create=True)
    answer = opened.measure(**keys)  # type: ignore[arg-type]
    assert capfd.readouterr() == ("", "")
    assert [(row["size"], row["state"]) for row in answer.records] == [("xs", "done"), ("s", "done")]
    assert sum(result.n_new for result in answer.results) == 2
    here("measure", *family.words("xs", "s"), "limit=4", "--store", tmp_path / "verb", cwd=cwd, check=0)
    keys_of_cells = [sorted(cell["cell_key"] for cell in cell_records(tmp_path / name)) for name in ("store", "verb")]
    assert keys_of_cells[0] == keys_of_cells[1]
    assert {row["run_id"] for row in answer.records} == {cell["run_id"] for cell in cell_records(tmp_path / "verb")}
    table = str(answer)
    assert all(row["size"] in table and f"{row['n_tokens']:,}" in table for row in answer.records)

    before = snapshot(tmp_path / "store")
    again = opened.measure(**keys)  # type: ignore[arg-type]
    assert again.records == answer.records
    assert [result.n_new for result in again.results] == [0]
    assert snapshot(tmp_path / "store") == before


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
    without_time = [[line for line in each.read_text().splitlines() if " UTC" not in line] for each in (path, verb)]
    assert without_time[0] == without_time[1]
    (tmp_path / "mine.md").write_text("my own notes")
    with pytest.raises(rbpx.RbpxError, match="exists and is not a report"):
        rbpx.open(store).report(tmp_path / "mine.md")


def test_an_export_from_python_is_that_of_the_verb(store: Path, cwd: Path, tmp_path: Path) -> None:
    opened, query = rbpx.open(store), "SELECT size, n_tokens FROM runs ORDER BY size"
    assert opened.export("runs", tmp_path / "runs.parquet") == tmp_path / "runs.parquet"
    assert pq.read_table(tmp_path / "runs.parquet").num_rows == 5
    for name in ("a.csv", "a.json"):
        opened.export(query, tmp_path / name)
        here("export", query, "--output", tmp_path / f"verb-{name}", "--store", store, cwd=cwd, check=0)
        assert (tmp_path / name).read_bytes() == (tmp_path / f"verb-{name}").read_bytes()
    assert len(json.loads((tmp_path / "a.json").read_text())) == len(list(csv.reader((tmp_path / "a.csv").open()))) - 1
    for what, output, says in (
        ("nosuch", "a.csv", "nosuch is not a relation"),
        ("runs", "a.txt", "does not say its format"),
        ("DROP TABLE runs", "a.csv", "one SELECT"),
    ):
        with pytest.raises(rbpx.RbpxError, match=says):
            opened.export(what, tmp_path / output)
