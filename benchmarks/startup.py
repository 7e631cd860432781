"""How long a command takes that has nothing to measure: help, a configuration, one question, the laws of a full store.

The store holds the bundled ladder, 7 sizes, on the standard library (`python -m rbpx measure`, done once before).
Beside the time that passes stands that of the processor: on a machine that others use, only it can be compared.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMES = 3
FLOORS = (["-c", "pass"], ["-c", "import torch"])
VERBS = (
    ["--help"],
    ["fit", "--help"],
    ["--cfg", "job"],
    ["sql", "FROM runs"],
    ["status"],
    ["fit", "k=1", "laws=rbp"],
    ["fit"],
    ["run"],
)


def timed(words: list[str], folder: str) -> tuple[float, float]:
    """Wall and processor seconds of a command, each the best of some."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RBPX_STORE": f"{folder}/store", "HF_HUB_OFFLINE": "1"}
    wall_s, cpu_s = [], []
    for _ in range(TIMES):
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], cwd=folder, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall_s.append(time.perf_counter() - start)
        cpu_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(wall_s), min(cpu_s)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RBPX_STORE": f"{folder}/store"}
        measure = [sys.executable, "-m", "rbpx", "measure", "model=ladder", "dataset=stdlib"]
        subprocess.run(measure, cwd=folder, env=environment, check=True, capture_output=True)
        print("| command | s | processor s |\n|---|---|---|")
        for words in [*FLOORS, *(["-m", "rbpx", *words] for words in VERBS)]:
            wall_s, cpu_s = timed(words, folder)
            line = " ".join(f'"{word}"' if " " in word else word for word in words)
            print(f"| `python {line}` | {wall_s:.2f} | {cpu_s:.2f} |", flush=True)


if __name__ == "__main__":
    main()
