"""A ladder that is no transformer: the points of the study are those of its recipe."""

import csv
import math

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
