"""What is no question, from Python: measure, report, export; and an answer printed as the verb prints it."""

import shutil
from pathlib import Path

import pytest

import rbpx
from rbpx.questions.registry import REMOVED
from tests.support.asking import refused
from tests.support.commands import here
from tests.support.stores import Family, cell_records, snapshot
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verbs") / "store"
    write_store(root, Truth(), seed=1, n_documents=20)
    return root


def test_a_printed_answer_is_the_table_of_the_verb_as_wide_as_the_terminal(
    store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = rbpx.open(store).fit(laws="rbp", k=[1, 10], resamples=25)
    assert repr(answer) == f"<Answer of fit: {len(answer.records)} rows; print() shows its table>"
    words, shown = ("laws=[rbp]", "k=[1,10]", "resamples=25"), []
    for columns in ("80", "160"):
        monkeypatch.setenv("COLUMNS", columns)
        printed = here("fit", *words, "--store", store, cwd=cwd, env={"COLUMNS": columns}, check=0).stdout
        print(answer)
        shown.append(capsys.readouterr().out)
        (*lines, more), (*typed, _) = shown[-1].splitlines(), printed.splitlines()
        assert (lines, more) == (typed, "More: .show(details=True).")
        assert str(answer) in shown[-1]
    assert shown[0] != shown[1]


def test_measuring_from_python_makes_cells_and_prints_nothing(
    family: Family, tmp_path: Path, capfd: pytest.CaptureFixture[str]
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
    assert {row["run_id"] for row in answer.records} == {cell["run_id"] for cell in cell_records(tmp_path / "store")}
    table = str(answer)
    assert all(row["size"] in table and f"{row['n_tokens']:,}" in table for row in answer.records)

    before = snapshot(tmp_path / "store")
    again = opened.measure(**keys)  # type: ignore[arg-type]
    assert again.records == answer.records
    assert [result.n_new for result in again.results] == [0]
    assert snapshot(tmp_path / "store") == before
    with pytest.raises(rbpx.RbpxError, match=r"nosuch\.jsonl is not a file"):
        opened.measure(**{**keys, "dataset.path": "nosuch.jsonl"})  # type: ignore[arg-type]
    broken = Path(shutil.copytree(family.folders["xs"], tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes((broken / "model.safetensors").read_bytes()[:2000])
    keys["model.id"] = [family.folders["xs"], broken]
    answer = opened.measure(**keys)  # type: ignore[arg-type]
    assert [row["state"] for row in answer.records] == ["done", "failed"]
    assert "mine broken on file failed: " in str(answer)
    with pytest.raises(rbpx.RbpxError, match="mine broken on file failed"):
        opened.measure(**{**keys, "model.id": [broken]})  # type: ignore[arg-type]
    with pytest.raises(rbpx.RbpxError, match="measure has no key limti; did you mean limit"):
        opened.measure(limti=3)  # type: ignore[call-arg]


def test_an_export_from_python_is_that_of_the_verb(store: Path, cwd: Path, tmp_path: Path) -> None:
    opened, query = rbpx.open(store), "SELECT size, n_tokens FROM runs ORDER BY size"
    assert opened.export(query, tmp_path / "a.json") == tmp_path / "a.json"
    here("export", query, "--output", tmp_path / "verb.json", "--store", store, cwd=cwd, check=0)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "verb.json").read_bytes()
    with pytest.raises(rbpx.RbpxError, match="does not say its format"):
        opened.export("runs", tmp_path / "a.txt")


def test_a_report_from_python_is_written_and_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store").mkdir()
    opened = rbpx.open(tmp_path / "store", create=True)
    own = opened.report(tmp_path / "own.md", k=1)
    assert (own, capfd.readouterr().out) == (tmp_path / "own.md", "")
    assert "This store holds no runs yet" in own.read_text()


@pytest.mark.parametrize("verb", [name for name in REMOVED if name.isidentifier()])
def test_a_question_that_is_gone_says_what_to_ask_in_its_place(verb: str, store: Path) -> None:
    with refused(f"{verb} is not asked any more", REMOVED[verb]):
        getattr(rbpx.open(store), verb)(k=10)
