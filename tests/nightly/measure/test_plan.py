"""What a plan says of time and memory, beside what it costs."""

import json
from pathlib import Path

import pytest

from tests.support.commands import here


def test_a_calibrated_time_is_in_proportion_to_flops(cwd: Path, tmp_path: Path) -> None:
    words = ("model=pythia", "size=[14m,70m]", "dataset=pydoc", "calibrate=true", "device=cpu")
    answer = here("plan", *words, "--format", "json", "--store", tmp_path / "s", cwd=cwd, check=0)
    small, large = json.loads(answer.stdout)
    assert small["time_from"] == large["time_from"] == "calibrate=true"
    assert large["time_s"] / small["time_s"] == pytest.approx(large["flops"] / small["flops"])
    assert 1e8 < small["flops"] / small["time_s"] < 1e15  # a computer
    assert not (tmp_path / "s").exists()
