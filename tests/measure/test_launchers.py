"""Sweeps: models loaded once, jobs side by side under the launchers, one that fails, one that is killed."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here
from tests.support.stores import Family

LAUNCHERS = {
    "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
    "submitit": ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"],
}


def runs(store: Path, cwd: Path, *more: str) -> set[tuple[str, ...]]:
    """Size, dataset, run_id, and more columns, of each run."""
    query = f"SELECT {', '.join(('size', 'dataset', 'run_id', *more))} FROM runs"
    answer = here("sql", query, "--store", store, "--format", "json", cwd=cwd, check=0)
    return {tuple(row.values()) for row in json.loads(answer.stdout)}


def break_one(family: Family, tmp_path: Path) -> tuple[list[str], Path]:
    """The words of a family whose model `m` lost its weights, and the file to bring back."""
    folder = tmp_path / "m"
    folder.mkdir()
    for path in family.folders["m"].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    weights = folder / "model.safetensors"
    raw = weights.read_bytes()
    weights.write_bytes(raw[: len(raw) // 2])
    ids = ",".join(str(folder if size == "m" else family.folders[size]) for size in ("xs", "m", "l"))
    return ["-m", "model=hub", f"model.id=[{ids}]", "model.family=mine", "limit=3"], weights


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [pytest.param("joblib", marks=pytest.mark.long), "submitit"])
def test_jobs_side_by_side_make_the_runs_of_one_process_and_a_cell_that_fails_stops_no_other(
    launcher: str, family: Family, cwd: Path, tmp_path: Path
) -> None:
    words, weights = break_one(family, tmp_path)
    words += ["dataset=pydoc,stdlib"]
    store, alone = tmp_path / "store", tmp_path / "alone"
    answer = here("measure", *words, *LAUNCHERS[launcher], "--store", store, cwd=cwd, check=1)
    failed = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert len(failed) == 2, answer.stderr
    assert all(f"mine m on {dataset} failed" in "".join(failed) for dataset in ("pydoc", "stdlib"))
    query = ("sql", "SELECT family, size, dataset FROM failures", "--store", store, "--format", "json")
    assert {tuple(row.values()) for row in json.loads(here(*query, cwd=cwd, check=0).stdout)} == {
        ("mine", "m", "pydoc"),
        ("mine", "m", "stdlib"),
    }
    assert {run[:2] for run in runs(store, cwd)} == {
        (size, dataset) for size in ("xs", "l") for dataset in ("pydoc", "stdlib")
    }
    assert not (store / "sweeps").exists(), "nothing but the store is left"

    weights.write_bytes((family.folders["m"] / "model.safetensors").read_bytes())
    before = runs(store, cwd, "asked_at", "started_at")
    here("measure", *words, "--store", store, cwd=cwd, check=0)
    assert before < runs(store, cwd, "asked_at", "started_at"), "what is done is not measured again"
    here("measure", *words, "--store", alone, cwd=cwd, check=0)
    assert runs(store, cwd) == runs(alone, cwd)


def test_a_job_with_a_process_of_its_own_says_which_of_the_sweep_it_is(
    family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "rbpx.cli.messages.show_messages_of_job", lambda: None
    )  # one job at a time runs in this process
    words = [*family.words("xs", "s"), "limit=2,3", "seed=1,2", "hydra/launcher=joblib", "hydra.launcher.n_jobs=1"]
    answer = here("measure", "-m", *words, "--store", tmp_path / "store", cwd=cwd, check=0)
    places = re.findall(r"^\[(.*)\] mine", answer.stderr, re.MULTILINE)
    assert places == [f"job {job}/4, {cell}/2" for job in (1, 2, 3, 4) for cell in (1, 2)]
    answer = here("measure", "-m", *words[:-2], "dtype=bfloat16", "--store", tmp_path / "s", cwd=cwd, check=0)
    assert re.findall(r"^\[(.*)\] mine", answer.stderr, re.MULTILINE) == [f"{cell}/8" for cell in range(1, 9)]


def test_a_model_is_loaded_once_for_all_texts_of_a_sweep(
    family: Family, tiny_jsonl: Path, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rbpx.models import load as module

    loaded: list[str] = []
    plain = module.load_model

    def load(name: str, *more: Any) -> module.LoadedModel:
        loaded.append(Path(name).name)
        return plain(name, *more)

    monkeypatch.setattr(module, "load_model", load)
    words = [word for word in family.words() if not word.startswith("dataset")]
    store = ("--store", tmp_path / "store")
    here("measure", "-m", *words, "dataset=pydoc,stdlib", "limit=2", *store, cwd=cwd, check=0)
    assert sorted(loaded) == sorted(family.folders)
    assert len(runs(tmp_path / "store", cwd)) == 2 * len(family.folders)


def test_the_next_text_is_cut_while_one_is_measured_and_the_runs_are_those_of_single_texts(
    family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a GPU computes; on a CPU a text is cut in its turn."""
    from rbpx.measure import cell, protocol, runner

    events: list[str] = []
    next_is_cut = threading.Event()
    cut_windows, measure_windows = protocol.cut_windows, cell.measure_windows

    def cut(*how: Any) -> Any:
        windows = cut_windows(*how)
        beside = threading.current_thread() is not threading.main_thread()
        events.append("cut beside" if beside else "cut")
        if beside:
            next_is_cut.set()
        return windows

    def measured(*how: Any) -> Any:
        events.append("measure")
        if "cut beside" not in events:
            assert next_is_cut.wait(60), "the next text waits for the end of this one"
        return measure_windows(*how)

    monkeypatch.setattr(runner, "_computes_on_gpu", lambda processes: True)
    monkeypatch.setattr(protocol, "_cached_windows", {})
    monkeypatch.setattr(protocol, "cut_windows", cut)
    monkeypatch.setattr(cell, "measure_windows", measured)
    words = [word for word in family.words("xs") if not word.startswith("dataset")]
    together, apart = tmp_path / "together", tmp_path / "apart"
    here("measure", "-m", *words, "dataset=pydoc,stdlib", "limit=3", "--store", together, cwd=cwd, check=0)
    assert sorted(events) == ["cut", "cut beside", "measure", "measure"]
    assert (events[0], events[-1]) == ("cut", "measure"), "a text is measured when it is cut"
    monkeypatch.undo()
    for dataset in ("pydoc", "stdlib"):
        here("measure", *words, f"dataset={dataset}", "limit=3", "--store", apart, cwd=cwd, check=0)
    assert runs(together, cwd) == runs(apart, cwd)


