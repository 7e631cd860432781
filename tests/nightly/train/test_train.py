"""Training keeps clear of the evaluation, a kill loses nothing, a finished model is what a plain loop gives."""

import json
import math
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from experiments.ladder.model import ChunkedLoss
from experiments.ladder.text import keep_apart, prepare_text, train_tokenizer
from experiments.ladder.train import read_recipe
from rbpx.errors import RbpxError
from tests.support.places import PROJECT
from tests.support.trainings import a_site, assert_same, recipe_file, trained, weights_of, written


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
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


def test_the_gradient_of_a_smoothed_loss_is_that_of_a_plain_loop() -> None:
    """Differences of the loss, written out position by position in float64."""
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    head = torch.randn(7, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    targets, smoothing = [6, 0, 3, 3, 1], 0.1

    def plain_loop(states: np.ndarray, rows: np.ndarray) -> float:
        total = 0.0
        for state, target in zip(states, targets, strict=True):
            z = [float(sum(a * b for a, b in zip(state, row, strict=True))) for row in rows]
            ln_Z = math.log(sum(math.exp(each) for each in z))
            wanted = [(1 - smoothing) * (v == target) + smoothing / 7 for v in range(7)]
            total += sum(share * (ln_Z - each) for share, each in zip(wanted, z, strict=True))
        return total / len(targets)

    loss, _ = ChunkedLoss.apply(hidden, head, torch.tensor(targets), smoothing)
    factors = hidden.detach().numpy(), head.detach().numpy()
    assert loss.item() == pytest.approx(plain_loop(*factors), rel=1e-12)
    for which, gradient in enumerate(torch.autograd.grad(loss, (hidden, head))):
        for at in np.ndindex(*factors[which].shape):
            moved = [[factor.copy() for factor in factors] for _ in range(2)]
            moved[0][which][at] += 1e-5
            moved[1][which][at] -= 1e-5
            slope = (plain_loop(*moved[0]) - plain_loop(*moved[1])) / 2e-5
            assert gradient[at].item() == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_the_tokenizer_returns_every_text_as_it_was() -> None:
    tokenizer = train_tokenizer([written(40, "matrix"), "naïve ▁ 𝛼\t\r\n  x"], 300)
    for text in ("naïve ▁ 𝛼\t\r\n  x", "tab\there", "   ", "日本語"):
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_only_files_that_share_a_whole_span_with_an_evaluation_text_are_dropped() -> None:
    evaluation = [np.arange(1000, 1200, dtype=np.uint16)]
    shares_50 = np.concatenate([np.arange(30), np.arange(1040, 1090), np.arange(30)]).astype(np.uint16)
    shares_49 = np.concatenate([np.arange(30), np.arange(1040, 1089), np.arange(30)]).astype(np.uint16)
    apart = np.concatenate([np.arange(1000, 1025), [7], np.arange(1025, 1050)]).astype(np.uint16)
    short = np.arange(1000, 1030, dtype=np.uint16)
    assert keep_apart([shares_50, shares_49, apart, short], evaluation, 50) == [False, True, True, True]


def recipe_for(folder: Path, files: dict[str, str]) -> Any:
    return read_recipe(str(recipe_file(folder, a_site(folder / "site", files))))


def test_a_file_with_a_copy_of_the_standard_library_is_not_trained_on(tmp_path: Path, small_evaluation: str) -> None:
    files = {
        "corpus/own.py": written(400, "matrix"),
        "corpus/copied.py": written(20, "vector") + small_evaluation[5000:9000],
        "corpus/tests/test_own.py": written(30, "tensor"),
        "corpus/table.py": "TABLE = [" + ", ".join(map(str, range(20_000, 22_000))) + "]\n",
    }
    prepare_text(recipe_for(tmp_path, files), tmp_path / "text")
    facts = json.loads((tmp_path / "text" / "text.json").read_text())
    assert (facts["files"], facts["files_dropped_for_shared_spans"]) == (1, 1)
    assert facts["packages"] == [{"name": "corpus", "version": "1.0", "licence": "MIT"}]
    assert np.load(tmp_path / "text" / "windows.npy").shape == (facts["windows"], 33)
    assert facts["windows"] == facts["tokens_available"] // 33


def test_a_package_of_another_version_is_refused(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path, {"corpus/own.py": written(400, "matrix")})
    recipe.text.packages.corpus = "2.0"
    with pytest.raises(RbpxError, match=r"corpus 2\.0"):
        prepare_text(recipe, tmp_path / "text")


@pytest.mark.usefixtures("small_evaluation")
def test_too_little_text_is_refused(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path, {"corpus/own.py": written(3, "matrix")})
    with pytest.raises(RbpxError, match="but one step of the recipe takes 132"):
        prepare_text(recipe, tmp_path / "text")


GRID: dict[str, Any] = {"budgets": {"tiny": ["5.2k"]}, "checkpoints": {"tiny": 2}, "seeds": {"tiny": [7]}}
"""10 and 40 steps of 128 tokens."""


@pytest.fixture
def site(tmp_path: Path, small_evaluation: str) -> Path:
    """The text of a tiny ladder, 1,200 windows or so; its evaluation is small too."""
    files = {"corpus/own.py": written(6000, "matrix")[:95_000], "corpus/b.py": written(1500, "ring")}
    return a_site(tmp_path / "site", files)


def killed_when_written(words: Sequence[object], file: Path) -> None:
    """Start a training in a process of its own, and kill it as soon as it has written a file."""
    before = file.stat().st_mtime_ns if file.is_file() else 0
    command = subprocess.Popen([sys.executable, PROJECT / "experiments" / "ladder" / "train.py", *map(str, words)])
    deadline = time.monotonic() + 200
    while command.poll() is None and time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if file.stat().st_mtime_ns > before:
                break
        time.sleep(0.001)
    command.kill()
    assert command.wait() == -signal.SIGKILL


def test_a_training_that_is_killed_anywhere_continues_to_the_same_weights(site: Path, tmp_path: Path) -> None:
    """On the trunk, in a branch, after a model; those that are killed read the text prepared for the other."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    path = recipe_file(tmp_path, site, **GRID)
    trained("--recipe", path, f"output={whole}")
    shutil.copytree(whole / "text", killed / "text")
    line = ("--recipe", path, f"output={killed}")
    often = (*line, "checkpoint_s=0")
    killed_when_written(often, killed / "state" / "tiny-seed42.trunk.pt")
    assert not (killed / "tiny" / "1.28k").exists()
    killed_when_written(often, killed / "tiny" / "1.28k" / "config.json")
    assert not (killed / "tiny" / "5.12k").exists()
    trained(*line)
    assert_same(whole, killed)
    models = ("1.28k", "5.12k", "raw-128", "raw-4.1k", "seed7-1.28k")
    assert list(weights_of(whole)) == [f"tiny/{model}" for model in models]


def test_a_larger_budget_continues_the_trunk_and_a_smaller_one_repeats_it(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So it is with smoothed labels."""
    once, grown = tmp_path / "once", tmp_path / "grown"

    def train(output: Path, *budgets: int) -> str:
        path = recipe_file(tmp_path, site, budgets={"tiny": list(budgets)}, label_smoothing=0.1)
        trained("--recipe", path, "tokens=5120", f"output={output}")
        return capsys.readouterr().out

    train(once, 1280, 8960)
    shutil.copytree(once / "text", grown / "text")
    train(grown)
    assert re.findall(r"step (\d+) of", train(grown, 8960)) == ["56", "70"]  # the trunk from step 32, the branch
    train(grown, 1280, 8960)
    assert_same(once, grown)


def test_models_of_another_recipe_are_refused(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ("--recipe", recipe_file(tmp_path, site), f"output={tmp_path / 'ladder'}")
    trained(*line)
    for words, message in (
        (("learning_rate=0.05",), "tiny/1.28k was trained with another recipe; train into another output="),
        (("learning_rate=0.05", "tokens=2560"), "belongs to another recipe"),
        (("label_smoothing=0.1",), "tiny/1.28k was trained with another recipe"),
    ):
        trained(*line, *words, check=2)
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tokns=3"], "tokns"),
        (["--recipe", "nosuch"], "--recipe nosuch is not there; known: ladder, arms, mamba2"),
        (["size=[9k]"], "size=9k has no shape; sizes with a shape: 3k, 7k"),
        (["tokens=many"], "many is not an amount of tokens; write 8_000_000, 8m or 930k"),
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
