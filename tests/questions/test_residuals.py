"""Residuals of the laws as a figure: they are those of a straight line through the logarithms."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from rbpx.display.chart.figure import Figure, Undrawn
from tests.support.asking import Asked, ask, imported
from tests.support.synthetic import Truth, write_store


def residuals(asked: Asked) -> Figure | Undrawn:
    (result,) = asked.results
    return next(figure for figure in result.figures() if figure.name == "residuals")


def test_the_figure_shows_what_a_line_leaves_at_each_size(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=4, n_documents=10)
    answer = ask(store, "fit", laws=["rbp", "cross_entropy"], k=[1, 10], resamples=20)
    figure = residuals(answer)
    assert isinstance(figure, Figure)
    shown = {}
    for row in figure.values.rows:
        shown.setdefault(row["series"], {})[row["non_embedding_params"]] = row["residual_ln"]
    assert list(shown) == ["CE", "k = 1", "k = 10"]
    for record in answer.rows:
        params, name = record["params"], "CE" if record["k"] is None else f"k = {record['k']}"
        line = linregress(np.log(params["S"]), np.log(params["y"]))
        left = np.log(params["y"]) - line.intercept - line.slope * np.log(params["S"])
        assert list(shown[name].values()) == pytest.approx(left.tolist(), abs=1e-9)
        assert f"{name}, off by {np.sqrt(np.mean(left**2)):.2g}" in figure.says


def test_laws_without_numbers_have_no_residuals(tmp_path: Path) -> None:
    table = "size,S,dataset,k,rbp\n" + "".join(f"m{S},{S},text,1,1.0\n" for S in (1000, 10000, 100000))
    asked = ask(imported(tmp_path / "store", table, ties="pessimistic"), "fit", laws=["rbp"])
    assert [row["alpha"] for row in asked.rows] == [None]
    assert isinstance(residuals(asked), Undrawn)
