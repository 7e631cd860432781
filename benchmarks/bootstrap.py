"""Compares the time for 1,000 resamples of 7 sizes at 30 k with that of reading the same tokens once.

The store is drawn from a known law (tests/support/synthetic.py), with 1,000 documents of 500 tokens for each size.

    python benchmarks/bootstrap.py [TOKENS a document, default 500]
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.questions.fit import FitKeys
from rbpx.questions.regimes.ask import answer as regimes
from rbpx.runs.laws import analyse
from rbpx.runs.points.sizes import weigh_group
from rbpx.runs.select.groups import select
from rbpx.store.sql import connect
from tests.support.synthetic import Truth, write_store

K = sorted({round(10 ** (i / 6.3)) for i in range(32)})[:30]


def timed(what: Callable[[], Any]) -> float:
    """The best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        what()
        best = min(best, time.perf_counter() - start)
    return best


def main(n_tokens: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as place:
        sizes = tuple(10**power for power in range(3, 10))
        store = write_store(Path(place) / "store", Truth(S=sizes), seed=0, n_documents=1000, n_tokens=n_tokens)
        with connect(store) as connection:
            request = FitKeys(k=K, laws=["rbp"], resamples=1000)
            (group,) = select(connection, request)
            read_s = timed(
                lambda: connection.sql("SELECT sum(greater), sum(logprob), max(doc_id) FROM tokens").fetchall()
            )
            rows = [
                ("read every token once", read_s),
                (
                    "count ranks by document, 1,000 resamples",
                    timed(lambda: weigh_group(connection, group, request, K, ())),
                ),
                (f"the laws at {len(K)} k, with intervals", timed(lambda: regimes(connection, group, request))),
                ("the same, and the choice of form", timed(lambda: analyse(connection, group, request))),
            ]
    print(f"| 7 sizes x {1000 * n_tokens:,} tokens, {len(K)} k | s | ratio |\n|---|---|---|")
    for name, seconds in rows:
        print(f"| {name} | {seconds:.2f} | {seconds / read_s:.0f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
