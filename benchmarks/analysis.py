"""Compares the cost of commands that analyse 1e6 to 1e8 rows of tokens with that of reading the same columns once.

Each row of the table is one command in a process of its own; the floors are reads in this process. It has wall time and
processor time in seconds, the peak memory of the process (VmHWM, without its forks), and the ratio of its processor
time to that of reading the columns. The last column is the growth: the slope of log(processor time beyond start-up)
against log(rows); 1 is linear. Before anything is timed, RBP_k of one group by `fit` is checked against counts in plain
NumPy, and `rank_counts` against the tokens.

    python benchmarks/analysis.py --store FOLDER [--rows 1e6 1e7 1e8] [--everything] [--demo STORE] [--times 3]

The stores (large_store.py) are made once, in FOLDER: 100 million rows take 0.6 GB and a minute. `--everything` adds the
verbs over all 192 runs, which take minutes.
`--demo` prints a table of its own for a copy of the store of `make demo`: the cost of each command when it is typed
first and when it is typed again, each the best of `--times`, beside its goal. Commands keep their compiled modules, as
an installed rbpx does. Where Python may not write them, it compiles them each time, which takes longer than many a
question.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.dataset
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from large_store import DATASETS, FAMILIES, N_CELLS, large_store  # noqa: E402

from rbpx.store.store import Store  # noqa: E402
from tests.support.synthetic import Truth, write_store  # noqa: E402

K = [1, 2, 3, 5, 7, 10, 14, 18, 24, 30, 40, 50, 64, 78, 100, 140, 200, 300, 400, 500, 700, 1000, 1400, 2000, 2500, 3500,
     5000, 7000, 10000, 20000]  # fmt: skip
ON_K = f"k={K}".replace(" ", "")
LAWS = "laws=[rbp,cross_entropy]"
GROUP = (f"model={FAMILIES[2]}", f"dataset={DATASETS[0]}")
COLUMNS = ("doc_id", "greater", "ties", "logprob")
RBP = (
    f"WITH grid AS (SELECT unnest({K})::INTEGER AS k), binned AS (SELECT c.run_id, g.k, sum(c.n_tokens) AS n "
    "FROM (SELECT *, greater + ties + 1 AS rank FROM rank_counts) AS c ASOF LEFT JOIN grid AS g ON g.k >= c.rank "
    "GROUP BY ALL) SELECT run_id, k, sum(n) OVER (PARTITION BY run_id ORDER BY k NULLS LAST) "
    "/ sum(n) OVER (PARTITION BY run_id) AS rbp FROM binned QUALIFY k IS NOT NULL"
)
COUNT = "FROM (SELECT run_id, greater, ties, count(*), sum(logprob) FROM tokens GROUP BY ALL) SELECT count(*)"
_CHILD = """
import runpy, sys
from pathlib import Path
memory_file = sys.argv.pop(1)
try:
    runpy.run_module("rbpx", run_name="__main__", alter_sys=True)
finally:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    Path(memory_file).write_text(line.split()[1])
"""


@dataclass(frozen=True)
class Cost:
    """The cost of one command or read; the memory of a read in this process is not measured."""

    wall_s: float
    cpu_s: float
    peak_mib: float | None = None
    output: str = ""


def command(*words: str) -> Cost:
    """Run a command line in a process of its own; it must succeed."""
    with tempfile.NamedTemporaryFile() as memory_file:
        begin, before = time.perf_counter(), os.times()
        line = [sys.executable, "-c", _CHILD, memory_file.name, *words]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=environment)
        wall_s, after = time.perf_counter() - begin, os.times()
        print(f"{wall_s:.1f} s: rbpx {' '.join(words)[:100]}", file=sys.stderr)
        if done.returncode:
            raise SystemExit(f"rbpx {' '.join(words)} failed:\n{done.stderr}")
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        return Cost(wall_s, cpu_s, int(Path(memory_file.name).read_text()) / 2**10, done.stdout)


def here(what: Callable[[], object]) -> Cost:
    """Time a read in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    what()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def files(store: Store, table: str) -> list[str]:
    """The Parquet files of a relation."""
    return sorted(str(path) for path in store.root.glob(f"runs/*/{table}.parquet"))


