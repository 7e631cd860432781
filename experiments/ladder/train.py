"""Trains a ladder of small models, GPT-NeoX or Mamba-2, on the Python source of installed packages.

    python experiments/ladder/train.py text.site=FOLDER output=my_ladder
    python experiments/ladder/train.py --recipe arms text.site=FOLDER output=arms/smooth label_smoothing=0.1

A recipe is a YAML file: ladder.yaml, which says what each key means, arms.yaml, mamba2.yaml, or your own by its path.
Every size is one training at a constant rate, its trunk, on the same tokens in the same order. A short decay branches
off the trunk at every budget of tokens and gives a finished model; raw checkpoints of the trunk are models too. A model
is an ordinary Hugging Face folder, OUTPUT/SIZE/NAME, with `training.json`; a family's file lists them. A training that
was killed continues: its trunk is saved now and then and wherever a branch leaves it.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from transformers import PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.ladder.model import Training, build_model, device_of
from experiments.ladder.text import END_OF_TEXT, prepare_text
from rbpx.config.model.training import RAW
from rbpx.errors import RbpxError, first_line
from rbpx.files.entries import atomic_remove, atomic_write, atomic_write_text
from rbpx.models.architecture import non_embedding_params, total_params

_HERE = Path(__file__).resolve().parent
_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9}
_CURVE_STEPS = 20  # steps averaged into one point of the loss curve
_SAID_EVERY_S = 15.0


def main(words: Sequence[str]) -> int:
    """Train what a command line asks for; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="ladder", help="ladder (default), arms, mamba2, or a YAML file")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="in place of what the recipe says")
    asked = parser.parse_args(words)
    try:
        train_ladder(read_recipe(asked.recipe, asked.overrides))
    except (RbpxError, OmegaConfBaseException) as problem:
        print(f"train.py: {first_line(problem)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("train.py: stopped; the same line continues", file=sys.stderr)
        return 130
    return 0


def read_recipe(name: str, overrides: Sequence[str] = ()) -> Any:
    """The values of a recipe, over those of its `base` where it names one; overrides name what is there.

    Raises:
        RbpxError: there is no such file.
        OmegaConfBaseException: an override names a key that the recipe does not have.
    """
    path = Path(name) if name.endswith(".yaml") else _HERE / f"{name}.yaml"
    if not path.is_file():
        raise RbpxError(f"--recipe {name} is not there; known: ladder, arms, mamba2, or the path of a YAML file")
    recipe = OmegaConf.load(path)
    if "base" in recipe:
        recipe = OmegaConf.merge(OmegaConf.load(_HERE / f"{recipe.base}.yaml"), recipe)
    OmegaConf.set_struct(recipe, True)
    recipe.merge_with_dotlist(list(overrides))
    OmegaConf.set_struct(recipe, False)
    return recipe


def train_ladder(recipe: Any) -> None:
    """Prepare the text once, then train each size of a recipe and seed, unless it is there, and list them in a file.

    Raises:
        RbpxError: a size is unknown, a budget cannot be trained, or the output has models of another recipe.
    """
    sizes = (
        list(recipe.shapes) if recipe.size == "all" else [recipe.size] if isinstance(recipe.size, str) else recipe.size
    )
    if unknown := [size for size in sizes if size not in recipe.shapes]:
        raise RbpxError(f"size={unknown[0]} has no shape; sizes with a shape: {', '.join(recipe.shapes)}")
    seeds = {size: [seed for seed in (recipe.seeds or {}).get(size, ()) if seed != recipe.seed] for size in sizes}
    planned = [(size, recipe.seed) for size in sizes] + [(size, seed) for size in sizes for seed in seeds[size]]
    models = {trunk: plan(recipe, *trunk) for trunk in planned}  # all, so that a mistake is said before any is trained
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    output = Path(recipe.output)
    if not (output / "text" / "text.json").is_file():
        print("preparing the training text: tokenizer, spans shared with the evaluation texts, windows", flush=True)
        prepare_text(recipe, output / "text")
    for (size, seed), those in models.items():
        Trunk(recipe, size, seed, output).train(those)
    family = write_family(recipe, output)
    print(f"to measure them: python -m rbpx --config-dir {output} model={family} model.revision=all dataset=pydoc")


# ---------------------------------------------------------------------------------------------- which models


@dataclass(frozen=True)
class Model:
    """A model that will be written.

    Attributes:
        name: of its folder, such as 8m, raw-2m or seed43-8m.
        step: optimizer steps that it is trained for.
        start: the step at which its rate begins to decay; None for a raw checkpoint, whose rate has not decayed.
    """

    name: str
    step: int
    start: int | None

    @property
    def leaves(self) -> int:
        """The trunk's step at which this model leaves it: to decay in a branch, or to be written as it is."""
        return self.step if self.start is None else self.start


def plan(recipe: Any, size: str, seed: int) -> list[Model]:
    """The models of one trunk in the order in which they leave it; a further seed has one, of `tokens`.

    Raises:
        RbpxError: a budget is no amount of tokens, or its decay would begin in the warm-up.
    """
    per_step, is_main = recipe.context * recipe.windows_per_step, seed == recipe.seed
    budgets = [recipe.tokens, *((recipe.budgets or {}).get(size, ()) if is_main else ())]
    models = {}
    for tokens in map(token_count, budgets):
        step = tokens // per_step
        start = step - math.floor(step * recipe.decay)
        if start < max(1, recipe.warmup_steps):
            raise RbpxError(
                f"a budget of {tokens:,} tokens is {step} steps, whose rate begins to decay at step {start}, within "
                f"the {recipe.warmup_steps} of the warm-up; give a larger budget or a smaller warmup_steps"
            )
        name = token_label(step * per_step) if is_main else f"seed{seed}-{token_label(step * per_step)}"
        models[name] = Model(name, step, start)
    n_raw = (recipe.checkpoints or {}).get(size, 0) if is_main else 0
    end = max(model.leaves for model in models.values())
    for i in range(n_raw):  # from a hundredth of the trunk to its end, spaced by one ratio
        step = max(1, round(end * 100 ** ((i + 1 - n_raw) / max(1, n_raw - 1))))
        name = f"raw-{token_label(step * per_step)}"
        models[name] = Model(name, step, None)
    return sorted(models.values(), key=lambda model: (model.leaves, model.step))


def token_count(amount: Any) -> int:
    """Tokens from a number, or from text such as 8m, 1.24m and 930k.

    Raises:
        RbpxError: it is no amount of tokens.
    """
    text = str(amount).strip().lower()
    scale = _UNITS.get(text[-1:], 1.0)
    try:
        return round(float(text[:-1] if scale > 1 else text) * scale)
    except (ValueError, OverflowError):
        raise RbpxError(f"{amount} is not an amount of tokens; write 8_000_000, 8m or 930k") from None


def token_label(tokens: int) -> str:
    """Tokens in three digits: 8m, 1.24m, 930k."""
    rounded = float(f"{tokens:.3g}")
    unit, scale = max(
        ((unit, scale) for unit, scale in _UNITS.items() if rounded >= scale), key=lambda u: u[1], default=("", 1)
    )
    return f"{rounded / scale:.6g}{unit}" if unit else str(tokens)


def learning_rate_at(step: int, recipe: Any, shape: Any, decay: tuple[int, int] | None = None) -> float:
    """Linear warm-up to learning_rate / sqrt(hidden), then constant; in a branch times 1 - sqrt(x), x the share done.

    A constant rate with a short decay reaches the loss of a cosine made for that length, and one trunk serves all
    lengths. 1 - sqrt(x) does better than a line: arXiv 2405.18392, "Scaling laws and compute-optimal training beyond
    fixed training durations", section 3 and its appendix on the shape.

    Args:
        step: from 0.
        recipe: of the ladder.
        shape: of the size; its learning_rate, if it has one, replaces the recipe's.
        decay: the step at which the decay begins and the one at which the model is finished; None on the trunk.
    """
    peak = shape.get("learning_rate", recipe.learning_rate) / math.sqrt(shape.hidden)
    if step < recipe.warmup_steps:
        return float(peak * (step + 1) / recipe.warmup_steps)
    if decay is None or step < decay[0]:
        return float(peak)
    start, end = decay
    return float(peak * (1 - math.sqrt((step - start) / (end - start))))


# ---------------------------------------------------------------------------------------------- a trunk


class Trunk:
    """Trains one trunk of a ladder and the models that leave it, and keeps their files."""

    def __init__(self, recipe: Any, size: str, seed: int, output: Path) -> None:
        """Train nothing yet."""
        self._recipe, self._size, self._seed = recipe, size, seed
        self._shape, self._name = recipe.shapes[size], f"{size}-seed{seed}"
        self._text, self._folder = output / "text", output / size
        self._state = output / "state" / f"{self._name}.trunk.pt"
        self._ids = np.load(self._text / "windows.npy", mmap_mode="r")
        n = len(self._ids)  # the recipe's own seed reads them as they are, each further seed in an order of its own
        self._order = np.arange(n) if seed == recipe.seed else np.random.default_rng(seed).permutation(n)
        keys = ("vocab_size", "context", "windows_per_step", "learning_rate", "warmup_steps", "weight_decay")
        self._settings = {key: recipe[key] for key in (*keys, "label_smoothing")} | {
            "shape": OmegaConf.to_container(self._shape),
            "training_seed": seed,
            "windows_hash": json.loads((self._text / "text.json").read_text())["windows_hash"],
        }

    def train(self, models: Sequence[Model]) -> None:
        """Train until every model is written; continue a training that was killed from what it saved.

        Raises:
            RbpxError: a model or a state that is there is of another recipe.
        """
        missing = [model for model in models if not self._is_there(model)]
        if not missing:
            return
        for path in (self._state, *(self._folder / model.name for model in missing)):
            for leftover in path.parent.glob(f".{path.name}.*.tmp*"):  # of a training that was killed while it wrote
                atomic_remove(leftover) if leftover.is_dir() else leftover.unlink()
        training = Training.begin(self._recipe, self._size, self._seed)
        if self._state.is_file():
            state = self._saved()
            if len(state["losses"]) <= missing[0].leaves:  # else it begins again, for a smaller budget than it is at
                training.restore(state)
        for model in missing:
            self._continue(training, model.leaves)
            if model.start is None:
                self._write(training, model)
                continue
            self._save(training)
            self._continue(training, model.step, (model.start, model.step))
            self._write(training, model)
            training.restore(self._saved())
        self._save(training)

    def _is_there(self, model: Model) -> bool:
        facts = self._folder / model.name / "training.json"
        if not facts.is_file():
            return False
        if json.loads(facts.read_text())["settings"] != self._settings_of(model):
            raise RbpxError(f"{facts.parent} was trained with another recipe; train into another output=")
        return True

    def _settings_of(self, model: Model) -> dict[str, Any]:
        return self._settings | {"decay_steps": None if model.start is None else model.step - model.start}

    def _save(self, training: Training) -> None:
        with atomic_write(self._state) as temporary:
            torch.save(training.state() | {"settings": self._settings}, temporary)

    def _saved(self) -> dict[str, Any]:
        state: dict[str, Any] = torch.load(self._state, map_location=device_of(self._recipe), weights_only=True)
        if state["settings"] != self._settings:
            raise RbpxError(f"{self._state} belongs to another recipe; train into another output=, or remove it")
        return state

    def _continue(self, training: Training, end: int, decay: tuple[int, int] | None = None) -> None:
        """Train up to a step, on the trunk or in a branch, which is not saved: it is a fifth of its model at most."""
        saved = said = time.monotonic()
        per_step = self._recipe.windows_per_step
        while training.step < end:
            step = training.step
            rows = np.arange(step * per_step, (step + 1) * per_step) % len(self._order)
            ids_BT = torch.from_numpy(self._ids[self._order[rows]].astype(np.int64))
            rate = learning_rate_at(step, self._recipe, self._shape, decay)
            training.advance(ids_BT, rate, self._recipe.label_smoothing)
            now = time.monotonic()
            if decay is None and now - saved > self._recipe.checkpoint_s:
                self._save(training)
                saved = now
            if now - said > _SAID_EVERY_S or training.step == end:
                said, tokens = now, per_step * self._recipe.context * training.step
                what = f"step {training.step} of {end}, loss {training.losses[-1]:.3f} nats"
                print(f"{self._name}: {what}, {tokens / training.wall_s:,.0f} tokens/s", flush=True)

    def _write(self, training: Training, model: Model) -> None:
        """Write a model in bfloat16, the tokenizer and the record of its training, all or nothing."""
        recipe, losses, folder = self._recipe, training.losses, self._folder / model.name
        copy = build_model(recipe, self._shape, 0)
        copy.load_state_dict({name: value.cpu() for name, value in training.model.state_dict().items()})
        tokens = model.step * recipe.context * recipe.windows_per_step
        smoothed = f"label_smoothing_{recipe.label_smoothing:g}" if recipe.label_smoothing else ""
        facts = {
            "size": self._size,
            "revision": model.name,
            "variant": "_".join(filter(None, (smoothed, RAW if model.start is None else ""))) or None,
            "steps": model.step,
            "tokens": tokens,
            "unique_tokens": min(model.step * recipe.windows_per_step, len(self._ids)) * recipe.context,
            "training_seed": self._seed,
            "non_embedding_params": non_embedding_params(copy),
            "training_flops": 6.0 * total_params(copy) * tokens,
            "final_loss_nats": float(np.mean(losses[-max(1, min(50, len(losses) // 20)) :])),
            "wall_s": round(training.wall_s, 1),
            "curve_nats": [
                round(float(np.mean(losses[i : i + _CURVE_STEPS])), 4) for i in range(0, len(losses), _CURVE_STEPS)
            ],
            "settings": self._settings_of(model),
        }
        disable_progress_bar()  # it would write between the lines of the training, for a file of a few MiB
        with atomic_write(folder) as parts:
            copy.to(torch.bfloat16).save_pretrained(parts)
            (parts / "generation_config.json").unlink(missing_ok=True)
            PreTrainedTokenizerFast(
                tokenizer_file=str(self._text / "tokenizer.json"),
                eos_token=END_OF_TEXT,
                model_max_length=recipe.context,
                clean_up_tokenization_spaces=False,
            ).save_pretrained(parts)
            (parts / "training.json").write_text(json.dumps(facts) + "\n")
        print(f"{self._size} {model.name}: loss {facts['final_loss_nats']:.3f} nats, in {folder}", flush=True)


def write_family(recipe: Any, output: Path) -> str:
    """Write `model/NAME.yaml` into the output, NAME that of its folder, and return it: what is there of each size.

    The model of `tokens` stands for its size, and its other models are revisions; further seeds are sizes of their own.
    """
    name, step = output.resolve().name, token_count(recipe.tokens) // (recipe.context * recipe.windows_per_step)
    there = [json.loads(path.read_text()) for path in output.glob("*/[!.]*/training.json")]
    there.sort(key=lambda facts: (facts["non_embedding_params"], facts["training_seed"] != recipe.seed, facts["steps"]))
    sizes: dict[str, Any] = {}
    for facts in there:
        size, model, seed = facts["size"], facts["revision"], facts["training_seed"]
        if facts["steps"] == step and facts["settings"]["decay_steps"] is not None:
            label, folder = size if seed == recipe.seed else f"{size}-seed{seed}", output.resolve() / size / model
            sizes[label] = {"id": str(folder), "non_embedding_params": facts["non_embedding_params"]}
            alike = [each for each in there if (each["size"], each["training_seed"]) == (size, seed)]
            if len(alike) > 1:
                sizes[label]["revisions"] = [each["revision"] for each in alike if each["revision"] != model]
    text = yaml.safe_dump({"family": name, "bos": "tokenizer", "sizes": sizes}, sort_keys=False, width=110)
    atomic_write_text(output / "model" / f"{name}.yaml", "# Written by experiments/ladder/train.py.\n" + text)
    return name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
