"""Sweeps: models loaded once, jobs side by side under the launchers, one that fails, one that is killed."""

import json
import os
import re
import shutil
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here, rbpx
from tests.support.places import PROJECT
from tests.support.stores import Family
from tests.support.warm import Warm

TEXTS = ("pydoc", "stdlib")
LAUNCHERS = {
    "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
    "submitit": ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"],
}


def runs(store: Path, cwd: Path, *more: str) -> set[tuple[str, ...]]:
    """Size, dataset, run_id, and more columns, of each run."""
    query = f"SELECT {', '.join(('size', 'dataset', 'run_id', *more))} FROM runs"
    answer = here("sql", query, "--store", store, "--format", "json", cwd=cwd, check=0)
    return {tuple(row.values()) for row in json.loads(answer.stdout)}


def told(stderr: str) -> list[str]:
    """What a command says beside progress."""
    return [line.removeprefix("rbpx: ") for line in stderr.splitlines() if line.startswith("rbpx: ")]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_jobs_side_by_side_make_the_runs_of_one_process_and_a_cell_that_fails_stops_no_other(
    launcher: str, family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rbpx.display.progress._PLAIN_EVERY_S", 0.5)
    broken = Path(shutil.copytree(family.folders["m"], tmp_path / "m"))
    weights = broken / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    words = ["-m", *Family(family.folders | {"m": broken}, family.text).words("xs", "m", "l")[:3], "limit=3"]
    words += ["dataset=pydoc,stdlib"]
    store, alone = tmp_path / "store", tmp_path / "alone"
    answer = here("measure", *words, *LAUNCHERS[launcher], "--store", store, cwd=cwd, check=1)
    failed = [line for line in told(answer.stderr) if " failed: " in line]
    assert all(f"mine m on {text} failed" in "".join(failed) for text in TEXTS)
    assert len(failed) == len(list((store / "failures").glob("*.json"))) == 2, answer.stderr
    assert {run[:2] for run in runs(store, cwd)} == {(size, text) for size in ("xs", "l") for text in TEXTS}
    ends = re.findall(r"^\[(\d)/6\] mine (\w+ on \w+)(?:: .* tokens/s| failed)$", answer.stderr, re.MULTILINE)
    assert [number for number, _ in ends] == [str(n) for n in range(1, 7)], answer.stderr
    assert {cell for _, cell in ends} == {f"{size} on {text}" for size in ("xs", "m", "l") for text in TEXTS}
    assert "[job" not in answer.stderr, "the jobs tell it too"
    (folder,) = re.findall(r"2 jobs of hydra/launcher=.*; their logs: (.*)$", answer.stderr, re.MULTILINE)
    assert Path(folder).is_dir(), "what failed is kept"

    weights.write_bytes(whole)
    before = runs(store, cwd, "asked_at", "started_at")
    here("measure", *words, *LAUNCHERS[launcher], "--store", store, cwd=cwd, check=0)
    assert before < runs(store, cwd, "asked_at", "started_at"), "what is done is not measured again"
    assert [path.name for path in (store / "sweeps").iterdir()] == [Path(folder).name], "nothing of what went well"
    here("measure", *words, "--store", alone, cwd=cwd, check=0)
    assert runs(store, cwd) == runs(alone, cwd)


def test_a_worker_of_joblib_that_has_grown_is_replaced_in_silence(family: Family, cwd: Path, tmp_path: Path) -> None:
    """As one grows by hundreds of MiB that loads a model; joblib takes it for a leak of memory, and warns."""
    bounds = "loky._MAX_MEMORY_LEAK_SIZE, loky._MEMORY_LEAK_CHECK_DELAY = -(10**12), 0.0\n"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        f"import joblib.externals.loky.process_executor as loky\n{bounds}"
    )
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(PROJECT)])}
    words = [*family.words("xs"), "limit=2,3,4", *LAUNCHERS["joblib"], "--store", tmp_path / "store"]
    answer = rbpx("measure", "-m", *words, cwd=cwd, env=path, check=0)
    assert "memory leak" not in answer.stderr
    assert answer.stderr.count("tokens/s\n") == 3


def test_a_job_that_is_stopped_or_killed_is_told_and_is_no_cell_that_failed(
    family: Family, long_jsonl: Path, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One job gets SIGTERM, one SIGUSR2 as before the end of its time, one SIGKILL as when memory runs out."""
    # How long a file system may take to show the answer of a job that has ended.
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 1)
    store, signals = tmp_path / "store", {1: signal.SIGTERM, 2: signal.SIGUSR2, 3: signal.SIGKILL}
    words = [*family.words("s", text=long_jsonl), "seed=1,2,3,4", "tokens_per_batch=1", *LAUNCHERS["submitit"]]
    words += ["+hydra.launcher.max_num_timeout=0", "--store", str(store)]
    answers: list[Any] = []
    sweep = threading.Thread(target=lambda: answers.append(here("measure", "-m", *words, cwd=cwd)))
    sweep.start()
    sent: dict[int, int] = {}
    while sweep.is_alive():
        for path in (store / "running").glob("[!.]*.json"):
            pid = json.loads(path.read_text())["pid"]
            if pid not in sent.values() and len(sent) < len(signals):
                sent[len(sent) + 1] = pid
                os.kill(pid, signals[len(sent)])
        sweep.join(0.02)
    (answer,) = answers
    assert answer.returncode == 1, answer.stderr
    assert "Traceback" not in answer.stderr
    lines = [line for line in told(answer.stderr) if "the same command continues" in line]
    assert any("ended without an answer" in line for line in lines), lines
    assert any("its job was stopped" in line for line in lines), lines
    assert not list((store / "failures").glob("*.json")), "a job that was stopped is no cell that failed"


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_sweep_that_gets_sigterm_says_in_one_line_what_becomes_of_its_jobs(
    launcher: str, family: Family, long_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = [*family.words(text=long_jsonl), "seed=1,2", "tokens_per_batch=1", *LAUNCHERS[launcher], "--store", store]
    sweep = Warm("measure", "-m", *words, cwd=cwd)
    while not list((store / "running").glob("[!.]*.json")) and sweep.poll() is None:
        time.sleep(0.02)
    sweep.send_signal(signal.SIGTERM)
    _, stderr = sweep.communicate()
    assert sweep.returncode == 143, stderr
    line = told(stderr)[-1]
    assert line.startswith("stopped by SIGTERM; what was finished is kept, and the same command continues")
    assert "Traceback" not in stderr
    if launcher == "joblib":
        assert not (store / "sweeps").exists()
    else:
        (logs,) = (store / "sweeps").iterdir()
        assert line.endswith(f"; jobs that were started may go on, their logs: {logs}")
        for job in [int(folder.name) for folder in (logs / ".submitit").iterdir() if folder.name.isdecimal()]:
            with suppress(ProcessLookupError):
                os.kill(job, signal.SIGINT)
    here("measure", "-m", *words[:-4], "--store", store, cwd=cwd, check=0)
    assert len(runs(store, cwd)) == 2 * len(family.folders)
