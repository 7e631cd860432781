"""Compares commands on a store of thousands of runs with those on one of 48.

Each row of the table is one command in a process of its own: wall time and processor time in seconds, and the peak
memory of the process. The runs are drawn (large_store.py), with 5,000 tokens each by default.

    python benchmarks/many_runs.py --store FOLDER [--families 42] [--rows-of-a-run 5000]

Making 2,016 runs takes some minutes once, and 0.1 GB.
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from analysis import LAWS, Cost, command  # noqa: E402
from large_store import DATASETS, SIZES, large_store  # noqa: E402

PAGE = f"output={Path(tempfile.gettempdir()) / 'rbpx-many-runs.html'}"
QUESTIONS = {
    "`status`": ("status",),
    "`sql` of `runs`": ("sql", "SELECT family, count(*) FROM runs GROUP BY ALL"),
    "`sql` of all of `rank_counts`": ("sql", "SELECT run_id, sum(n_tokens) FROM rank_counts GROUP BY ALL"),
    "`sql` of one run of `tokens`": ("sql", f"SELECT count(*) FROM tokens WHERE run_id = 'family-0-0-{DATASETS[0]}'"),
    "`sql` of all of `tokens`": ("sql", "SELECT count(*), sum(greater) FROM tokens"),
    "`fit` of one group": ("fit", "family=family-0", f"dataset={DATASETS[0]}", LAWS),
    "`report` of one group": ("report", "family=family-0", f"dataset={DATASETS[0]}", LAWS, PAGE),
}


def asked(store: str) -> dict[str, Cost]:
    """Measure each command, after a first `status`, which writes the views."""
    first = {"first `status`": command(*QUESTIONS["`status`"], f"store={store}")}
    return first | {name: command(*words, f"store={store}") for name, words in QUESTIONS.items()}


def print_costs(stores: list[str]) -> None:
    """Print the table."""
    costs = [asked(store) for store in stores]
    print("| | 48 runs: s | CPU s | MiB | all: s | CPU s | MiB |\n|---|---|---|---|---|---|---|")
    for name in costs[0]:
        cells = (f"{c[name].wall_s:.2f} | {c[name].cpu_s:.2f} | {c[name].peak_mib or 0:.0f}" for c in costs)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Make the stores and print what each command costs."""
    line = argparse.ArgumentParser()
    line.add_argument("--store", type=Path, required=True)
    line.add_argument("--families", type=int, default=42)
    line.add_argument("--rows-of-a-run", type=int, default=5_000)
    given = line.parse_args()
    n_of_family = len(SIZES) * len(DATASETS)
    folders = []
    for n_families in dict.fromkeys((1, given.families)):
        families = [f"family-{number}" for number in range(n_families)]
        store = large_store(given.store, n_families * n_of_family * given.rows_of_a_run, families)
        (store.root / "rbpx.duckdb").unlink(missing_ok=True)
        folders.append(store.root)
        print(f"{store.root.name}: {len(store.run_ids()):,} runs", flush=True)
    print_costs([str(folder) for folder in folders])


if __name__ == "__main__":
    main()
