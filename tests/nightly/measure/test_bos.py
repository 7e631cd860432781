"""Which special tokens begin a text: what is read and scored under each policy, and which runs are the same."""

import json
from pathlib import Path

from tests.support.commands import here
from tests.support.stores import Family


def test_runs_with_and_without_a_bos_never_enter_one_fit(family: Family, own_store: Path, cwd: Path) -> None:
    here("measure", *family.words(), "model.bos=add", f"store={own_store}", cwd=cwd, check=0)
    words = ("fit", "laws=[cross_entropy]", f"store={own_store}", "resamples=20")
    rows = json.loads(here(*words, "--format", "json", "--details", cwd=cwd, check=0).stdout)
    assert {row["bos"]: row["n_points"] for row in rows} == {"tokenizer": 4, "add": 4}
    assert not set(rows[0]["run_ids"]) & set(rows[1]["run_ids"])
    titles = [line.strip() for line in here(*words, cwd=cwd, check=0).stdout.splitlines()]
    assert {"mine on file, window 64", "mine on file, window 64, bos add"} <= set(titles)
