"""Which models a recipe trains, and at which rate: every number by hand."""

import math
from typing import Any

import pytest

from rbpx.cli.registry import asking
from rbpx.config.hydra.compose import compose
from rbpx.config.recipe import LadderSize, Recipe
from rbpx.errors import RbpxError
from rbpx.train.design import Planned, Trunk, token_count, token_label, total_params, training_flops, trunks
from rbpx.train.trunk import learning_rate_at

SHAPES = {"a": LadderSize(16, 1, 1), "b": LadderSize(24, 2, 1, learning_rate=0.08)}


def a_recipe(**keys: Any) -> Recipe:
    """Steps of 100 tokens, a warm-up of 10 steps."""
    small = {"context": 25, "windows_per_step": 4, "warmup_steps": 10, "vocab_size": 100, "tokens": 10_000}
    return Recipe("test", shapes=SHAPES, **small | keys)


def test_amounts_of_tokens_are_read_and_written_in_three_digits() -> None:
    read = {"8m": 8_000_000, "1.24M": 1_240_000, "930k": 930_000, "8_000": 8000, 1e6: 1_000_000, "0.2b": 200_000_000}
    assert [token_count(text, "tokens") for text in read] == list(read.values())
    written = {7_995_392: "8m", 1_236_992: "1.24m", 999_424: "999k", 999_900: "1m", 15_392_768: "15.4m", 640: "640"}
    assert [token_label(tokens) for tokens in written] == list(written.values())


@pytest.mark.parametrize("value", ["many", "m", "", "-1m", 0, True, "nan", "1e99"])
def test_what_is_no_amount_of_tokens_is_refused(value: Any) -> None:
    with pytest.raises(RbpxError, match=r"budgets of a: .* is not an amount of tokens; write 8_000_000, 8m or 930k"):
        trunks(a_recipe(budgets=[value]), ["a"])


def test_a_trunk_gives_finished_models_at_its_budgets_and_raw_ones_on_the_way() -> None:
    recipe = a_recipe(budgets={"a": ["2k", 40_050, "10k"]}, checkpoints={"a": 3}, seeds={"b": [7, 42, 7]})
    finished = [Planned("2k", 20, 16), Planned("10k", 100, 80), Planned("40k", 400, 320)]
    raw = [Planned("raw-300", 3, None), Planned("raw-3.2k", 32, None), Planned("raw-32k", 320, None)]
    a = Trunk("a", 42, (raw[0], finished[0], raw[1], finished[1], raw[2], finished[2]))
    b = Trunk("b", 42, (finished[1],))
    assert trunks(recipe, ["a", "b"]) == [a, b, Trunk("b", 7, (Planned("seed7-10k", 100, 80),))]


def test_compute_gives_each_size_its_tokens_where_they_are_in_the_range() -> None:
    a, b = 100 * 16 + (12 * 256 + 13 * 16) + 2 * 16, 100 * 24 + 2 * (12 * 576 + 13 * 24) + 2 * 24
    assert [total_params(a_recipe(), shape) for shape in SHAPES.values()] == [a, b]
    assert training_flops(a_recipe(), SHAPES["a"], 1000) == 6 * a * 1000
    recipe = a_recipe(flops=[6 * a * 50_000, 6 * b * 4000], flops_tokens=["3k", "50k"])
    budgets = {trunk.size: [model.revision for model in trunk.models] for trunk in trunks(recipe, ["a", "b"])}
    in_b = 6 * a * 50_000 // (6 * b * 100)
    assert budgets == {"a": ["10k", f"{4000 * b // a // 100 / 10:g}k", "50k"], "b": ["4k", "10k", f"{in_b / 10:g}k"]}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"budgets": [99]}, "a budget of 99 tokens is less than one step of 100"),
        ({"budgets": ["1.2k"]}, "begins to decay at step 10, within the 11 steps of warm-up"),
        ({"checkpoints": -1}, "checkpoints of a: -1 is not a whole number from 0"),
        ({"seeds": ["x"]}, "seeds of a: x is not a whole number from 0"),
        ({"flops": ["much"]}, "flops: much is not a number; write 1e13"),
        ({"decay": 1.5}, "decay=1.5 is not a share; give one from 0 to 1"),
        ({"budgets": {"c": ["2k"]}}, "budgets names c, which has no shape; sizes with a shape: a, b"),
        ({"flops_tokens": [5]}, r"flops_tokens=\[5\] is not a range; give the least and the most tokens"),
    ],
)
def test_a_design_that_cannot_be_trained_gets_its_line(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(RbpxError, match=message):
        trunks(a_recipe(warmup_steps=11, **keys), ["a"])


def test_the_rate_rises_stays_and_decays_in_its_branch_alone() -> None:
    recipe, peak = a_recipe(), 0.04 / 4
    trunk = [learning_rate_at(step, recipe, SHAPES["a"]) for step in (0, 4, 9, 10, 80, 1000)]
    assert trunk == [pytest.approx(peak * share) for share in (0.1, 0.5, 1, 1, 1, 1)]
    branch = [learning_rate_at(step, recipe, SHAPES["a"], (80, 100)) for step in (0, 50, 80, 85, 99)]
    shares = (0.1, 1, 1, 0.5, 1 - math.sqrt(0.95))
    assert branch == [pytest.approx(peak * share) for share in shares]
    assert learning_rate_at(50, recipe, SHAPES["b"]) == pytest.approx(0.08 / math.sqrt(24))


@pytest.mark.parametrize("study", [[], ["experiment=arms"]])
def test_budgets_and_seeds_of_all_sizes_take_the_place_of_those_of_each(study: list[str]) -> None:
    recipe = compose(asking("train"), [*study, "budgets=[1m,2m]", "seeds=[7]", "size=[3k,7k]"])
    assert recipe.budgets == ["1m", "2m"]
    assert recipe.seeds == [7]
    assert {trunk.seed for trunk in trunks(recipe, ["3k", "7k"])} == {recipe.seed, 7}