def check(store: Store) -> None:
    """Check RBP_k of one group by `fit`, and the stored counts, against plain NumPy.

    Raises:
        SystemExit: a number differs.
    """
    rows = json.loads(
        command("fit", *GROUP, ON_K, LAWS, "--store", str(store.root), "--format", "json", "--details").output
    )
    fitted = {row["k"]: row["params"]["y"] for row in rows if row["law"] == "rbp"}
    for size in range(8):
        folder = store.run_folder(f"{FAMILIES[2]}-{size}-{DATASETS[0]}")
        table = pq.read_table(folder / "tokens.parquet")
        rank_N = table["greater"].to_numpy() + table["ties"].to_numpy() + 1
        for k in K:
            if not np.isclose(np.exp(-fitted[k][size]), np.mean(rank_N <= k), rtol=1e-12, atol=0):
                raise SystemExit(
                    f"RBP_{k} of {folder.name}: {np.exp(-fitted[k][size])}, counted {np.mean(rank_N <= k)}"
                )
        counts = pq.read_table(folder / "rank_counts.parquet")
        pair_N = table["greater"].to_numpy().astype(np.int64) * 2**31 + table["ties"].to_numpy()
        if not np.array_equal(np.unique(pair_N, return_counts=True)[1], counts["n_tokens"].to_numpy()):
            raise SystemExit(f"rank_counts of {folder.name} are not those of its tokens")


READING = "DuckDB reads 4 columns of `tokens`"


def measure(store: Store, everything: bool) -> list[tuple[str, Cost]]:
    """Measure every row of the table for one store, in the order in which a user would meet them."""
    place = ("--store", str(store.root))
    tokens, counts = files(store, "tokens"), files(store, "rank_counts")
    total = ", ".join(f"sum({name})" for name in COLUMNS)
    forget(store)
    return [
        ("pyarrow reads 4 columns of `tokens`", here(lambda: read(tokens, COLUMNS))),
        (
            READING,
            here(lambda: duckdb.sql(f"SELECT {total} FROM read_parquet({tokens})").fetchall()),
        ),
        ("pyarrow reads `rank_counts`", here(lambda: read(counts, ("greater", "ties", "n_tokens", "sum_logprob")))),
        ("first `status`: every byte against its hash, the index built", command("status", *place)),
        ("`status` again", command("status", *place)),
        ("`sql`: `rank_counts` counted anew from `tokens`", command("sql", COUNT, *place)),
        ("`sql`: RBP at 30 k of every run, from `rank_counts`", command("sql", RBP, *place, "--format", "csv")),
        ("`fit` of one group (8 models), 30 k", command("fit", *GROUP, ON_K, LAWS, *place)),
        ("`fit` of one group, all laws, 7 k", command("fit", *GROUP, *place)),
        ("`ranks` of one group", command("ranks", *GROUP, *place)),
        ("`emergence` of one group", command("emergence", *GROUP, *place)),
        ("`regimes` of one group, k to V", command("regimes", *GROUP, *place)),
        ("1,000 resamples of the documents of all runs, 30 k", bootstrap(store)),
        ("`fit` of all 24 groups, 30 k", command("fit", ON_K, LAWS, *place)),
        *(_everything(*place) if everything else []),
    ]


def _everything(*place: str) -> list[tuple[str, Cost]]:
    """Verbs over all 192 runs."""
    return [
        ("`fit` of all 24 groups, all laws, 7 k", command("fit", *place)),
        ("`ranks` of all 24 groups", command("ranks", *place)),
        ("`emergence` of all 24 groups", command("emergence", *place)),
        ("`report`", command("report", *place, "--output", os.devnull)),
    ]


