"""`record` as whole commands: recorded twice, and what is wrong with a study's result or a place."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands import here
from tests.support.places import EXPERIMENTS

STUDY = "published_gpt2_wikipedia"


def record(store: Path, cwd: Path, output: Path, *words: str, check: int = 0) -> Any:
    return here("record", f"experiment={STUDY}", *words, "--output", output, "--store", store, cwd=cwd, check=check)


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
        (["study.result=null"], "takes one SELECT"),
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


def test_a_grid_without_an_answer_is_one_line_and_leaves_no_file(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    output = tmp_path / "study.yaml"
    words = ["experiment=relative_gaps", "dataset=pydoc", "size=3k", "limit=2"]
    answer = here("record", *words, "--output", output, "--store", own_store, cwd=cwd, check=2)
    assert "finds nothing on this grid" in answer.stderr
    assert not output.exists()
