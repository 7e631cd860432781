"""`plan`: a row a cell, without a hub; what is counted, estimated and unknown, held against real runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here
from tests.support.ladder import bundled_id
from tests.support.stores import Family, Measured


def plan(*words: object, cwd: Path, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    answer = here("plan", *words, "--format", "json", cwd=cwd, env=env, check=0)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of configuration with a text that lies on a hub."""
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "far.yaml").write_text("name: far\nkind: hub\n")
    return tmp_path / "conf"


def test_tokens_of_a_text_that_is_here_are_estimated(cwd: Path, tmp_path: Path) -> None:
    from rbpx.data.corpus import draw, read_pydoc
    from rbpx.models.folder import local_folder
    from rbpx.models.tokenizer import load_tokenizer

    rows = plan("model=ladder", "dataset=pydoc", "--store", tmp_path / "store", cwd=cwd)
    folder = local_folder(bundled_id("3k"))
    assert folder is not None
    tokenizer = load_tokenizer(folder, "3k")
    documents = draw(read_pydoc(), 1000, 42)
    truth = sum(min(512, len(tokenizer(document.text)["input_ids"])) - 1 for document in documents)
    assert {row["tokens_counted"] for row in rows} == {False}
    assert all(0.8 < row["tokens"] / truth < 1.25 for row in rows)
    stdout = here("plan", "model=ladder", "dataset=pydoc", "--store", tmp_path / "store", cwd=cwd, check=0).stdout
    assert f"~{rows[0]['tokens']:,}" in stdout


def test_a_calibrated_time_is_in_proportion_to_flops(cwd: Path, tmp_path: Path) -> None:
    words = (
        "model=pythia",
        "size=[70m,1b]",
        "dataset=pydoc",
        "calibrate=true",
        "device=cpu",
        "--store",
        tmp_path / "s",
    )
    small, large = plan(*words, cwd=cwd)
    assert small["time_from"] == large["time_from"] == "calibrate=true"
    assert large["time_s"] / small["time_s"] == pytest.approx(large["flops"] / small["flops"])
    assert 1e8 < small["flops"] / small["time_s"] < 1e15  # a computer
    assert not (tmp_path / "s").exists()


def test_a_cell_that_failed_says_why(cwd: Path, tmp_path: Path) -> None:
    words = ("model=gpt2", "size=gpt2", "dataset=pydoc", "limit=2", "--store", tmp_path / "store")
    here("measure", *words, cwd=cwd, check=1)
    (row,) = plan(*words, cwd=cwd)
    assert row["state"] == "failed"
    assert "hub" in row["error"]
    assert f"gpt2 gpt2 on pydoc failed: {row['error']}" in here("plan", *words, cwd=cwd, check=0).stdout


def test_a_run_of_a_text_that_is_gone_counts_as_done_by_its_names(
    elsewhere: Path, family: Family, cwd: Path, tmp_path: Path
) -> None:
    """The sample is not here any more, so no key can be computed; another sample is another cell."""
    (elsewhere / "dataset" / "far.yaml").write_text("name: far\nkind: hub\n")
    words = ["--config-dir", elsewhere, *family.words("xs")[:3], "dataset=far", "--store", tmp_path / "store"]
    here("measure", *words, f"dataset.path={family.text}", cwd=cwd, check=0)
    states = [plan(*words, *more, cwd=cwd)[0]["state"] for more in ((), ("limit=3",), ("protocol.window=32",))]
    assert states == ["done", "missing", "missing"]


def test_a_sweep_ends_with_one_table_that_fits_a_terminal(measured: Measured, cwd: Path) -> None:
    words = ["-m", "model=opt,gpt2", "dtype=float32,bfloat16", "tokens_per_batch=4096,512", "dataset=pydoc"]
    words += ["--store", measured.store]
    table_text = here("plan", *words, cwd=cwd, env={"COLUMNS": "80"}, check=0).stdout
    notes, _, table = table_text.partition("Times from")[0].partition("\n")
    assert "cells, 0 done" in notes
    assert table_text.count("What the grid would cost") == 1
    assert max(len(line) for line in table.splitlines()) <= 80
    headings = [line.strip() for line in table.splitlines() if re.match(r" \w+ on \w+", line)]
    assert headings == [f"{family} on pydoc{dtype}" for family in ("opt", "gpt2") for dtype in ("", ", bfloat16")]
    rows = plan(*words, cwd=cwd)
    assert len(rows) == 2 * (8 + 4), "a size of the batch makes no other cell"
    assert f"{sum(row['tokens'] for row in rows):,} tokens" in notes
    assert f"{sum(row['flops'] for row in rows):.1e} FLOPs" in notes
