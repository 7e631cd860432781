"""`record`: a named study is run, and what it gives goes into its file, by its SQL and by nothing else."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rbpx.cli.findings import write_findings
from rbpx.config.keys.shown import StudyConfig
from rbpx.errors import RbpxError
from rbpx.store.sql.bounded import SqlLimits
from tests.support.commands import here
from tests.support.places import EXPERIMENTS

STUDIES = [path for path in sorted(EXPERIMENTS.glob("*.yaml")) if "\n  result:" in path.read_text()]
STUDY = "published_gpt2_wikipedia"


def findings(text: str) -> list[list[str]]:
    """The table at the end of a study's file, a list of cells a line."""
    block = text[text.index("# ---- findings") :].split("\n#\n")[1]
    return [line.removeprefix("# ").split() for line in block.strip().split("\n")]


def record(store: Path, cwd: Path, output: Path, *words: str, check: int = 0) -> Any:
    return here("record", f"experiment={STUDY}", *words, "--output", output, "--store", store, cwd=cwd, check=check)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_says_what_it_asks_and_carries_its_findings(path: Path) -> None:
    study = yaml.safe_load(path.read_text())
    assert set(study["study"]) - {"would_change", "file"} == {"question", "grid", "published", "result"}
    assert study["analyses"]
    assert path.read_text().count("# ---- findings") == 1
    assert f"experiment={path.stem} ----" in path.read_text()
    assert len(findings(path.read_text())) > 1
    assert max(map(len, path.read_text().split("\n"))) <= 125


def test_every_figure_and_table_of_the_paper_has_its_study() -> None:
    wanted = {f"rbp_figure_{n}" for n in range(3, 10)} | {"rbp_table_1", "rbp_table_2", "error_entropy"}
    wanted |= {"baseline", "emergence_simulation", "distribution_check", "relative_gaps"}
    assert wanted <= {path.stem for path in STUDIES}


def test_the_findings_are_the_numbers_of_the_published_table(cwd: Path, tmp_path: Path) -> None:
    record(tmp_path / "store", cwd, tmp_path / "study.yaml")
    table = findings((tmp_path / "study.yaml").read_text())
    assert table[0] == ["law", "k", "slope", "r2", "lo", "hi", "status"]
    assert [row[1:4] for row in table[1:]] == [
        ["–", "-0.058", "0.965"],
        ["1", "-0.056", "0.983"],
        ["10", "-0.093", "0.982"],
        ["100", "-0.126", "0.979"],
        ["1000", "-0.123", "0.917"],
        ["10000", "0.09", "0.915"],
    ]


def test_recorded_again_a_file_is_the_same_and_the_study_before_it_untouched(cwd: Path, tmp_path: Path) -> None:
    source = EXPERIMENTS / f"{STUDY}.yaml"
    before = source.read_text()
    for name in ("one.yaml", "two.yaml"):
        record(tmp_path / "store", cwd, tmp_path / name)
    one = (tmp_path / "one.yaml").read_text()
    assert one == (tmp_path / "two.yaml").read_text()
    assert yaml.safe_load(one) == yaml.safe_load(before)
    assert one[: one.index("# ---- findings")] == before[: before.index("# ---- findings")]
    assert source.read_text() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["study.result='SELECT nothing FROM found'"], "study.result is wrong"),
        (["study.result=\"SELECT * FROM read_csv('/etc/passwd')\""], "study.result is wrong"),
        (["study.result=null"], "names no result"),
    ],
)
def test_a_wrong_result_is_one_line_and_writes_nothing(words: list[str], says: str, cwd: Path, tmp_path: Path) -> None:
    answer = record(tmp_path / "store", cwd, tmp_path / "study.yaml", *words, check=2)
    problems = [line for line in answer.stderr.splitlines() if line.startswith("rbpx:")]
    assert len(problems) == 1
    assert says in problems[0]
    assert not (tmp_path / "study.yaml").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ties=mid"], "name a file for these with --output FILE"),
        (["--output", "/no/such/folder/x.yaml"], "is in a folder that does not exist"),
        (["--output", "."], "is a folder"),
    ],
)
def test_a_place_that_will_not_do_is_refused_before_anything_is_read(
    words: list[str], says: str, cwd: Path, tmp_path: Path
) -> None:
    answer = here("record", f"experiment={STUDY}", *words, "--store", tmp_path / "store", cwd=cwd, check=2)
    assert len(answer.stderr.strip().splitlines()) == 1
    assert says in answer.stderr
    assert not (tmp_path / "store").exists()


def test_what_was_asked_otherwise_stands_in_the_findings(cwd: Path, tmp_path: Path) -> None:
    record(tmp_path / "store", cwd, tmp_path / "study.yaml", "k=1")
    text = (tmp_path / "study.yaml").read_text()
    assert "# with k=1\n" in text
    assert [row[1] for row in findings(text)[1:]] == ["–", "1"]


def test_a_grid_without_an_answer_is_one_line_and_leaves_no_file(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    output = tmp_path / "study.yaml"
    words = ["experiment=relative_gaps", "dataset=pydoc", "size=3k", "limit=2"]
    answer = here("record", *words, "--output", output, "--store", own_store, cwd=cwd, check=2)
    assert "finds nothing on this grid" in answer.stderr
    assert not output.exists()


def test_record_needs_a_study(own_store: Path, cwd: Path) -> None:
    answer = here("record", "model=ladder", "--store", own_store, cwd=cwd, check=2)
    assert "record needs a named study" in answer.stderr


ROW = {"run_id": "r1", "dataset": "d\nevil: 1", "text_hash": "0123456789", "y": 1.0}


def written(result: str, tmp_path: Path, *changes: str, limits: SqlLimits = SqlLimits()) -> str:  # noqa: B008
    source = tmp_path / "mine.yaml"
    source.write_text("study: {}\n")
    study = StudyConfig(name="mine", result=result)
    return write_findings(study, [ROW], source, str(tmp_path / "out.yaml"), changes, limits).read_text()


def test_a_name_with_line_breaks_stays_within_the_comment(tmp_path: Path) -> None:
    result = "SELECT dataset, concat('a', chr(13), 'b') AS \"x\ny\" FROM found"
    text = written(result, tmp_path, 'family="a\nevil: 1"', "size=\udcff")
    assert yaml.safe_load(text) == {"study": {}}
    block = text.removeprefix("study: {}\n\n")
    assert all(line.startswith("#") for line in block.split("\n")[:-1])
    assert block.count(r"d\nevil: 1") == 2, "in the line of texts, and in the table"
    assert r"a\rb" in block
    assert r"size=\udcff" in block


@pytest.mark.parametrize("result", ["", "SELECT 1; SELECT 2", "CREATE TABLE x AS SELECT 1", "SET threads = 1"])
def test_a_result_is_one_select(result: str, tmp_path: Path) -> None:
    with pytest.raises(RbpxError, match=r"experiment=mine: its study\.result is not one SELECT"):
        written(result, tmp_path)
    assert not (tmp_path / "out.yaml").exists()


@pytest.mark.parametrize(
    ("result", "limits", "told"),
    [
        ("SELECT max(a.range * b.range) FROM range(10000000) a, range(1000000) b", SqlLimits(0.3), "sql_timeout_s=0.3"),
        ("SELECT list(range) AS x FROM range(100000000)", SqlLimits(60, 64), "Out of Memory"),
    ],
)
def test_a_result_ends(result: str, limits: SqlLimits, told: str, tmp_path: Path) -> None:
    with pytest.raises(RbpxError, match=told):
        written(result, tmp_path, limits=limits)
