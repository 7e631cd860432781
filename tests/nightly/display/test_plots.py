"""Plots of each question that draws in a terminal."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Answer, here
from tests.support.synthetic import Truth, write_store

PLOTTED = ("fit", "regimes", "klaw", "emergence", "gaps")  # of one family; pooled has a test of its own
RESAMPLES = "resamples=50"
ONE = ("dataset=file", "dataset.name=one")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two texts of five sizes."""
    root = tmp_path_factory.mktemp("plots") / "store"
    write_store(root, Truth(), seed=1, dataset="one")
    write_store(root, Truth(C=5.0, alpha=0.08), seed=2, dataset="two")
    return root


def ask(store: Path, cwd: Path, verb: str, *words: str, **more: Any) -> Answer:
    return here(verb, RESAMPLES, "--store", store, *words, cwd=cwd, **more)


@pytest.mark.parametrize("verb", PLOTTED)
def test_a_plot_fits_80_columns(verb: str, store: Path, cwd: Path) -> None:
    words = {"emergence": ["n=[1,2,5]", "k=10"], "fit": ["laws=[rbp,cross_entropy]"]}.get(verb, [])
    shown = ask(store, cwd, verb, *words, "--plot", check=0).stdout
    lines = [line for line in shown.splitlines() if re.match(r"\s*[-\d.e]*\s*[│┤└]", line)]
    assert sum("└" in line for line in lines) == {"fit": 6, "regimes": 6, "gaps": 1}.get(verb, 2)
    assert max(map(len, lines)) <= 80
    assert any("●" in line for line in lines)


def test_a_plot_follows_the_same_table(store: Path, cwd: Path) -> None:
    table, plotted = (ask(store, cwd, "klaw", *ONE, *more, check=0).stdout for more in ([], ["--plot"]))
    assert plotted.startswith(f"{table}\ndrawn on one: -ln RBP_k against k\n")


def test_a_law_without_numbers_says_why_in_its_legend(store: Path, cwd: Path) -> None:
    plot = ask(store, cwd, "fit", *ONE, "size=['1000','10000']", "laws=[rbp]", "--plot", check=2)
    assert "3 sizes" in plot.stderr
    plot = ask(store, cwd, "emergence", *ONE, "k=1", "n=[1,10]", "--plot", check=0)
    assert "■ N = 10: not positive" in plot.stdout
