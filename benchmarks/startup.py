"""Times commands that have nothing to measure: help, a configuration, one question, the laws of a full store.

The store holds the bundled ladder of 7 sizes, measured once on the standard library by `python -m rbpx measure`.
Processor time stands beside wall time, because on a machine that others use only processor times can be compared.

    python benchmarks/startup.py [DOCUMENTS, default all] [TIMES, of which the best counts, default 3]
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOORS = (["-c", "pass"], ["-c", "import torch"])
VERBS = (
    ["--help"],
    ["fit", "--help"],
    ["--cfg", "job"],
    ["sql", "FROM runs"],
    ["status"],
    ["fit", "k=1", "laws=rbp"],
    ["fit"],
)


def timed(words: list[str], folder: str, times: int) -> tuple[float, float]:
    """Wall and processor time of a command in seconds, each the best of some runs."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RBPX_STORE": f"{folder}/store", "HF_HUB_OFFLINE": "1"}
    wall_s, cpu_s = [], []
    for _ in range(times):
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], cwd=folder, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall_s.append(time.perf_counter() - start)
        cpu_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(wall_s), min(cpu_s)


def main(documents: str, times: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RBPX_STORE": f"{folder}/store"}
        ladder = ["model=ladder", "dataset=stdlib", f"limit={documents}"]
        subprocess.run(
            [sys.executable, "-m", "rbpx", "measure", *ladder],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
        )
        print("| command | s | processor s |\n|---|---|---|")
        for words in [*FLOORS, *(["-m", "rbpx", *words] for words in (*VERBS, ladder))]:
            wall_s, cpu_s = timed(words, folder, times)
            line = " ".join(f'"{word}"' if " " in word else word for word in words)
            print(f"| `python {line}` | {wall_s:.2f} | {cpu_s:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "null", int(sys.argv[2]) if len(sys.argv) > 2 else 3)
