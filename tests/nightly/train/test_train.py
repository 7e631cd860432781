"""Training keeps clear of the evaluation, a kill loses nothing, a finished model is what a plain loop gives."""

import json
import math
import re
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from rbpx.config.recipe import Objective
from rbpx.errors import RbpxError
from rbpx.train.loss import chunked_loss
from rbpx.train.model import train_tokenizer
from rbpx.train.text import drop_shared, prepare_text
from tests.support.commands import here
from tests.support.trainings import KEYS, a_site, assert_same, recipe_for, weights_of, written
from tests.support.warm import Warm


@pytest.mark.parametrize(("smoothing", "z_loss"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.01), (0.3, 0.002)])
def test_the_chunked_loss_and_its_gradients_equal_those_of_torch(smoothing: float, z_loss: float) -> None:
    """Beside it stands plain cross-entropy, whatever is minimised."""
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(1300, 12, generator=generator, dtype=torch.float64, requires_grad=True)
    head = torch.randn(50, 12, generator=generator, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 50, (1300,), generator=generator)
    logits = hidden @ head.T
    plain = torch.nn.functional.cross_entropy(logits, targets)
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing)
    expected = expected + z_loss * (logits.logsumexp(1) ** 2).mean()
    loss, nats = chunked_loss(hidden, head, targets, Objective(smoothing, z_loss))
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
    targets, smoothing, z_loss = [6, 0, 3, 3, 1], 0.1, 0.05

    def plain_loop(states: np.ndarray, rows: np.ndarray) -> float:
        total = 0.0
        for state, target in zip(states, targets, strict=True):
            z = [float(sum(a * b for a, b in zip(state, row, strict=True))) for row in rows]
            ln_Z = math.log(sum(math.exp(each) for each in z))
            wanted = [(1 - smoothing) * (v == target) + smoothing / 7 for v in range(7)]
            total += sum(share * (ln_Z - each) for share, each in zip(wanted, z, strict=True)) + z_loss * ln_Z**2
        return total / len(targets)

    loss, _ = chunked_loss(hidden, head, torch.tensor(targets), Objective(smoothing, z_loss))
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
    assert drop_shared([shares_50, shares_49, apart, short], evaluation, 50) == [False, True, True, True]


def test_a_file_with_a_copy_of_the_standard_library_is_not_trained_on(tmp_path: Path, small_evaluation: str) -> None:
    files = {
        "corpus/own.py": written(400, "matrix"),
        "corpus/copied.py": written(20, "vector") + small_evaluation[5000:9000],
        "corpus/tests/test_own.py": written(30, "tensor"),
        "corpus/table.py": "TABLE = [" + ", ".join(map(str, range(20_000, 22_000))) + "]\n",
    }
    prepare_text(recipe_for(a_site(tmp_path / "site", files)), tmp_path / "text")
    facts = json.loads((tmp_path / "text" / "text.json").read_text())
    assert (facts["files"], facts["files_dropped_for_shared_spans"]) == (1, 1)
    assert facts["packages"] == [{"name": "corpus", "version": "1.0", "licence": "MIT"}]
    assert np.load(tmp_path / "text" / "windows.npy").shape == (facts["windows"], 33)
    assert facts["windows"] == facts["tokens_available"] // 33


def test_a_package_of_another_version_is_refused(tmp_path: Path) -> None:
    site = a_site(tmp_path / "site", {"corpus/own.py": written(400, "matrix")})
    with pytest.raises(RbpxError, match=r"corpus 2\.0"):
        prepare_text(recipe_for(site, version="2.0"), tmp_path / "text")


@pytest.mark.usefixtures("small_evaluation")
def test_too_little_text_is_refused(tmp_path: Path) -> None:
    site = a_site(tmp_path / "site", {"corpus/own.py": written(3, "matrix")})
    with pytest.raises(RbpxError, match="but one step of the recipe takes 132"):
        prepare_text(recipe_for(site), tmp_path / "text")


GRID = ("tokens=1280", "budgets=[5.2k]", "checkpoints=2", "seeds=[7]")  # 10 and 40 steps of 128 tokens


@pytest.fixture
def words(tmp_path: Path, small_evaluation: str) -> tuple[str, ...]:
    """Keys of a tiny ladder, whose text has 1,200 windows or so; its evaluation is small too."""
    files = {"corpus/own.py": written(6000, "matrix")[:95_000], "corpus/b.py": written(1500, "ring")}
    return ("train", f"text.site={a_site(tmp_path / 'site', files)}", *KEYS)


