"""Which models a recipe trains, on what, by which loss and at which rate: every number by hand."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from experiments.ladder.model import ChunkedLoss, build_model
from experiments.ladder.text import keep_apart
from experiments.ladder.train import Model, learning_rate_at, plan, read_recipe, token_count, token_label
from rbpx.errors import RbpxError
from rbpx.models.architecture import non_embedding_params
from tests.support.trainings import trained


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


@pytest.mark.parametrize("value", ["many", "", True, "1e999"])
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


def test_s_of_a_mamba_2_is_counted_by_hand() -> None:
    """Two layers of width 4, inner width 8, two heads, a state of 16: 40 channels go through the convolution of 4."""
    projections, convolution, of_heads, norms = 4 * (8 + 40 + 2) + 8 * 4, 40 * 4 + 40, 3 * 2, 8 + 4
    shape = OmegaConf.create({"architecture": "mamba2", "hidden": 4, "layers": 2, "heads": 2})
    with torch.device("meta"):
        model = build_model(OmegaConf.create({"vocab_size": 50, "context": 32}), shape, 0)
    assert non_embedding_params(model) == 2 * (projections + convolution + of_heads + norms) + 4


def test_only_files_that_share_a_whole_span_with_an_evaluation_text_are_dropped() -> None:
    evaluation = [np.arange(1000, 1200, dtype=np.uint16)]
    shares_50 = np.concatenate([np.arange(30), np.arange(1040, 1090), np.arange(30)]).astype(np.uint16)
    shares_49 = np.concatenate([np.arange(30), np.arange(1040, 1089), np.arange(30)]).astype(np.uint16)
    apart = np.concatenate([np.arange(1000, 1025), [7], np.arange(1025, 1050)]).astype(np.uint16)
    assert keep_apart([shares_50, shares_49, apart], evaluation, 50) == [False, True, True]


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_chunked_loss_and_its_gradients_equal_those_of_torch(smoothing: float) -> None:
    """Beside it stands plain cross-entropy, whatever is minimised."""
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(1300, 12, generator=generator, dtype=torch.float64, requires_grad=True)
    head = torch.randn(50, 12, generator=generator, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 50, (1300,), generator=generator)
    logits = hidden @ head.T
    plain = torch.nn.functional.cross_entropy(logits, targets)
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing)
    loss, nats = ChunkedLoss.apply(hidden, head, targets, smoothing)
    assert (loss.item(), nats.item()) == pytest.approx((expected.item(), plain.item()), rel=1e-12)
    assert not nats.requires_grad
    gradients = torch.autograd.grad(loss, (hidden, head)), torch.autograd.grad(expected, (hidden, head))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tokns=3"], "tokns"),
        (["--recipe", "nosuch"], "--recipe nosuch is not there; known: ladder, arms, mamba2"),
        (["size=[9k]"], "size=9k has no shape; sizes with a shape: 3k, 7k"),
        (["text.packages.accelerate=0.1"], "the training text needs"),
    ],
)
def test_a_mistake_gets_one_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(*words, f"output={tmp_path / 'ladder'}", check=2)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("train.py: ")
    assert message in line