ANY = (1.5, 0.8)  # seconds that a question may take, first and again
ASKED: dict[str, tuple[tuple[str, ...], tuple[float, float]]] = {
    "`fit`": (("fit",), ANY),
    "`ranks`": (("ranks",), ANY),
    "`predict`": (("predict",), ANY),
    "`emergence`": (("emergence",), ANY),
    "`entropy`": (("entropy",), ANY),
    "`report`": (("report", "--output", os.devnull), (5.0, 1.5)),
    '`sql "FROM runs"`': (("sql", "FROM runs"), (0.4, 0.4)),
    "`run model=ladder dataset=pydoc size=3k`, measured": (
        ("run", "model=ladder", "dataset=pydoc", "size=3k"),
        (1.2, 1.2),
    ),
}
N_TEXTS, TINY_GOAL = 64, 4.0


def demo(made: Path, times: int) -> None:
    """Print what a user's commands cost on a copy of the demo's store, the first time and again."""
    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(shutil.copytree(made, Path(place) / "store")))
        tokens = files(store, "tokens")
        total = ", ".join(f"sum({name})" for name in COLUMNS)
        reading = min(
            (here(lambda: duckdb.sql(f"SELECT {total} FROM read_parquet({tokens})").fetchall()) for _ in range(times)),
            key=_cpu_s,
        )
        command("status", "--store", str(store.root))
        head = "first: s | CPU s | goal | MiB | CPU / reading | again: s | CPU s | goal | MiB | CPU / reading"
        print(f"| the demo's {len(tokens)} runs, best of {times} | {head} |\n|---|{'---|' * 10}")
        print(f"| {READING} | {_pair(reading, None, reading)} | | | | | |")
        for name, (words, goals) in ASKED.items():
            first, again = [], []
            for _ in range(times):
                forget(store)
                command("status", "--store", str(store.root))
                first.append(command(*words, "--store", str(store.root)))
                again.append(command(*words, "--store", str(store.root)))
            cells = (
                _pair(min(costs, key=_cpu_s), goal, reading) for costs, goal in zip((first, again), goals, strict=True)
            )
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        tiny = min((_measure_tiny(Path(place), at) for at in range(times + 1)), key=_cpu_s)  # the first one compiles
        name = f"`measure` one checkpoint on {N_TEXTS} short texts, all in"
        print(f"| {name} | {_pair(tiny, TINY_GOAL, reading)} | | | | | |", flush=True)


def _measure_tiny(place: Path, at: int) -> Cost:
    texts = place / "short.txt"
    texts.write_text("".join(f"Short text number {n} says that {n} and {n} are {2 * n}.\n" for n in range(N_TEXTS)))
    text = ("dataset=file", f"dataset.path={texts}", "dataset.chunk=line")
    return command("measure", "model=ladder", "size=3k", *text, "--store", str(place / f"tiny{at}"))


def _pair(cost: Cost, goal: float | None, reading: Cost) -> str:
    peak = "" if cost.peak_mib is None else f"{cost.peak_mib:,.0f}"
    goals = "" if goal is None else f"{goal}"
    return f"{cost.wall_s:.2f} | {cost.cpu_s:.2f} | {goals} | {peak} | {cost.cpu_s / reading.cpu_s:.0f}"


def _cpu_s(cost: Cost) -> float:
    return cost.cpu_s


def read(paths: Sequence[str], columns: Sequence[str]) -> None:
    """Decode some columns and discard them."""
    for batch in pyarrow.dataset.dataset(paths).scanner(columns=list(columns)).to_batches():
        del batch


def bootstrap(store: Store) -> Cost:
    """Count and resample, without laws, as `fit` does before it fits."""
    from rbpx.questions.fit import FitKeys
    from rbpx.runs.points.sizes import weigh_group
    from rbpx.runs.select.groups import select
    from rbpx.store.sql import connect

    request = FitKeys(k=K, laws=["rbp", "cross_entropy"], resamples=1000)
    with connect(store) as connection:
        groups = select(connection, request)
        return here(lambda: [len(weigh_group(connection, group, request, K, ())) for group in groups])


