"""`record`: a named study is run, and what it gives goes into its file, by its SQL and by nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from rbpx.cli.findings import write_findings
from rbpx.config.keys.output import StudyConfig
from rbpx.errors import RbpxError
from rbpx.store.sql import SqlLimits
from tests.support.commands import here
from tests.support.places import EXPERIMENTS

STUDY = "published_gpt2_wikipedia"


def findings(text: str) -> list[list[str]]:
    """The table at the end of a study's file, a list of cells a line."""
    block = text[text.index("# ---- findings") :].split("\n#\n")[1]
    return [line.removeprefix("# ").split() for line in block.strip().split("\n")]


def test_a_study_says_what_it_asks_and_carries_its_findings() -> None:
    studies = {path.stem: path.read_text() for path in EXPERIMENTS.glob("*.yaml")}
    studies = {name: text for name, text in studies.items() if "\n  result:" in text}
    wanted = {f"rbp_figure_{n}" for n in range(3, 10)} | {"rbp_table_1", "rbp_table_2", "error_entropy"}
    wanted |= {"baseline", "emergence_simulation", "distribution_check", "relative_gaps"}
    assert wanted <= set(studies), "every figure and table of the paper has its study"
    for name, text in studies.items():
        study = yaml.load(text, yaml.CSafeLoader)
        assert set(study["study"]) - {"would_change", "file"} == {"question", "grid", "published", "result"}, name
        assert study["analyses"], name
        assert text.count("# ---- findings") == 1, name
        assert f"experiment={name} ----" in text
        assert len(findings(text)) > 1, name
        assert max(map(len, text.split("\n"))) <= 125, name


def test_the_findings_are_the_numbers_of_the_published_table(cwd: Path, tmp_path: Path) -> None:
    """Table 2 of arXiv 2510.20387, GPT-2 on wikipedia; the study before them and its own file stay as they are."""
    source, output = EXPERIMENTS / f"{STUDY}.yaml", tmp_path / "study.yaml"
    before = source.read_text()
    words = ("record", f"experiment={STUDY}", "--output", output, "--store", tmp_path / "store")
    here(*words, cwd=cwd, check=0)
    written = output.read_text()
    table = findings(written)
    assert table[0] == ["law", "k", "slope", "r2", "lo", "hi", "status"]
    assert [row[1:4] for row in table[1:]] == [
        ["–", "-0.058", "0.965"],
        ["1", "-0.056", "0.983"],
        ["10", "-0.093", "0.982"],
        ["100", "-0.126", "0.979"],
        ["1000", "-0.123", "0.917"],
        ["10000", "0.09", "0.915"],
    ]
    assert yaml.safe_load(written) == yaml.safe_load(before)
    assert written[: written.index("# ---- findings")] == before[: before.index("# ---- findings")]
    assert source.read_text() == before


def test_a_place_that_will_not_do_and_no_study_are_refused_before_anything_is_read(cwd: Path, tmp_path: Path) -> None:
    for words, says in (
        ([f"experiment={STUDY}", "ties=mid"], "name a file for these with --output FILE"),
        (["model=ladder"], "record needs a named study"),
        ([f"experiment={STUDY}", "--output", "/no/such/folder/x.yaml"], "is in a folder that does not exist"),
        ([f"experiment={STUDY}", "--output", "."], "is a folder"),
    ):
        answer = here("record", *words, "--store", tmp_path / "store", cwd=cwd, check=2)
        assert len(answer.stderr.strip().splitlines()) == 1
        assert says in answer.stderr
        assert not (tmp_path / "store").exists()


ROW = {"run_id": "r1", "dataset": "d\nevil: 1", "text_hash": "0123456789", "y": 1.0}
LIMITS = SqlLimits()


def written(
    result: str | None, tmp_path: Path, *changes: str, limits: SqlLimits = LIMITS, rows: Sequence[Any] = (ROW,)
) -> str:
    source = tmp_path / "mine.yaml"
    source.write_text("study: {}\n")
    study = StudyConfig(name="mine", result=result)
    return write_findings(study, rows, source, str(tmp_path / "out.yaml"), changes, limits).read_text()


def test_a_name_with_line_breaks_stays_within_the_comment(tmp_path: Path) -> None:
    result = "SELECT dataset, concat('a', chr(13), 'b') AS \"x\ny\" FROM found"
    text = written(result, tmp_path, 'family="a\nevil: 1"', "size=\udcff")
    assert yaml.safe_load(text) == {"study": {}}
    block = text.removeprefix("study: {}\n\n")
    assert all(line.startswith("#") for line in block.split("\n")[:-1])
    assert block.count(r"d\nevil: 1") == 2, "in the line of texts, and in the table"
    assert r"a\rb" in block
    assert r"size=\udcff" in block


def test_what_was_asked_otherwise_stands_in_the_findings_and_again_they_are_the_same(tmp_path: Path) -> None:
    text = written("SELECT y FROM found", tmp_path, "k=1")
    assert "# with k=1\n" in text
    assert findings(text)[1] == ["1"]
    (tmp_path / "mine.yaml").write_text(text)
    study = StudyConfig(name="mine", result="SELECT y FROM found")
    write_findings(study, [ROW], tmp_path / "mine.yaml", None, ["k=1"], LIMITS)
    assert (tmp_path / "mine.yaml").read_text() == text


@pytest.mark.parametrize(
    ("result", "says"),
    [
        *((result, "takes one SELECT") for result in ("", None, "SELECT 1; SELECT 2")),
        ("SELECT nothing FROM found", "study.result is wrong"),
        ("SELECT * FROM read_csv('/etc/passwd')", "study.result is wrong"),
        ("SELECT y FROM found WHERE y > 1", "gives no rows"),
    ],
)
def test_a_result_is_one_select_of_what_was_found(result: str | None, says: str, tmp_path: Path) -> None:
    with pytest.raises(RbpxError, match=rf"experiment=mine.*{says}") as problem:
        written(result, tmp_path)
    assert "\n" not in str(problem.value)
    assert not (tmp_path / "out.yaml").exists()


def test_a_grid_without_an_answer_has_no_findings(tmp_path: Path) -> None:
    with pytest.raises(RbpxError, match="experiment=mine finds nothing on this grid"):
        written("SELECT 1 AS one", tmp_path, rows=[])
    assert not (tmp_path / "out.yaml").exists()


def test_a_result_ends(tmp_path: Path) -> None:
    endless = "SELECT max(a.range * b.range) FROM range(10000000) a, range(1000000) b"
    with pytest.raises(RbpxError, match=r"sql_timeout_s=0\.3"):
        written(endless, tmp_path, limits=SqlLimits(0.3))
