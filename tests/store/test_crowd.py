"""Four writers and a reader of one store at once: nothing is lost, doubled or half there."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rbpx.store.sql import connect
from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.synthetic import Truth, write_store

SIZES = (1000, 2000, 4000)
N_TOKENS = 4 * 10


def test_four_writers_and_a_reader_at_once(tmp_path: Path) -> None:
    root = tmp_path / "store"
    Store(root).prepare()

    def write(number: int) -> None:
        """Writer n draws the same runs as writer n + 2, as two sweeps over the same cells do."""
        text = number % 2
        write_store(root, Truth(S=SIZES), seed=text, n_documents=4, n_tokens=10, dataset=f"text{text}")

    seen: list[tuple[int, int, int]] = []
    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        while not seen or not all(writer.done() for writer in writers):
            with connect(Store(root)) as connection:
                seen += connection.execute(
                    "SELECT (SELECT count(*) FROM runs), count(DISTINCT run_id), count(*) FROM tokens"
                ).fetchall()
        for writer in writers:
            writer.result()
    assert all(n == held * N_TOKENS and runs <= held for runs, held, n in seen), "a run is there whole"
    assert seen == sorted(seen), "what was there stays"
    found = verify(Store(root))
    assert (found.faults, found.leftovers) == ([], [])
    assert (found.n_runs, found.n_records, found.n_tokens) == (6, 6, 6 * N_TOKENS)