def killed_when_written(words: tuple[str, ...], cwd: Path, file: Path) -> None:
    """Start a command in a process of its own, and kill it as soon as it has written a file."""
    before = file.stat().st_mtime_ns if file.is_file() else 0
    command, deadline = Warm(*words, cwd=cwd), time.monotonic() + 200
    while command.poll() is None and time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if file.stat().st_mtime_ns > before:
                break
        time.sleep(0.001)
    command.kill()
    command.communicate()
    assert command.returncode == -signal.SIGKILL


def test_a_training_that_is_killed_anywhere_continues_to_the_same_weights(
    words: tuple[str, ...], cwd: Path, tmp_path: Path
) -> None:
    """On the trunk, in a branch, after a model; those that are killed read the text prepared for the other."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    answer = here(*words, *GRID, f"output={whole}", cwd=cwd, check=0)
    assert "tiny 5.12k: loss" in answer.stderr
    shutil.copytree(whole / "text", killed / "text")
    line = (*words, *GRID, f"output={killed}")
    trunk, branch = (killed / "state" / f"tiny-seed42.{part}.pt" for part in ("trunk", "branch"))
    often = (*line, "checkpoint_s=0")
    killed_when_written(often, cwd, trunk)
    assert not (killed / "tiny" / "1.28k").exists()
    killed_when_written(often, cwd, killed / "tiny" / "1.28k" / "config.json")
    killed_when_written(often, cwd, branch)
    assert not (killed / "tiny" / "5.12k").exists()
    here(*line, cwd=cwd, check=0)
    assert_same(whole, killed)
    models = ("1.28k", "5.12k", "raw-128", "raw-4.1k", "seed7-1.28k")
    assert list(weights_of(whole)) == [f"tiny/{model}" for model in models]


def test_a_larger_budget_continues_the_trunk_and_a_smaller_one_repeats_it(
    words: tuple[str, ...], cwd: Path, tmp_path: Path
) -> None:
    """So it is with any objective."""
    once, grown = tmp_path / "once", tmp_path / "grown"
    words = (*words, "objective.label_smoothing=0.1")
    here(*words, "tokens=5120", "budgets=[1280,8960]", f"output={once}", cwd=cwd, check=0)
    shutil.copytree(once / "text", grown / "text")
    here(*words, "tokens=5120", f"output={grown}", cwd=cwd, check=0)
    longer = here(*words, "tokens=5120", "budgets=[8960]", f"output={grown}", cwd=cwd, check=0)
    assert "step 38 of 38, loss" in longer.stderr  # the trunk from step 32 to 56, the branch from there to 70
    here(*words, "tokens=5120", "budgets=[1280,8960]", f"output={grown}", cwd=cwd, check=0)
    assert_same(once, grown)


def test_models_of_another_recipe_are_refused(words: tuple[str, ...], cwd: Path, tmp_path: Path) -> None:
    output = f"output={tmp_path / 'ladder'}"
    here(*words, "tokens=1280", output, cwd=cwd, check=0)
    answer = here(*words, "tokens=1280", "learning_rate=0.05", output, cwd=cwd, check=2)
    assert "tiny/1.28k was trained with another recipe; train into another output=" in answer.stderr
    answer = here(*words, "tokens=2560", "learning_rate=0.05", output, cwd=cwd, check=2)
    assert "belongs to another recipe" in answer.stderr
    answer = here(*words, "tokens=1280", "objective.z_loss=0.001", output, cwd=cwd, check=2)
    assert "tiny/1.28k was trained with another recipe" in answer.stderr


@pytest.mark.parametrize("asked", ["label_smoothing=1", "label_smoothing=-0.1", "z_loss=-1", "z_loss=nan"])
def test_an_objective_that_is_none_is_refused(asked: str, cwd: Path, tmp_path: Path) -> None:
    answer = here("train", f"objective.{asked}", f"output={tmp_path / 'ladder'}", cwd=cwd, check=2)
    assert re.match(rf"rbpx: objective\.{asked.split('=')[0]}=\S+ is not a (share|weight)", answer.stderr)
    assert not (tmp_path / "ladder").exists()
