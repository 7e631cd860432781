"""The verb `train`: a request in, a folder of trained models with the provenance of their text out."""

import sys
from pathlib import Path

import torch
from filelock import FileLock
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeRemainingColumn

from rbpx.config.recipe import Recipe, TrainRequest
from rbpx.errors import RbpxError
from rbpx.train.ladder import train_size
from rbpx.train.text import prepare_text


def train_ladder(request: TrainRequest) -> None:
    """Prepare the text once, then train each size asked for; sizes that are trained already are left alone.

    Raises:
        RbpxError: an unknown size, no device, or a text that is not what the recipe says.
    """
    recipe: Recipe = request
    sizes = request.size if isinstance(request.size, list) else [request.size]
    sizes = list(recipe.shapes) if sizes == ["all"] else sizes
    unknown = [size for size in sizes if size not in recipe.shapes]
    if unknown or not sizes:
        raise RbpxError(f"size={unknown[0] if unknown else 'none'} has no shape; known: {', '.join(recipe.shapes)}")
    if recipe.n_steps < 1:
        raise RbpxError(f"tokens={recipe.tokens} is less than one step of {recipe.context * recipe.windows_per_step:,}")
    device = _device(request)
    if request.threads:
        torch.set_num_threads(request.threads)
    output = Path(request.output)
    text = output / "text"
    output.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    with FileLock(output / ".text.lock"):  # several processes may train different sizes at once
        if not (text / "text.json").is_file():
            console.print("preparing the training text: tokenizer, spans shared with the evaluation texts, windows")
            prepare_text(recipe, text)
    for size in sizes:
        final = _train_with_progress(console, request, size, text, output / size, device)
        console.print(f"{size}: loss {final:.3f} nats, in {output / size}", highlight=False)


def _device(request: TrainRequest) -> str:
    asked = request.device.value
    if asked == "split":
        raise RbpxError("device=split is for measuring; train with device=auto, cpu or cuda")
    if asked == "cuda" and not torch.cuda.is_available():
        raise RbpxError("device=cuda was asked for, but torch sees no CUDA device; use device=cpu or device=auto")
    return "cuda" if asked != "cpu" and torch.cuda.is_available() else "cpu"


def _train_with_progress(
    console: Console, request: TrainRequest, size: str, text: Path, folder: Path, device: str
) -> float:
    recipe: Recipe = request
    columns = (TextColumn("{task.description}"), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        bar = bars.add_task(size, total=recipe.n_steps)

        def report(step: int, loss_nats: float) -> None:
            bars.update(bar, completed=step, description=f"{size}: loss {loss_nats:.3f} nats")
            if not console.is_terminal and step % 100 == 0:
                print(
                    f"{size}: step {step} of {recipe.n_steps}, loss {loss_nats:.3f} nats", file=sys.stderr, flush=True
                )

        facts = train_size(recipe, size, text, folder, device, request.checkpoint_s, report)
    return float(facts["final_loss_nats"])
