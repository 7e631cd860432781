"""Training keeps clear of the evaluation, a kill loses nothing, the bundled ladder is what its recipe says."""

import json
import math
import re
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from safetensors import safe_open
from safetensors.torch import load_file

from rbpx.config.recipe import LadderSize, Objective, Recipe, TextConfig
from rbpx.errors import RbpxError
from rbpx.train.design import token_count
from rbpx.train.loss import chunked_loss
from rbpx.train.model import build_model, train_tokenizer
from rbpx.train.text import drop_shared, prepare_text
from tests.support.commands import here
from tests.support.ladder import SIZES, bundled_folder, tokenizer_folder
from tests.support.places import CONF, EXPERIMENTS, LADDER
from tests.support.warm import Warm


def a_site(folder: Path, files: dict[str, str]) -> Path:
    """A site folder with one installed distribution, `corpus 1.0`, that holds these files."""
    info = folder / "corpus-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: corpus\nVersion: 1.0\nLicense-Expression: MIT\n")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def written(n: int, word: str) -> str:
    """Some Python that is in no library, about 60 bytes a line."""
    return "".join(
        f"def {word}_{chr(97 + i % 26)}(self, other_{word}):\n    return self.{word} @ other_{word}\n" for i in range(n)
    )


def recipe_for(site: Path, version: str = "") -> Recipe:
    shapes = {"tiny": LadderSize(8, 1, 1)}
    small = {"vocab_size": 300, "tokens": 2048, "context": 32, "windows_per_step": 4, "warmup_steps": 4}
    return Recipe("test", TextConfig(str(site), {"corpus": version}), shapes, **small)


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


KEYS = (
    "~experiment", "+text.packages.corpus='1.0'", "+shapes.tiny={hidden: 8, layers: 1, heads: 1}",
    "vocab_size=300", "context=32", "windows_per_step=4", "warmup_steps=4",
    "device=cpu", "threads=1",
)  # fmt: skip
GRID = ("tokens=1280", "budgets=[5.2k]", "checkpoints=2", "seeds=[7]")  # 10 and 40 steps of 128 tokens


@pytest.fixture
def words(tmp_path: Path, small_evaluation: str) -> tuple[str, ...]:
    """Keys of a tiny ladder, whose text has 1,200 windows or so; its evaluation is small too."""
    files = {"corpus/own.py": written(6000, "matrix")[:95_000], "corpus/b.py": written(1500, "ring")}
    return ("train", f"text.site={a_site(tmp_path / 'site', files)}", *KEYS)


def weights_of(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    """The weights of each model below a folder, by its place there."""
    return {str(f.parent.relative_to(folder)): load_file(f) for f in sorted(folder.rglob("model.safetensors"))}


def assert_same(one: Path, other: Path) -> None:
    """Two ladders have the same models, to the bit, and the same records but for the time."""
    weights = weights_of(one), weights_of(other)
    assert weights[0].keys() == weights[1].keys()
    for model, tensors in weights[0].items():
        assert all(torch.equal(tensor, weights[1][model][name]) for name, tensor in tensors.items())
        facts = [json.loads((folder / model / "training.json").read_text()) for folder in (one, other)]
        assert facts[0] | {"wall_s": 0} == facts[1] | {"wall_s": 0}


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


@pytest.mark.parametrize(
    ("smoothing", "z_loss", "variant"), [(0, 0, None), (0.1, 0.01, "label_smoothing_0.1_z_loss_0.01")]
)
def test_a_finished_model_is_what_a_plain_loop_gives(
    words: tuple[str, ...], cwd: Path, tmp_path: Path, smoothing: float, z_loss: float, variant: str | None
) -> None:
    """Straight to its end, with torch's own cross-entropy and rates written out; the text is read more than once."""
    output = tmp_path / "ladder"
    asked = (f"objective.label_smoothing={smoothing}", f"objective.z_loss={z_loss}") if variant else ()
    here(*words, *asked, "tokens=2560", "budgets=[640]", "unique_tokens=1000", f"output={output}", cwd=cwd, check=0)
    facts = json.loads((output / "tiny" / "2.56k" / "training.json").read_text())
    assert (facts["steps"], facts["tokens"], facts["unique_tokens"], facts["variant"]) == (20, 2560, 31 * 32, variant)
    assert facts["settings"].get("objective") == ({"label_smoothing": smoothing, "z_loss": z_loss} if variant else None)
    parameters = 300 * 8 + 12 * 64 + 13 * 8 + 2 * 8
    assert facts["training_flops"] == 6 * parameters * 2560
    windows = np.load(output / "text" / "windows.npy")[:31].astype(np.int64)
    model = build_model(recipe_for(tmp_path), LadderSize(8, 1, 1), 42)
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in model.parameters() if (p.ndim > 1) == is_matrix], "weight_decay": decay}
         for is_matrix, decay in ((True, 0.1), (False, 0.0))],
        betas=(0.9, 0.95),
    )  # fmt: skip
    losses = []
    for step in range(20):
        share = min(1.0, (step + 1) / 4) if step < 16 else 1 - math.sqrt((step - 16) / 4)
        for group in optimizer.param_groups:
            group["lr"] = 0.04 / math.sqrt(8) * share
        ids = torch.from_numpy(windows[[(4 * step + i) % 31 for i in range(4)]])
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.gpt_neox(ids[:, :-1])[0]
        logits = hidden.float() @ model.gpt_neox.embed_in.weight.T
        flat = logits.flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(flat, ids[:, 1:].flatten(), label_smoothing=smoothing)
        (loss + z_loss * (flat.logsumexp(1) ** 2).mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(torch.nn.functional.cross_entropy(flat, ids[:, 1:].flatten()).item())
    assert facts["curve_nats"] == [pytest.approx(np.mean(losses), abs=1e-3)]
    assert facts["final_loss_nats"] == pytest.approx(losses[-1], abs=1e-3)


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


# ------------------------------------------------------------------------------------------------ the bundled ladder

STUDY = OmegaConf.load(EXPERIMENTS / "ladder.yaml")


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "training.json").read_text())
    return facts


