"""The verb `train`: prepares the training text once, then trains the models of each size of a ladder.

Before it trains, it prints what the ladder costs: tokens, FLOPs, weights, and the time by a few steps on this machine.
"""

import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from filelock import FileLock
from rich.console import Console
from rich.progress import Progress, TextColumn
from rich.table import Table

from rbpx.config.recipe import Recipe, TrainRequest
from rbpx.display.vocabulary import time as duration
from rbpx.errors import RbpxError
from rbpx.files.entries import atomic_write_text
from rbpx.models.devices import require_cuda
from rbpx.train.design import Trunk, token_count, total_params, training_flops, trunks
from rbpx.train.text import prepare_text
from rbpx.train.trunk import TrunkTraining, begin

_PLAIN_EVERY_S = 15.0
_TIMED_STEPS = 3  # after one that is not timed


@dataclass(frozen=True)
class TrunkCost:
    """The cost of one trunk with its branches; the time is that of the steps that are left."""

    trunk: Trunk
    steps: int
    steps_left: int
    step_s: float
    flops: float
    mib: float

    @property
    def left_s(self) -> float:
        """Seconds until all models of the trunk are written."""
        return self.steps_left * self.step_s


def all_steps(trunk: Trunk) -> int:
    """Steps of a trunk up to the last model that leaves it, and those of its branches."""
    return max(model.leaves for model in trunk.models) + sum(model.step - model.leaves for model in trunk.models)


def costs(recipe: Recipe, planned: Sequence[tuple[Trunk, int]], device: str) -> list[TrunkCost]:
    """The cost of each trunk, given with the number of its steps that are left; each size is timed once, if any are."""
    timed: dict[str, float] = {}
    rows = []
    for trunk, left in planned:
        if left and trunk.size not in timed:
            timed[trunk.size] = step_seconds(recipe, trunk.size, device)
        shape, steps = recipe.shapes[trunk.size], all_steps(trunk)
        flops = training_flops(recipe, shape, steps * recipe.tokens_per_step)
        mib = len(trunk.models) * 2 * total_params(recipe, shape) / 2**20
        rows.append(TrunkCost(trunk, steps, left, timed.get(trunk.size, 0.0), flops, mib))
    return rows


def step_seconds(recipe: Recipe, size: str, device: str) -> float:
    """Seconds of one step: the median of a few, on random tokens."""
    training = begin(recipe, size, recipe.seed, device)
    ids_BT = torch.randint(0, recipe.vocab_size, (recipe.windows_per_step, recipe.context + 1))
    seconds = []
    for _ in range(1 + _TIMED_STEPS):
        started = time.monotonic()
        training.advance(ids_BT, 1e-6)
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds[1:])


def train_ladder(request: TrainRequest) -> None:
    """Prepare the text once, print the cost, then train each requested size; skip models that are written.

    Raises:
        RbpxError: a size is unknown, the device is not available, or the output has models of another recipe.
    """
    recipe: Recipe = request
    sizes = request.size if isinstance(request.size, list) else [request.size]
    sizes = list(recipe.shapes) if sizes == ["all"] else sizes
    unknown = [size for size in sizes if size not in recipe.shapes]
    if unknown or not sizes:
        raise RbpxError(
            f"size={unknown[0] if unknown else 'none'} has no shape; sizes with a shape: {', '.join(recipe.shapes)}"
        )
    planned = trunks(recipe, sizes)
    unique = None if recipe.unique_tokens is None else token_count(recipe.unique_tokens, "unique_tokens")
    device = _device(request.device.value)
    if request.threads:
        torch.set_num_threads(request.threads)
    output = Path(request.output)
    text = output / "text"
    output.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    with FileLock(output / ".text.lock"):  # several processes may train different sizes at the same time
        if not (text / "text.json").is_file():
            console.print("preparing the training text: tokenizer, spans shared with the evaluation texts, windows")
            prepare_text(recipe, text)
    trainings = [TrunkTraining(recipe, trunk, unique, output, device) for trunk in planned]
    rows = costs(recipe, [(trunk, each.steps_left()) for trunk, each in zip(planned, trainings, strict=True)], device)
    _print_costs(console, recipe, rows)
    with _Reporter(console, recipe, rows) as reporter:
        for row, training in zip(rows, trainings, strict=True):
            reporter.begin(row)
            training.run(request.checkpoint_s, reporter.step)
    family = write_family(recipe, planned, output)
    for trunk in planned:
        for model in trunk.models:
            folder = output / trunk.size / model.revision
            loss = json.loads((folder / "training.json").read_text())["final_loss_nats"]
            line = f"{trunk.size} {model.revision}: loss {loss:.3f} nats, in {folder}"
            console.print(line, highlight=False, soft_wrap=True)
    how = f"python -m rbpx --config-dir {output} model={family.stem} model.revision=all dataset=pydoc"
    console.print(f"to measure them: {how}", highlight=False, soft_wrap=True)


