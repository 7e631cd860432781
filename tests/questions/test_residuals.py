"""Residuals of the laws as a figure: they are those of a straight line through the logarithms."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from tests.support.asking import ask
from tests.support.synthetic import Truth, write_store


def test_the_figure_shows_what_a_line_leaves_at_each_size(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=4, n_documents=10)
    answer = ask(store, "fit", laws=["rbp", "cross_entropy"], k=[1, 10], resamples=20)
    figure = next(figure for figure in answer.results[0].figures() if figure.name == "residuals")
    shown: dict[str, list[float]] = {}
    for row in figure.values.rows:
        shown.setdefault(row["series"], []).append(row["residual_ln"])
    assert list(shown) == ["cross-entropy", "−ln RBP_1", "−ln RBP_10"]
    for record in answer.rows:
        params, name = record["params"], "cross-entropy" if record["k"] is None else f"−ln RBP_{record['k']}"
        line = linregress(np.log(params["S"]), np.log(params["y"]))
        left = np.log(params["y"]) - line.intercept - line.slope * np.log(params["S"])
        assert shown[name] == pytest.approx(left.tolist(), abs=1e-9)
        assert f"{name}, off by {np.sqrt(np.mean(left**2)):.2g}" in figure.says