def test_a_text_that_is_wrong_does_not_stop_the_others_of_a_sweep(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = [word for word in family.words("xs") if not word.startswith("dataset")]
    store = ("--store", tmp_path / "store")
    answer = here("measure", "-m", *words, "dataset=file,pydoc", "limit=2", *store, cwd=cwd, check=1)
    assert [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")] == [
        "rbpx: dataset=file needs dataset.path=FILE, a text, JSONL, CSV or Parquet file"
    ]
    assert {run[1] for run in runs(tmp_path / "store", cwd)} == {"pydoc"}


def test_a_job_that_is_killed_is_told_and_its_log_is_kept(
    family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sitecustomize kills the process of one job as the kernel does when memory runs out."""
    # How long a file system may take to show the answer of a job that has ended.
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 1)
    (tmp_path / "site").mkdir()
    killer = (
        "import os, sys\nif any('_submit' in word for word in sys.argv + sys.orig_argv):\n    os.kill(os.getpid(), 9)\n"
    )
    (tmp_path / "site" / "sitecustomize.py").write_text(killer)
    words = [word for word in family.words("xs") if not word.startswith("dataset")]
    words += ["dataset=pydoc,stdlib", "limit=2", *LAUNCHERS["submitit"], "--store", str(tmp_path / "store")]
    answer = here("measure", "-m", *words, cwd=cwd, env={"PYTHONPATH": str(tmp_path / "site")}, check=1)
    lines = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert len(lines) == 1, answer.stderr
    assert "a job of submitit_local ended without an answer" in lines[0]
    assert "Traceback" not in answer.stderr
    assert any((tmp_path / "store" / "sweeps").rglob("*.out")), "its log is kept"
