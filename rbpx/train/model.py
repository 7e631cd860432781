"""Train one size of a ladder on prepared windows and write it as a Hugging Face model folder; resumes if killed."""

import json
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

from rbpx.config.recipe import LadderSize, Recipe
from rbpx.files.atomic import atomic_write, leftovers
from rbpx.train.loss import chunked_cross_entropy
from rbpx.train.tokenizer import END_OF_TEXT

_CURVE_STEPS = 20  # steps averaged into one point of the loss curve
Report = Callable[[int, float], None]


def build_model(recipe: Recipe, shape: LadderSize) -> GPTNeoXForCausalLM:
    """A float32 GPT-NeoX of this shape with seeded initial weights and tied embeddings."""
    torch.manual_seed(recipe.seed)
    config = GPTNeoXConfig(
        vocab_size=recipe.vocab_size,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.hidden,
        max_position_embeddings=recipe.context,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": shape.rotary},
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPTNeoXForCausalLM(config)


def learning_rate_at(step: int, recipe: Recipe, shape: LadderSize) -> float:
    """Linear warm-up to learning_rate / sqrt(hidden), then a cosine to a tenth of it."""
    peak = (shape.learning_rate or recipe.learning_rate) / math.sqrt(shape.hidden)
    if step < recipe.warmup_steps:
        return peak * (step + 1) / recipe.warmup_steps
    share = (step - recipe.warmup_steps) / max(1, recipe.n_steps - recipe.warmup_steps)
    return peak * (0.55 + 0.45 * math.cos(math.pi * share))


def _optimizer(model: torch.nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)


def _save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    with atomic_write(path) as temporary:
        torch.save(state, temporary)


def train_size(
    recipe: Recipe, size: str, text: Path, folder: Path, device: str, checkpoint_s: float, report: Report
) -> dict[str, Any]:
    """Train one size on the prepared text and write it to `folder`; returns its record (loss, time, curve).

    Args:
        recipe: what to train.
        size: name of the size in `recipe.shapes`.
        text: folder with `windows.npy` and `tokenizer.json`.
        folder: where the model goes; a checkpoint beside it lets an interrupted training continue.
        device: torch device.
        checkpoint_s: seconds between checkpoints.
        report: called with (step, loss in nats) after each step.
    """
    facts_path, checkpoint = folder / "training.json", folder.with_name(f"{size}.checkpoint.pt")
    if facts_path.is_file():
        facts: dict[str, Any] = json.loads(facts_path.read_text())
        return facts
    for leftover in [*leftovers(checkpoint), *leftovers(folder)]:  # of a training that was killed while it wrote
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    shape = recipe.shapes[size]
    model = build_model(recipe, shape).to(device).train()
    optimizer = _optimizer(model, recipe)
    step, wall_s, losses = 0, 0.0, []
    if checkpoint.is_file():
        state = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, wall_s, losses = state["step"], state["wall_s"], state["losses"]

    windows = np.load(text / "windows.npy", mmap_mode="r")
    started = saved = time.monotonic()
    folder.parent.mkdir(parents=True, exist_ok=True)
    while step < recipe.n_steps:
        rows = windows[step * recipe.windows_per_step : (step + 1) * recipe.windows_per_step]
        ids_BT = torch.from_numpy(rows.astype(np.int64)).to(device)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, recipe, shape)
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            hidden_BTD = model.gpt_neox(ids_BT[:, :-1], use_cache=False)[0]
        loss = chunked_cross_entropy(
            hidden_BTD.float().flatten(0, 1), model.get_output_embeddings().weight, ids_BT[:, 1:].flatten()
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        step += 1
        report(step, losses[-1])
        if time.monotonic() - saved > checkpoint_s:
            saved = time.monotonic()
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            _save_checkpoint(checkpoint, state | {"wall_s": wall_s + saved - started, "losses": losses})

    wall_s += time.monotonic() - started
    facts = {
        "size": size,
        "steps": step,
        "tokens": step * recipe.windows_per_step * recipe.context,
        "training_seed": recipe.seed,
        "final_loss_nats": float(np.mean(losses[-50:])),
        "wall_s": round(wall_s, 1),
        "curve_nats": [round(float(np.mean(losses[i : i + _CURVE_STEPS])), 4) for i in range(0, step, _CURVE_STEPS)],
    }
    _write_model(model, text / "tokenizer.json", folder, recipe.context, facts)
    checkpoint.unlink(missing_ok=True)
    return facts


def _write_model(model: GPTNeoXForCausalLM, tokenizer: Path, folder: Path, context: int, facts: dict[str, Any]) -> None:
    """A model folder is whole or absent."""
    with atomic_write(folder) as parts:
        model.to(torch.bfloat16).save_pretrained(parts)
        (parts / "generation_config.json").unlink(missing_ok=True)
        PreTrainedTokenizerFast(
            tokenizer_file=str(tokenizer),
            eos_token=END_OF_TEXT,
            model_max_length=context,
            clean_up_tokenization_spaces=False,
        ).save_pretrained(parts)
        (parts / "training.json").write_text(json.dumps(facts) + "\n")