def _device(device: str) -> str:
    """The torch device for a requested one."""
    if device == "split":
        raise RbpxError("device=split is for measuring; train with device=auto, cpu or cuda")
    if device == "cuda":
        require_cuda()
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


def _print_costs(console: Console, recipe: Recipe, rows: Sequence[TrunkCost]) -> None:
    """Print a row for each trunk, and their sum."""
    table = Table("size", "seed", "models", "M tokens", "FLOPs", "weights, MiB", "left: M tokens", "left: time")
    million = recipe.tokens_per_step / 1e6

    def summed(rows: Sequence[TrunkCost]) -> list[str]:
        return [
            str(sum(len(row.trunk.models) for row in rows)),
            f"{sum(row.steps for row in rows) * million:.3g}",
            f"{sum(row.flops for row in rows):.2e}",
            f"{sum(row.mib for row in rows):.2f}",
            f"{sum(row.steps_left for row in rows) * million:.3g}",
            duration(sum(row.left_s for row in rows)),
        ]

    for row in rows:
        table.add_row(row.trunk.size, str(row.trunk.seed), *summed([row]))
    table.add_section()
    table.add_row("all", "", *summed(rows))
    console.print(table)


class _Reporter:
    """Shows the progress over all steps that are left: one changing line on a terminal, else a line now and then."""

    def __init__(self, console: Console, recipe: Recipe, rows: Sequence[TrunkCost]) -> None:
        self._console, self._tokens_per_step = console, recipe.tokens_per_step
        self._left_s = sum(row.left_s for row in rows)
        self._bars = Progress(TextColumn("{task.description}"), console=console, disable=not console.is_terminal)
        self._bar = self._bars.add_task("")
        self._said = time.monotonic()

    def __enter__(self) -> "_Reporter":
        self._bars.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._bars.stop()

    def begin(self, row: TrunkCost) -> None:
        """Note that the training of a trunk begins."""
        self._row, self._after_s = row, self._left_s - row.left_s
        self._left_s, self._steps, self._began = self._after_s, 0, time.monotonic()

    def step(self, steps: int, loss_nats: float) -> None:
        """Note that `steps` more steps of it are done."""
        self._steps += steps
        now = time.monotonic()
        step_s = (now - self._began) / self._steps
        left_s = (self._row.steps_left - self._steps) * step_s + self._after_s
        line = (
            f"{self._row.trunk.name}: step {self._steps} of {self._row.steps_left}, loss {loss_nats:.3f} nats, "
            f"{self._tokens_per_step / step_s:,.0f} tokens/s, {duration(left_s)} left"
        )
        self._bars.update(self._bar, description=line)
        if not self._console.is_terminal and (now - self._said > _PLAIN_EVERY_S or self._steps == self._row.steps_left):
            print(line, file=sys.stderr, flush=True)
            self._said = now


def write_family(recipe: Recipe, planned: Sequence[Trunk], output: Path) -> Path:
    """Write `model/NAME.yaml` into the output: each size with its checkpoints, further seeds as sizes of their own.

    Sizes that the file has from an earlier training stay in it, and so do checkpoints that are still there. The family
    has the name in the recipe, else that of the output's folder.
    """
    name = recipe.family or output.resolve().name
    path = output / "model" / f"{name}.yaml"
    sizes = yaml.safe_load(path.read_text(encoding="utf-8"))["sizes"] if path.is_file() else {}
    for trunk in planned:
        own = trunk.model_of(token_count(recipe.tokens, "tokens") // recipe.tokens_per_step).revision
        is_main = trunk.seed == recipe.seed
        label = trunk.size if is_main else trunk.name
        folder = (output / trunk.size).resolve()
        entry = {"id": str(folder / own), "non_embedding_params": recipe.shapes[trunk.size].non_embedding_params}
        others = [model.revision for model in trunk.models if model.revision != own]
        if is_main:
            there = [revision for revision in sizes.get(label, {}).get("revisions", []) if (folder / revision).is_dir()]
            others += [revision for revision in there if revision not in (own, *others)]
        sizes[label] = entry | ({"revisions": others} if others else {})
    ordered = dict(sorted(sizes.items(), key=lambda entry: (entry[1]["non_embedding_params"], entry[0])))
    text = yaml.safe_dump({"family": name, "bos": "tokenizer", "sizes": ordered}, sort_keys=False, width=110)
    atomic_write_text(path, "# Written by python -m rbpx train.\n" + text)
    return path
