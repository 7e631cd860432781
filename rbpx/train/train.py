"""The verb `train`: prepare the training text once, then train each size of a ladder."""

import sys
from pathlib import Path

import torch
from filelock import FileLock
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeRemainingColumn

from rbpx.config.recipe import Recipe, TrainRequest
from rbpx.errors import RbpxError
from rbpx.models.devices import require_cuda
from rbpx.train.model import train_size
from rbpx.train.text import prepare_text


def train_ladder(request: TrainRequest) -> None:
    """Prepare the text once, then train each requested size; sizes that are trained already are skipped.

    Raises:
        RbpxError: a size is unknown, the device is not available, or the text does not match the recipe.
    """
    recipe: Recipe = request
    sizes = request.size if isinstance(request.size, list) else [request.size]
    sizes = list(recipe.shapes) if sizes == ["all"] else sizes
    unknown = [size for size in sizes if size not in recipe.shapes]
    if unknown or not sizes:
        raise RbpxError(
            f"size={unknown[0] if unknown else 'none'} has no shape; sizes with a shape: {', '.join(recipe.shapes)}"
        )
    if recipe.n_steps < 1:
        raise RbpxError(f"tokens={recipe.tokens} is less than one step of {recipe.context * recipe.windows_per_step:,}")
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
    for size in sizes:
        final = _train_with_progress(console, recipe, size, text, output / size, device, request.checkpoint_s)
        console.print(f"{size}: loss {final:.3f} nats, in {output / size}", highlight=False)


def _device(device: str) -> str:
    """The torch device for a requested one."""
    if device == "split":
        raise RbpxError("device=split is for measuring; train with device=auto, cpu or cuda")
    if device == "cuda":
        require_cuda()
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


def _train_with_progress(
    console: Console, recipe: Recipe, size: str, text: Path, folder: Path, device: str, checkpoint_s: float
) -> float:
    """Train one size with a progress bar, or a line every 100 steps; returns its final loss in nats."""
    columns = (TextColumn("{task.description}"), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        bar = bars.add_task(size, total=recipe.n_steps)

        def report(step: int, loss_nats: float) -> None:
            bars.update(bar, completed=step, description=f"{size}: loss {loss_nats:.3f} nats")
            if not console.is_terminal and step % 100 == 0:
                print(
                    f"{size}: step {step} of {recipe.n_steps}, loss {loss_nats:.3f} nats", file=sys.stderr, flush=True
                )

        facts = train_size(recipe, size, text, folder, device, checkpoint_s, report)
    return float(facts["final_loss_nats"])
