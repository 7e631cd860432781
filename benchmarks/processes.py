"""Compares ways to share groups of runs among processes: one process, forks, loky, a Dask cluster.

Each row of the table is one question in Python about a synthetic store (large_store.py: 192 runs, 24 groups) in a
process of its own: seconds until calls that do nothing return their first result (for Dask including the start of its
cluster on this machine), wall time of the question in seconds, processor time of all processes in seconds, and their
peak memory together (the sum of their proportional set sizes, sampled). The answers are compared.

    python benchmarks/processes.py --store FOLDER [--rows 1e7] [--kinds one forks loky dask] [--questions fit report]
        [--workers 2]

`--kills` instead prints what each backend does when one of its processes is killed while it computes, and how long
that takes; after 20 s the backend itself is killed.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import current_process
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from analysis import forget  # noqa: E402
from large_store import large_store  # noqa: E402

from rbpx.store.store import Store  # noqa: E402

KINDS = ("one", "forks", "loky", "dask")
KILLED = ("joblib's multiprocessing", "loky", "forks")
PATIENCE_S, SAMPLED_S = 20, 0.2


# ----------------------------------------------------------------------------------------- one question, in its process


@contextmanager
def workers(kind: str, n: int) -> Iterator[None]:
    """Choose the backend, as a user does."""
    import joblib

    if kind == "dask":
        from dask.distributed import Client, LocalCluster

        with LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
            with joblib.parallel_config("dask"):
                yield
    elif kind == "loky":
        from joblib.externals.loky import get_reusable_executor

        with joblib.parallel_config("loky", n_jobs=n):
            yield
        get_reusable_executor().shutdown()
    else:
        with joblib.parallel_config(n_jobs=n if kind == "forks" else 1):
            yield


def ask(kind: str, n: int, question: str, place: str) -> dict[str, float | str]:
    """Ask one question, and measure its cost."""
    import rbpx
    from rbpx.runs.processes import in_processes, several_processes

    began = time.perf_counter()
    with workers(kind, n):
        with several_processes(lambda: None):
            in_processes(os.getenv, [("HOME",), ("PATH",)])
        first_s = time.perf_counter() - began
        began = time.perf_counter()
        if question == "fit":
            answer = rbpx.open(place).fit()
            rows = [{name: value for name, value in row.items() if name != "created_at"} for row in answer.records]
            text = json.dumps(rows, sort_keys=True)
        else:
            with tempfile.TemporaryDirectory() as folder:
                page = rbpx.open(place).report(Path(folder) / "report.md", group="all")
                text = page.read_text(encoding="utf-8").split("\n", 20)[-1]  # without the minute it was made in
        wall_s = time.perf_counter() - began
    return {
        "first_s": first_s,
        "wall_s": wall_s,
        "cpu_s": sum(os.times()[:4]),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:12],
    }


def asked(kind: str, n: int, question: str, place: Path) -> dict[str, float | str]:
    """Ask it in a process of its own, and measure the memory of that process and all that it starts."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, __file__, "--store", str(place), "--child", kind, question, "--workers", str(n)]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        total = 0
        try:
            main = psutil.Process(process.pid)
            for each in (main, *main.children(recursive=True)):
                total += each.memory_full_info().pss
        except psutil.Error:  # one ended meanwhile
            pass
        peak = max(peak, total)
        time.sleep(SAMPLED_S)
    stdout, stderr = process.communicate()
    if process.returncode:
        raise SystemExit(f"{kind} failed:\n{stderr}")
    return {**json.loads(stdout), "mib": peak / 2**20}


def print_costs(place: Path, kinds: list[str], questions: list[str], n: int) -> None:
    """Print the table.

    Raises:
        SystemExit: two kinds answer differently.
    """
    print(f"| {n} workers | question | first result, s | then, s | CPU s | MiB of all |\n|---|---|---|---|---|---|")
    for question in questions:
        digests = set()
        for kind in kinds:
            forget(Store(place))
            cost = asked(kind, n, question, place)
            digests.add(cost["digest"])
            numbers = (f"{cost['first_s']:.2f}", f"{cost['wall_s']:.1f}", f"{cost['cpu_s']:.1f}", f"{cost['mib']:.0f}")
            print(f"| {kind} | `{question}` | {' | '.join(numbers)} |", flush=True)
        if len(digests) > 1:
            raise SystemExit(f"{question}: the answers differ")


# ------------------------------------------------------------------------------------------------------------- kills


def _task(at: int) -> int:
    if at == 5 and current_process().name != "MainProcess":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return at


def kill(kind: str) -> None:
    """Kill one of two processes while it computes."""
    from concurrent.futures import BrokenExecutor

    import joblib

    from rbpx.runs.processes import in_processes, several_processes

    if kind == "forks":
        with joblib.parallel_config(n_jobs=2), several_processes(lambda: None):
            in_processes(_task, [(at,) for at in range(20)])
        print("is noticed, and this process computes what is left")
        return
    tasks = [joblib.delayed(_task)(at) for at in range(20)]
    try:
        joblib.Parallel(2, "loky" if kind == "loky" else "multiprocessing", batch_size=1)(tasks)
    except BrokenExecutor as problem:
        print(f"raises {type(problem).__name__}")


def print_kills() -> None:
    """Print what each backend does when a process is killed."""
    print("| one of two processes is killed | s | what comes of it |\n|---|---|---|")
    for kind in KILLED:
        began = time.perf_counter()
        words = [sys.executable, __file__, "--kill", kind]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            told = process.communicate(timeout=PATIENCE_S)[0].strip()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            told = "has not ended"
        print(f"| {kind} | {time.perf_counter() - began:.1f} | {told} |", flush=True)


def main() -> None:
    """Make the store and print the table."""
    line = argparse.ArgumentParser()
    line.add_argument("--store", type=Path)
    line.add_argument("--rows", type=float, default=1e7)
    line.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    line.add_argument("--questions", nargs="+", choices=("fit", "report"), default=["fit", "report"])
    line.add_argument("--workers", type=int, default=2)
    line.add_argument("--kills", action="store_true")
    line.add_argument("--kill", help=argparse.SUPPRESS)
    line.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = line.parse_args()
    if given.kill:
        kill(given.kill)
    elif given.child:
        print(json.dumps(ask(given.child[0], given.workers, given.child[1], str(given.store))))
    elif given.kills:
        print_kills()
    else:
        print_costs(large_store(given.store, int(given.rows)).root, given.kinds, given.questions, given.workers)


if __name__ == "__main__":
    main()
