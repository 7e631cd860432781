"""`shard=3/16`: the parts of a grid are disjoint, together all of it, alike on every machine, and balanced by cost."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.stores import Family, cell_records, run_folders


def test_the_lines_of_a_plan_measure_the_grid_together(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = ("-m", *family.words("xs", "s"), "limit=3,5", "--store", tmp_path / "store")
    answer = here("plan", *words, "shard=3", "--format", "jobs", cwd=cwd, check=0)
    lines = [shlex.split(line) for line in answer.stdout.splitlines()]
    assert [line[:4] for line in lines] == [["python", "-m", "rbpx", "measure"]] * 3
    assert [line[-1] for line in lines] == ["shard=1/3", "shard=2/3", "shard=3/3"]
    assert "sbatch --array=1-3" in answer.stderr
    assert "JOB_COMPLETION_INDEX + 1))/3" in answer.stderr
    keys: list[set[str]] = []
    for line in lines:
        here(*line[3:], cwd=cwd, check=0)
        keys.append({record["cell_key"] for record in cell_records(tmp_path / "store")})
    assert [len(each) for each in keys] in ([1, 2, 4], [1, 3, 4], [2, 3, 4])
    assert len(run_folders(tmp_path / "store")) == 4
    rows = json.loads(here("status", *words, "--format", "json", cwd=cwd, check=0).stdout)
    assert [row["state"] for row in rows] == ["done"] * 4
    shard = json.loads(here("status", *words, "shard=2/3", "--format", "json", cwd=cwd, check=0).stdout)
    assert {row["cell_key"] for row in shard} == keys[1] - keys[0]
    assert all("shard" not in str(record["config"]["shard"]) for record in cell_records(tmp_path / "store"))
    shutil.rmtree(tmp_path / "store")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("measure", "shard=third"), "shard=third is not a part of a grid"),
        (("run", "shard=1/3"), "run has no key shard; it is a key of other verbs"),
        (("measure", "--format", "jobs"), "measure has no key format"),
        (("status", "--format", "jobs"), "format=jobs is of a plan"),
    ],
)
def test_a_shard_that_is_none_is_refused(words: tuple[str, ...], told: str, cwd: Path, tmp_path: Path) -> None:
    answer = here(*words, "--store", tmp_path / "store", cwd=cwd, check=2)
    assert told in answer.stderr
    assert answer.stdout == ""
    assert not (tmp_path / "store").exists()