def finished_folders(size: str) -> list[Path]:
    """The finished models of a size, by their tokens."""
    names = [None, *(name for name in SIZES[size].get("revisions", ()) if not name.startswith("raw-"))]
    return sorted((bundled_folder(size, name) for name in names), key=lambda folder: facts_of(folder)["tokens"])


def test_the_ladder_has_seven_sizes_over_three_orders_of_magnitude_in_sixty_megabytes() -> None:
    counts = [size["non_embedding_params"] for size in SIZES.values()]
    assert len(counts) >= 7
    assert max(counts) / min(counts) > 900
    assert sum(path.stat().st_size for path in LADDER.rglob("*") if path.is_file()) <= 60e6


def test_every_bundled_model_is_in_a_family_and_nothing_else_is_bundled() -> None:
    """Each folder of weights is of the ladder, or of the further seeds of its small sizes."""
    named = {bundled_folder(size, name) for size, of in SIZES.items() for name in (None, *of.get("revisions", ()))}
    seeds = CONF / "model" / "ladder-seeds.yaml"
    if seeds.is_file():
        entries = OmegaConf.to_container(OmegaConf.load(seeds))["sizes"]  # type: ignore[index,call-overload]
        named |= {LADDER.parent / entry["id"].removeprefix("rbpx:") for entry in entries.values()}
    assert {path.parent for path in LADDER.rglob("model.safetensors")} == named


@pytest.mark.parametrize("size", SIZES)
def test_a_bundled_model_is_what_the_family_says(size: str) -> None:
    # One layer has 12 d^2 + 13 d parameters, the last norm 2 d: S by hand.
    d, layers = STUDY.shapes[size].hidden, STUDY.shapes[size].layers
    assert SIZES[size]["non_embedding_params"] == layers * (12 * d * d + 13 * d) + 2 * d
    for folder in [bundled_folder(size, name) for name in (None, *SIZES[size].get("revisions", ()))]:
        config = json.loads((folder / "config.json").read_text())
        assert (config["model_type"], config["max_position_embeddings"], config["tie_word_embeddings"]) == (
            "gpt_neox",
            512,
            True,
        )
        assert (config["hidden_size"], config["num_hidden_layers"]) == (d, layers)
        with safe_open(folder / "model.safetensors", "pt") as weights:
            shapes = {name: weights.get_slice(name) for name in weights.keys()}
            assert {part.get_dtype() for part in shapes.values()} == {"BF16"}
            numbers = [int(np.prod(part.get_shape())) for name, part in shapes.items() if "embed" not in name]
        assert sum(numbers) == SIZES[size]["non_embedding_params"]
        assert not folder.name.startswith("raw-") or facts_of(folder)["variant"] == "raw"


def test_every_size_saw_the_same_tokens_with_one_tokenizer_and_bigger_is_better() -> None:
    facts = [facts_of(bundled_folder(size)) for size in SIZES]
    assert {fact["tokens"] for fact in facts} == {token_count(STUDY.tokens, "tokens") // (16 * 512) * 16 * 512}
    losses = [fact["final_loss_nats"] for fact in facts]
    assert losses == sorted(losses, reverse=True)
    tokenizers = {tokenizer_folder(bundled_folder(size)) / "tokenizer.json" for size in SIZES}
    assert len({path.read_bytes() for path in tokenizers}) == 1


@pytest.mark.parametrize("size", SIZES)
def test_more_tokens_are_better(size: str) -> None:
    facts = [facts_of(folder) for folder in finished_folders(size)]
    losses = [fact["final_loss_nats"] for fact in facts]
    assert losses == sorted(losses, reverse=True)
    assert {fact.get("variant") for fact in facts} == {None}


def test_the_study_records_the_text_the_cost_and_the_curves_of_what_is_shipped() -> None:
    shipped, study = json.loads((LADDER / "text.json").read_text()), STUDY.study
    assert study.text_hash == shipped["text_hash"]
    assert {p["name"]: p["version"] for p in shipped["packages"]} == dict(STUDY.text.packages)
    assert all(p["licence"] for p in shipped["packages"])
    for size in SIZES:
        for folder in finished_folders(size):
            facts = facts_of(folder)
            of_size = study.sizes[size]
            recorded = of_size[folder.name] if folder.parent.name == size else of_size  # one model a size lies in it
            assert recorded.final_loss_nats == pytest.approx(facts["final_loss_nats"], abs=0.001)
            assert recorded.wall_s == pytest.approx(facts["wall_s"], abs=1)
