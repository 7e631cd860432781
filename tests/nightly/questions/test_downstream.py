"""The whole published ladder of tasks in two steps, by its study."""

import csv
import json
from pathlib import Path

import pytest

from rbpx.config.folders import folder
from tests.support.commands import here


def test_the_published_ladder_comes_out_as_published(tmp_path: Path, cwd: Path) -> None:
    words = ("experiment=published_olmo_ladder", "resamples=50", "--store", tmp_path / "s", "--format", "json")
    rows = [row for row in json.loads(here(*words, cwd=cwd, check=0).stdout) if row["kind"] == "prediction"]
    found = {(row["task"], row["feature"]): row for row in rows if row["size"] == "peteish13_eval_final"}
    with (folder("experiments") / "published" / "olmo_ladder_published.csv").open() as file:
        published = list(csv.DictReader(file))
    assert len(published) == len(found) == 8
    for theirs in published:
        task = theirs["task"].removesuffix("_loss_nats")
        row = found[task, "cross_entropy" if task == "c4" else "bits_per_byte"]
        assert (row["S"], row["D"]) == (13202396160, 5000088518656)
        assert row["step1_predicted"] == pytest.approx(float(theirs["step1_bpb_predicted"]), abs=1e-6)
        assert row["step1_actual"] == pytest.approx(float(theirs["step1_bpb_actual"]), abs=1e-9)
        if task == "c4":
            assert row["step2_predicted"] is row["chained_predicted"] is row["actual"] is None
            continue
        assert row["step2_predicted"] == pytest.approx(float(theirs["step2_accuracy_predicted"]), abs=1e-5)
        assert row["chained_predicted"] == pytest.approx(float(theirs["chained_accuracy_predicted"]), abs=1e-5)
        assert row["actual"] == pytest.approx(float(theirs["accuracy_actual"]), abs=1e-9)
        assert row["chained_predicted_lo"] < row["chained_predicted"] < row["chained_predicted_hi"]
        assert row["status"] != "ok"  # ten times as large as any model that was fitted
