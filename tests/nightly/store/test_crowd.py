"""Eight processes write into one store and four read it, all at once: nothing is lost, doubled, half there or an error.

The runs are drawn, so that no process has to load a model; `make soak` does the same with real commands.
"""

import multiprocessing
import time
from pathlib import Path
from typing import Any

from rbpx.store.checks.verify import verify
from rbpx.store.index import refresh_index
from rbpx.store.sql.queries import ask_user, connect
from rbpx.store.store import Store
from tests.support.synthetic import Truth, write_store

SIZES = (1000, 2000, 4000, 8000, 16000)
N_TOKENS = 12 * 30


def wrote(place: tuple[str, int]) -> int:
    """Writer n draws the same runs as writer n + 4, as two sweeps over the same cells do."""
    root, number = place
    write_store(Path(root), Truth(S=SIZES), seed=number % 4, n_documents=12, n_tokens=30, dataset=f"text{number % 4}")
    refresh_index(Store(Path(root)))
    return number


def read(root: str) -> list[tuple[int, int, int]]:
    """Runs, runs that have tokens, and tokens, over and over, until all is there."""
    seen: list[tuple[int, int, int]] = []
    until = time.monotonic() + 60
    while time.monotonic() < until and (not seen or seen[-1][0] < 4 * len(SIZES)):
        store = Store(Path(root))
        if not store.root.is_dir():
            continue
        with connect(store) as connection:
            (row,) = ask_user(
                connection,
                "SELECT (SELECT count(*) FROM runs) AS runs, count(DISTINCT run_id) AS held, count(*) AS n FROM tokens",
            ).to_pylist()
        refresh_index(store)
        seen.append((row["runs"], row["held"], row["n"]))
    return seen


def test_eight_writers_and_four_readers_at_once(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # libraries are read once, not by each of them
    with context.Pool(12) as pool:
        readers: list[Any] = [pool.apply_async(read, (root,)) for _ in range(4)]
        writers = pool.map_async(wrote, [(root, number) for number in range(8)])
        assert sorted(writers.get(120)) == list(range(8))
        answers = [reader.get(120) for reader in readers]
    for seen in answers:
        assert seen[-1] == (4 * len(SIZES), 4 * len(SIZES), 4 * len(SIZES) * N_TOKENS)
        assert seen == sorted(seen), "what was there stays"
        assert all(n == held * N_TOKENS and runs <= held for runs, held, n in seen), "a run is there whole"
    found = verify(Store(Path(root)))
    assert found.faults == []
    assert (found.n_runs, found.n_cells, found.n_tokens) == (20, 20, 20 * N_TOKENS)
    assert found.leftovers == []
