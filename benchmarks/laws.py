"""Times the questions that fit laws, beside the same questions under another revision, in turns and in one run.

The store is copied, and its copy asked; a folder without runs is first filled with the bundled ladder on a few
documents. The last row fits a surface to 4,855 drawn checkpoints, five of each of 971 runs.

    python benchmarks/laws.py --store DIR [--base REV, default HEAD~1] [--times N, default 3] [dataset=stdlib ...]
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = {
    "fit": ["fit"],
    "fit method=all": ["fit", "method=all"],
    "fit k=log": ["fit", "k=log"],
    "fit, 2,000 k": ["fit", f"k={[*range(1, 2001)]}".replace(" ", ""), "laws=[rbp]", "--format=csv"],
    "predict": ["predict"],
    "regimes": ["regimes"],
    "klaw": ["klaw"],
    "report": ["report"],
}
SURFACE = """
import numpy as np
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
rng = np.random.default_rng(0)
run = np.repeat(np.arange(971), 5)
S = np.exp(rng.uniform(*np.log([1e7, 3e9]), 971))[run]
D = S * np.exp(rng.uniform(*np.log([5, 160]), 971))[run] * np.tile([0.2, 0.4, 0.6, 0.8, 1.0], 971)
y = (1.8 + 480 * S**-0.35 + 2100 * D**-0.37) * np.exp(rng.normal(0, 0.01, 971)[run])
print(fit_surface(Runs.of(S, D, y, groups=run)).objective)
"""


def cpu_s(code: Path, words: Sequence[str], folder: Path) -> float:
    """Processor time of a command under some code, forks included, in seconds."""
    environment = {**os.environ, "PYTHONPATH": str(code), "RBPX_STORE": str(folder / "store"), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(store: Path, base: str, times: int, narrowed: Sequence[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as place:
        folder, other = Path(place), Path(place) / "base"
        if (store / "runs").is_dir():
            shutil.copytree(store, folder / "store")
        else:
            cpu_s(ROOT, ["-m", "rbpx", "measure", "model=ladder", "dataset=stdlib", "limit=40"], folder)
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(other), base], check=True)
        try:
            print(f"| command | {base}, CPU s | now, CPU s | ratio |\n|---|---|---|---|")
            commands = {name: ["-m", "rbpx", *words, *narrowed] for name, words in QUESTIONS.items()}
            for name, words in (commands | {"fit_surface, 4,855 points": ["-c", SURFACE]}).items():
                each = [[cpu_s(code, words, folder) for code in (other, ROOT)] for _ in range(times)]
                before, now = map(min, zip(*each, strict=True))
                print(f"| {name} | {before:.2f} | {now:.2f} | {now / before:.2f} |", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--base", default="HEAD~1")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("narrowed", nargs="*")
    arguments = parser.parse_args()
    main(arguments.store, arguments.base, arguments.times, arguments.narrowed)
