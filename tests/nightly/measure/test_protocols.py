"""Laws of runs of the authors' protocol count ties as they do."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.authors import THEIRS
from tests.support.commands import here


def test_laws_of_official_runs_count_ties_optimistically_unless_asked_otherwise(
    tmp_path: Path, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path
) -> None:
    ids = ",".join(str(tiny_checkpoint("gpt2", context=THEIRS, twins=8, hidden_size=d)) for d in (8, 16, 24))
    words = ["model=hub", f"model.id=[{ids}]", "model.family=mine", "dataset=file", f"dataset.path={tiny_jsonl}"]
    store = f"store={tmp_path / 's'}"
    here("measure", "-m", *words, "protocol=paper,official", store, cwd=cwd, check=0)
    for more, rules in (((), {"paper": "pessimistic", "official": "optimistic"}), (("ties=mid",), None)):
        asked = ("fit", "laws=[rbp]", "k=[1]", "resamples=20", store, "--format", "json", "--details", *more)
        rows = json.loads(here(*asked, cwd=cwd, check=0).stdout)
        assert {row["protocol"]: row["ties"] for row in rows} == (rules or {"paper": "mid", "official": "mid"})
