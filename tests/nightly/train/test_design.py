"""Which models a recipe trains, and at which rate: every number by hand."""

import math
from typing import Any

import pytest
from omegaconf import OmegaConf

from experiments.ladder.train import Model, learning_rate_at, plan, read_recipe, token_count, token_label
from rbpx.errors import RbpxError


def a_recipe(**keys: Any) -> Any:
    """Steps of 100 tokens, a warm-up of 10 steps; sizes a and b."""
    recipe: dict[str, Any] = OmegaConf.to_container(read_recipe("ladder"))  # type: ignore[assignment]
    recipe |= {"context": 25, "windows_per_step": 4, "warmup_steps": 10, "vocab_size": 100, "learning_rate": 0.04}
    recipe |= {"tokens": 10_000, "budgets": None, "checkpoints": None, "seeds": None}
    shapes = {"a": {"hidden": 16}, "b": {"hidden": 24, "learning_rate": 0.08}}
    return OmegaConf.create(recipe | {"shapes": shapes} | keys)


def test_amounts_of_tokens_are_read_and_written_in_three_digits() -> None:
    read = {"8m": 8_000_000, "1.24M": 1_240_000, "930k": 930_000, "8_000": 8000, 1e6: 1_000_000, "0.2b": 200_000_000}
    assert [token_count(text) for text in read] == list(read.values())
    written = {7_995_392: "8m", 1_236_992: "1.24m", 999_424: "999k", 999_900: "1m", 15_392_768: "15.4m", 640: "640"}
    assert [token_label(tokens) for tokens in written] == list(written.values())


@pytest.mark.parametrize("value", ["many", "m", "", True, "nan", "1e999"])
def test_what_is_no_amount_of_tokens_is_refused(value: Any) -> None:
    with pytest.raises(RbpxError, match="is not an amount of tokens; write 8_000_000, 8m or 930k"):
        plan(a_recipe(budgets={"a": [value]}), "a", 42)


def test_a_trunk_gives_finished_models_at_its_budgets_and_raw_ones_on_the_way() -> None:
    recipe = a_recipe(budgets={"a": ["2k", 40_050, "10k"]}, checkpoints={"a": 3})
    finished = [Model("2k", 20, 16), Model("10k", 100, 80), Model("40k", 400, 320)]
    raw = [Model("raw-300", 3, None), Model("raw-3.2k", 32, None), Model("raw-32k", 320, None)]
    assert plan(recipe, "a", 42) == [raw[0], finished[0], raw[1], finished[1], raw[2], finished[2]]
    assert plan(recipe, "b", 42) == [finished[1]]
    assert plan(recipe, "a", 7) == [Model("seed7-10k", 100, 80)]


@pytest.mark.parametrize("tokens", [99, "1.2k", "-1m"])
def test_a_budget_whose_decay_begins_in_the_warm_up_is_refused(tokens: Any) -> None:
    with pytest.raises(RbpxError, match=r"begins to decay at step -?\d+, within the 11 of the warm-up; give a larger"):
        plan(a_recipe(warmup_steps=11, budgets={"a": [tokens]}), "a", 42)


def test_the_rate_rises_stays_and_decays_in_its_branch_alone() -> None:
    recipe, peak = a_recipe(), 0.04 / 4
    trunk = [learning_rate_at(step, recipe, recipe.shapes.a) for step in (0, 4, 9, 10, 80, 1000)]
    assert trunk == [pytest.approx(peak * share) for share in (0.1, 0.5, 1, 1, 1, 1)]
    branch = [learning_rate_at(step, recipe, recipe.shapes.a, (80, 100)) for step in (0, 50, 80, 85, 99)]
    shares = (0.1, 1, 1, 0.5, 1 - math.sqrt(0.95))
    assert branch == [pytest.approx(peak * share) for share in shares]
    assert learning_rate_at(50, recipe, recipe.shapes.b) == pytest.approx(0.08 / math.sqrt(24))
