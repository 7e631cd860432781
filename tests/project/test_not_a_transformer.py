"""A ladder that is no transformer: the study's points are those of its recipe, its exponents those of plain lines."""

import csv
import math

import numpy as np
import pytest
import torch

from experiments.ladder.model import build_model
from experiments.ladder.train import read_recipe
from rbpx.models.architecture import non_embedding_params, total_params
from tests.support.places import EXPERIMENTS

BUDGETS = {"1.24m": (6, 6), "8m": (6, 7)}  # sizes of Mamba-2 and of the transformer
POINTS = {
    tokens: list(csv.DictReader((EXPERIMENTS / f"mamba2_{tokens}.csv").read_text().splitlines())) for tokens in BUDGETS
}


@pytest.mark.parametrize("tokens", BUDGETS)
def test_the_points_are_of_the_shapes_of_the_recipe_and_of_equal_tokens(tokens: str) -> None:
    points = POINTS[tokens]
    recipe = read_recipe("mamba2")  # with the shapes of the ladder
    assert (
        len({(row["family"], row["size"], row["dataset"]) for row in points}) == len(points) == 2 * sum(BUDGETS[tokens])
    )
    assert len({row["D"] for row in points}) == 1
    for row in points:
        with torch.device("meta"):
            model = build_model(recipe, recipe.shapes[row["size"]], 0)
        assert int(row["S"]) == non_embedding_params(model)
        assert int(row["total_params"]) == total_params(model)
        assert float(row["C"]) == 6 * int(row["total_params"]) * int(row["D"])
    sizes = [int(row["S"]) for row in points if row["family"] == "mamba2"]
    assert math.log10(max(sizes) / min(sizes)) > 2.5


@pytest.mark.parametrize("tokens", BUDGETS)
@pytest.mark.parametrize("family", ["mamba2", "transformer"])
@pytest.mark.parametrize("dataset", ["pydoc", "stdlib"])
def test_the_recorded_exponents_are_the_slopes_of_plain_lines(tokens: str, family: str, dataset: str) -> None:
    rows = [row for row in POINTS[tokens] if (row["family"], row["dataset"]) == (family, dataset)]
    ln_S = np.log([float(row["S"]) for row in rows])
    losses = {
        "cross_entropy": [float(row["cross_entropy_nats"]) for row in rows],
        "rbp 1": [-math.log(float(row["rbp"])) for row in rows],
    }
    findings = (EXPERIMENTS / "not_a_transformer.yaml").read_text().partition("# ---- findings")[2]
    for quantity, y in losses.items():
        (line,) = (
            line for line in findings.splitlines()
            if line.split()[1:3] == [tokens, dataset] and f" {quantity} " in line and f" {family} " in line
        )  # fmt: skip
        recorded = line.partition(" alpha ")[2].split()
        assert float(recorded[0]) == pytest.approx(-np.polyfit(ln_S, np.log(y), 1)[0], abs=5.1e-4)
        assert float(recorded[3]) == pytest.approx(np.corrcoef(ln_S, np.log(y))[0, 1] ** 2, abs=5.1e-4)
