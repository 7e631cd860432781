"""The verb learning on trainings whose tokens are learned at known times, and on a measured family."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.store.store import Store
from tests.support.asking import Asked, ask
from tests.support.synthetic import write_ranks

D = [int(1e5 * 2**at) for at in range(10)]
N_DOCUMENTS, N_TOKENS = 30, 60
MISS = 60  # a rank


def draw(seed: int, time_DT: np.ndarray, flicker: float = 0.03) -> dict[int, np.ndarray]:
    """Ranks of tokens that become hits at their times, but for some that are now and then the other way round."""
    rng = np.random.default_rng(seed)
    found = {}
    for at in D:
        hit_DT = (np.log(at) >= time_DT) ^ (rng.random(time_DT.shape) < flicker)
        found[at] = np.where(hit_DT, 1, MISS + rng.integers(0, 20, time_DT.shape))
    return found


def times(seed: int, c: float = 0.4) -> np.ndarray:
    """Times from the second checkpoint on that fall as D^-c."""
    rng = np.random.default_rng(seed)
    return np.log(D[0] * 1.01) + rng.exponential(1 / c, (N_DOCUMENTS, N_TOKENS))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of one size, and another size."""
    root = tmp_path_factory.mktemp("learning") / "store"
    store = Store(root)
    store.prepare()
    ids = np.tile(np.arange(N_TOKENS) % 3, (N_DOCUMENTS, 1))
    for size, seed, of in ((40_000, 1, 0), (40_000, 2, 0), (90_000, 1, 7)):
        write_ranks(store, draw(seed + size, times(of)), ids, S=size, training_seed=seed)
    return root


def learning(store: Path, k: Any = 1, **keys: Any) -> Asked:
    return ask(store, "learning", k=k, resamples=50, **keys)


def test_what_is_learned_is_counted_by_a_loop(store: Path) -> None:
    ranks = np.stack(list(draw(1 + 40_000, times(0)).values())) == 1
    points = learning(store, axis="D").of_kind("point")
    of_one = [row for row in points if (row["training_seed"], row["size"]) == (1, "40000")]
    assert [row["x"] for row in of_one] == pytest.approx(D)
    for at, row in enumerate(of_one):
        assert row["learned"] == pytest.approx(ranks[at:].all(axis=0).mean(), abs=1e-12)
        assert row["settled"] == pytest.approx((ranks[at:] == ranks[-1]).all(axis=0).mean(), abs=1e-12)
        assert row["rbp"] == pytest.approx(ranks[at].mean(), abs=1e-12)
        assert row["passing"] == pytest.approx(row["rbp"] - row["learned"], abs=1e-12)
        assert row["learned_lo"] <= row["learned"] <= row["learned_hi"]


def test_the_tail_of_the_times_is_what_was_drawn(tmp_path: Path) -> None:
    """Of a training whose hits never change again."""
    store = Store(tmp_path)
    store.prepare()
    write_ranks(store, draw(3, times(4), flicker=0.0), np.zeros((N_DOCUMENTS, N_TOKENS), int))
    (tail,) = learning(store.root, axis="D").of_kind("tail")
    assert tail["c_lo"] <= 0.4 <= tail["c_hi"]
    assert tail["c"] == pytest.approx(0.4, rel=0.1)
    # Nothing flickers, so misses are what is not learned, and the law of RBP follows from the times.
    assert tail["alpha_of_tail"] == pytest.approx(tail["alpha"], rel=0.05)
    assert tail["alpha"] > 1.1 * tail["c"]
    assert tail["misses_rms"] < tail["law_rms"]
    assert abs(tail["tail_error"]) < abs(tail["law_error"])
    assert tail["status"] == "ok"
