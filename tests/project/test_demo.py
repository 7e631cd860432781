"""The demo, on two documents a text: the page shows the rows that it prints, its laws are those of numpy.

`make nightly` has the second demo, which measures nothing and prints the same.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import here
from tests.support.demo import run_demo
from tests.support.places import DOCS
from tests.support.shown import labels

FEW = {"pydoc": 2, "stdlib": 2}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The store that `make demo` fills, but for most of its texts, and what it printed."""
    return run_demo(tmp_path_factory.mktemp("demo"), FEW)


def test_a_demo_that_is_shown_has_the_rows_that_the_demo_prints(demo: tuple[Path, str]) -> None:
    tutorial = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    shown = labels(tutorial.split("<!-- demo -->")[1].split("<!-- /demo -->")[0])
    assert len(shown) >= 12
    assert [name for name in shown if name not in labels(demo[1])] == []


def test_the_laws_are_lines_through_counted_shares_and_cross_entropy_has_its_three_parts(
    demo: tuple[Path, str],
) -> None:
    store = demo[0]
    query = (
        "SELECT r.non_embedding_params AS s, t.greater + t.ties + 1 AS rank FROM tokens t JOIN runs r USING (run_id)"
    )
    words = ("--format", "json", "--store", store)
    tokens = json.loads(here("sql", f"{query} WHERE r.dataset = 'stdlib'", *words, cwd=store.parent, check=0).stdout)
    here("fit", "laws=all", *words, cwd=store.parent, check=0)
    fits = json.loads(here("sql", "FROM fits", *words, cwd=store.parent, check=0).stdout)
    S, rank = (np.array([row[name] for row in tokens]) for name in ("s", "rank"))
    sizes = np.unique(S)
    assert len(sizes) == 7
    for k in (1, 10, 100):
        (fit,) = (fit for fit in fits if (fit["law"], fit["k"], fit["dataset"]) == ("rbp", k, "stdlib"))
        ln_y = np.log([-np.log(np.mean(rank[S == size] <= k)) for size in sizes])
        assert fit["n_points"] == 7
        assert fit["alpha"] == pytest.approx(-np.polyfit(np.log(sizes), ln_y, 1)[0], rel=1e-9)
        assert fit["r2"] == pytest.approx(np.corrcoef(np.log(sizes), ln_y)[0, 1] ** 2, rel=1e-9)
        assert fit["alpha_lo"] < fit["alpha"] < fit["alpha_hi"]
    for dataset in ("pydoc", "stdlib"):
        y = {
            fit["law"]: np.array(json.loads(fit["params"])["y"])
            for fit in fits
            if fit["dataset"] == dataset and fit["k"] is None
        }
        parts = sum(y[law] for law in ("error_entropy", "self_alignment", "confidence"))
        np.testing.assert_allclose(parts, y["cross_entropy"], atol=1e-6)