def forget(store: Store) -> None:
    """Remove what a store keeps from earlier commands: its index and checks of its files."""
    for name in ("rbpx.duckdb", ".checked.json"):
        (store.root / name).unlink(missing_ok=True)


def start() -> Cost:
    """The cost of `fit` for three models of 20 tokens: what any `fit` takes before it looks at a store."""
    with tempfile.TemporaryDirectory() as place:
        store = write_store(Path(place), Truth(S=(10**3, 10**5, 10**7)), seed=0, n_documents=2, n_tokens=10)
        return command("fit", "k=1", "laws=rbp", "--store", str(store.root))


def main() -> None:
    """Print the tables."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--store", type=Path, help="folder for the stores; without it only the demo is measured")
    words.add_argument("--demo", type=Path, help="the store of `make demo`; a copy is measured")
    words.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8], help="tokens in all")
    words.add_argument("--times", type=int, default=3, help="repetitions for --demo, of which the best counts")
    words.add_argument("--everything", action="store_true", help="also the verbs over all 192 runs")
    options = words.parse_args()
    if options.demo is not None:
        demo(options.demo, options.times)
    if options.store is not None:
        large(options)


def large(options: argparse.Namespace) -> None:
    """Print the table of the drawn stores."""
    costs_by_store = []
    for n_rows in options.rows:
        store = large_store(options.store, round(n_rows))
        check(store)
        costs_by_store.append(measure(store, options.everything))
        n = sum(pq.read_metadata(path).num_rows for path in files(store, "tokens"))
        n_bytes, n_counted = (sum(os.path.getsize(p) for p in files(store, t)) for t in ("tokens", "rank_counts"))
        print(
            f"{n:,} rows in {N_CELLS} runs: {n_bytes / n:.2f} bytes a token in `tokens`, {n_counted / n:.2f} in "
            f"`rank_counts`", flush=True,
        )  # fmt: skip
    head = " | ".join(f"{n:.0e} rows: s | CPU s | MiB | CPU / reading".replace("e+0", "e") for n in options.rows)
    print(f"\n| 32 models x 6 texts | {head} | growth |\n|---|{'---|---|---|---|' * len(costs_by_store)}---|")
    by_name = dict(_by_name(costs_by_store))
    started = start()
    for name, costs in {"start-up: `fit` of 3 x 20 tokens": [started] * len(costs_by_store), **by_name}.items():
        cells = " | ".join(map(_cells, costs, by_name[READING]))
        print(f"| {name} | {cells} | {_growth(options.rows, costs, started)} |")


def _by_name(costs_by_store: Sequence[Sequence[tuple[str, Cost]]]) -> list[tuple[str, list[Cost]]]:
    return [(row[0][0], [cost for _, cost in row]) for row in zip(*costs_by_store, strict=True)]


def _cells(cost: Cost, reading: Cost) -> str:
    peak = "" if cost.peak_mib is None else f"{cost.peak_mib:,.0f}"
    return f"{cost.wall_s:.2f} | {cost.cpu_s:.2f} | {peak} | {cost.cpu_s / reading.cpu_s:.1f}"


def _growth(rows: Sequence[float], costs: Sequence[Cost], started: Cost) -> str:
    """The slope between the smallest and the largest store; empty where a command takes no longer than start-up."""
    beyond = [cost.cpu_s - (0.0 if cost.peak_mib is None else started.cpu_s) for cost in costs]
    if len(rows) < 2 or min(beyond[0], beyond[-1]) < 0.1 * costs[0].cpu_s:
        return ""
    return f"{math.log(beyond[-1] / beyond[0]) / math.log(rows[-1] / rows[0]):.2f}"


if __name__ == "__main__":
    main()
