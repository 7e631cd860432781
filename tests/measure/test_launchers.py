"""Sweeps: models loaded once, cells counted over all jobs, a text that is wrong."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here
from tests.support.stores import Family, cell_records, run_folders


def test_a_sweep_of_jobs_with_processes_of_their_own_counts_the_cells_of_all(
    family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "rbpx.cli.messages.show_messages_of_job", lambda: None
    )  # one job at a time runs in this process
    words = [*family.words("xs"), "limit=2,3", "hydra/launcher=joblib", "hydra.launcher.n_jobs=1"]
    answer = here("measure", "-m", *words, "--store", tmp_path / "store", cwd=cwd, check=0)
    assert re.findall(r"^\[(.*)\] mine", answer.stderr, re.MULTILINE) == ["1/2", "2/2"]


def test_a_model_is_loaded_once_for_all_texts_of_a_sweep(
    family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rbpx.models import load as module

    loaded: list[str] = []
    plain = module.load_model

    def load(name: str, *more: Any) -> module.LoadedModel:
        loaded.append(Path(name).name)
        return plain(name, *more)

    monkeypatch.setattr(module, "load_model", load)
    words = [word for word in family.words("xs", "s") if not word.startswith("dataset")]
    store = ("--store", tmp_path / "store")
    here("measure", "-m", *words, "dataset=pydoc,stdlib", "limit=2", *store, cwd=cwd, check=0)
    assert loaded == ["xs", "s"]
    assert len(run_folders(tmp_path / "store")) == 4


def test_a_text_that_is_wrong_does_not_stop_the_others_of_a_sweep(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = [word for word in family.words("xs") if not word.startswith("dataset")]
    store = ("--store", tmp_path / "store")
    answer = here("measure", "-m", *words, "dataset=file,pydoc", "limit=2", *store, cwd=cwd, check=1)
    assert [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")] == [
        "rbpx: dataset=file needs dataset.path=FILE, a text, JSONL, CSV or Parquet file"
    ]
    assert [cell["dataset"] for cell in cell_records(tmp_path / "store")] == ["pydoc"]
