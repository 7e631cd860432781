"""Trains one trunk and the models that leave it; continues after a kill, and later for further budgets.

Two files hold the state of what is in progress: one the trunk, saved now and then and wherever a branch leaves it, and
one the branch. A model's folder is whole or absent, so a model whose folder is there needs no more work.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rbpx.config.model.training import RAW
from rbpx.config.recipe import Objective, Recipe, Shape
from rbpx.errors import RbpxError
from rbpx.files.entries import atomic_remove, atomic_write, leftovers
from rbpx.train.design import Planned, Trunk, training_flops
from rbpx.train.loss import chunked_loss
from rbpx.train.model import build_model, build_optimizer, write_model

_CURVE_STEPS = 20  # steps averaged into one point of the loss curve
Report = Callable[[int, float], None]


@dataclass
class Windows:
    """The windows of the text in the order in which steps read them; after the last one they begin again."""

    ids: np.ndarray
    order: np.ndarray
    per_step: int

    @classmethod
    def of(cls, text: Path, recipe: Recipe, unique: int | None, seed: int) -> "Windows":
        """Windows of the prepared text, in their order for the recipe's own seed, in another for any other seed."""
        ids = np.load(text / "windows.npy", mmap_mode="r")
        n = len(ids) if unique is None else min(len(ids), max(1, unique // recipe.context))
        order = np.arange(n) if seed == recipe.seed else np.random.default_rng(seed).permutation(n)
        return cls(ids, order, recipe.windows_per_step)

    def at(self, step: int) -> torch.Tensor:
        """Token ids of a step's windows [windows_per_step, context + 1]."""
        rows = np.arange(step * self.per_step, (step + 1) * self.per_step) % len(self.order)
        return torch.from_numpy(self.ids[self.order[rows]].astype(np.int64))

    def unique_tokens(self, step: int) -> int:
        """Number of distinct tokens of the text that `step` steps read."""
        return min(step * self.per_step, len(self.order)) * int(self.ids.shape[1] - 1)


@dataclass
class Training:
    """A model in training: its weights, its optimizer, its losses and the time it has taken."""

    model: Any
    optimizer: torch.optim.AdamW
    objective: Objective
    step: int = 0
    wall_s: float = 0.0
    losses: list[float] = field(default_factory=list)

    def state(self, settings: dict[str, Any]) -> dict[str, Any]:
        """All that is needed to continue."""
        parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {"settings": settings, **parts, "step": self.step, "wall_s": self.wall_s, "losses": self.losses}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from such a state."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.wall_s, self.losses = state["step"], state["wall_s"], list(state["losses"])

    def advance(self, ids_BT: torch.Tensor, rate: float) -> float:
        """One step of the optimizer; returns the cross-entropy before it, in nats."""
        started = time.monotonic()
        ids_BT = ids_BT.to(self.model.device)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(ids_BT.device.type, torch.bfloat16):
            hidden_BTD = self.model.base_model(ids_BT[:, :-1], use_cache=False)[0]
        head_VD = self.model.get_output_embeddings().weight
        targets_N = ids_BT[:, 1:].flatten()
        loss, nats = chunked_loss(hidden_BTD.float().flatten(0, 1), head_VD, targets_N, self.objective)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(nats.item())
        self.step += 1
        self.wall_s += time.monotonic() - started
        return self.losses[-1]


def begin(recipe: Recipe, size: str, seed: int, device: str) -> Training:
    """Begin a training: a model with initial weights, and its optimizer."""
    model = build_model(recipe, recipe.shapes[size], seed).to(device).train()
    return Training(model, build_optimizer(model, recipe), recipe.objective)


class TrunkTraining:
    """Trains one trunk of a ladder, and keeps its files."""

    def __init__(self, recipe: Recipe, trunk: Trunk, unique: int | None, output: Path, device: str) -> None:
        """Train nothing yet."""
        self._recipe, self._trunk, self._device = recipe, trunk, device
        self._text, self._folder = output / "text", output / trunk.size
        self._unique = unique
        self._trunk_file = output / "state" / f"{trunk.name}.trunk.pt"
        self._branch_file = output / "state" / f"{trunk.name}.branch.pt"
        text = json.loads((self._text / "text.json").read_text())
        keys = ("vocab_size", "context", "windows_per_step", "learning_rate", "warmup_steps", "weight_decay")
        self._settings = {key: getattr(recipe, key) for key in keys} | {
            "shape": asdict(recipe.shapes[trunk.size]),
            "training_seed": trunk.seed,
            "windows_hash": text["windows_hash"],
            "unique_tokens": unique,
        }
        if recipe.objective.variant is not None:  # older trainings, from before there was a choice, have no objective
            self._settings["objective"] = asdict(recipe.objective)

    def missing(self) -> list[Planned]:
        """The models that are not written yet, in the order in which they leave the trunk.

        Raises:
            RbpxError: a model that is written was trained with another recipe.
        """
        missing = []
        for model in self._trunk.models:
            folder = self._folder / model.revision
            try:
                facts = json.loads((folder / "training.json").read_text())
            except FileNotFoundError:
                missing.append(model)
                continue
            if facts.get("settings") != self._settings_of(model):
                raise RbpxError(f"{folder} was trained with another recipe; train into another output=")
        return missing

    def steps_left(self) -> int:
        """Optimizer steps until every model is written."""
        missing = self.missing()
        if not missing:
            return 0
        trunk, branch = self._read(self._trunk_file), self._read(self._branch_file)
        at = self._trunk_step(trunk, missing)
        steps = max(model.leaves for model in missing) - at
        for model in missing:
            begun = None if model.start is None or branch is None or branch["end"] != model.step else branch
            steps += model.step - (model.leaves if begun is None else begun["step"])
        return steps

    def run(self, checkpoint_s: float, report: Report) -> None:
        """Train until every model is written; continue a training that was killed from what it saved.

        Args:
            checkpoint_s: seconds between saves.
            report: called after each step with 1 and the loss in nats.
        """
        missing = self.missing()
        if not missing:
            return
        for path in (self._trunk_file, self._branch_file, *(self._folder / m.revision for m in missing)):
            for leftover in leftovers(path):  # from a training that was killed while it wrote
                atomic_remove(leftover) if leftover.is_dir() else leftover.unlink()
        windows = Windows.of(self._text, self._recipe, self._unique, self._trunk.seed)
        training = begin(self._recipe, self._trunk.size, self._trunk.seed, self._device)
        state = self._read(self._trunk_file)
        if state is not None and self._trunk_step(state, missing) == state["step"]:
            training.restore(state)
        for model in missing:
            self._continue(training, windows, None, model.leaves, checkpoint_s, report)
            if model.start is None:
                self._write(training, windows, model)
                continue
            self._save(self._trunk_file, training.state(self._settings))
            branch = self._read(self._branch_file)
            if branch is not None and branch["end"] == model.step:
                training.restore(branch)
            self._continue(training, windows, model, model.step, checkpoint_s, report)
            self._write(training, windows, model)
            self._branch_file.unlink(missing_ok=True)
            training.restore(self._load(self._trunk_file))
        self._save(self._trunk_file, training.state(self._settings))

    def _continue(
        self,
        training: Training,
        windows: Windows,
        branch: Planned | None,
        end: int,
        checkpoint_s: float,
        report: Report,
    ) -> None:
        """Train up to a step, on the trunk or in a branch."""
        shape = self._recipe.shapes[self._trunk.size]
        decay = None if branch is None or branch.start is None else (branch.start, branch.step)
        saved = time.monotonic()
        while training.step < end:
            rate = learning_rate_at(training.step, self._recipe, shape, decay)
            report(1, training.advance(windows.at(training.step), rate))
            if time.monotonic() - saved > checkpoint_s:
                if branch is None:
                    self._save(self._trunk_file, training.state(self._settings))
                else:
                    self._save(self._branch_file, training.state(self._settings) | {"end": branch.step})
                saved = time.monotonic()

    def _write(self, training: Training, windows: Windows, model: Planned) -> None:
        """Write a model with the record of its training."""
        shape, losses = self._recipe.shapes[self._trunk.size], training.losses
        tokens = model.step * self._recipe.tokens_per_step
        facts = {
            "size": self._trunk.size,
            "revision": model.revision,
            "variant": self._variant(model),
            "steps": model.step,
            "tokens": tokens,
            "unique_tokens": windows.unique_tokens(model.step),
            "training_seed": self._trunk.seed,
            "training_flops": training_flops(self._recipe, shape, tokens),
            "training_flops_formula": "6 N D, N with the head",
            "final_loss_nats": float(np.mean(losses[-max(1, min(50, len(losses) // 20)) :])),
            "wall_s": round(training.wall_s, 1),
            "curve_nats": [
                round(float(np.mean(losses[i : i + _CURVE_STEPS])), 4) for i in range(0, len(losses), _CURVE_STEPS)
            ],
            "settings": self._settings_of(model),
        }
        weights = {name: value.cpu() for name, value in training.model.state_dict().items()}
        write_model(weights, self._recipe, shape, self._text / "tokenizer.json", self._folder / model.revision, facts)

    def _variant(self, model: Planned) -> str | None:
        """The variant of a model, since only models of one variant are compared: raw ones, those of an objective."""
        parts = [self._recipe.objective.variant, RAW if model.start is None else None]
        return "_".join(part for part in parts if part) or None

    def _settings_of(self, model: Planned) -> dict[str, Any]:
        return self._settings | {"decay_steps": None if model.start is None else model.step - model.start}

    def _trunk_step(self, state: dict[str, Any] | None, missing: list[Planned]) -> int:
        """The step from which the trunk continues: 0 if its state is already past a missing model."""
        return 0 if state is None or state["step"] > missing[0].leaves else int(state["step"])

    def _save(self, path: Path, state: dict[str, Any]) -> None:
        with atomic_write(path) as temporary:
            torch.save(state, temporary)

    def _load(self, path: Path) -> dict[str, Any]:
        state: dict[str, Any] = torch.load(path, map_location=self._device, weights_only=True)
        if state["settings"] != self._settings:
            raise RbpxError(f"{path} belongs to another recipe; train into another output=, or remove it")
        return state

    def _read(self, path: Path) -> dict[str, Any] | None:
        return self._load(path) if path.is_file() else None


def learning_rate_at(step: int, recipe: Recipe, shape: Shape, branch: tuple[int, int] | None = None) -> float:
    """Linear warm-up to learning_rate / sqrt(hidden), then constant; in a branch times 1 - sqrt(x), x the share done.

    A constant rate with a short decay reaches the loss of a cosine made for that length, and one trunk serves all
    lengths. 1 - sqrt(x) does better than a line: arXiv 2405.18392, "Scaling laws and compute-optimal training beyond
    fixed training durations", section 3 and its appendix on the shape.

    Args:
        step: from 0.
        recipe: of the ladder.
        shape: of the size.
        branch: the step at which the decay begins and the one at which the model is finished; None on the trunk.
    """
    peak = (shape.learning_rate or recipe.learning_rate) / math.sqrt(shape.hidden)
    if step < recipe.warmup_steps:
        return peak * (step + 1) / recipe.warmup_steps
    if branch is None or step < branch[0]:
        return peak
    start, end = branch
    return peak * (1 - math.sqrt((step - start) / (end - start)))
