"""The family's file of a trained ladder, so that its models are measured by name: `--config-dir OUTPUT model=NAME`."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from rbpx.config.recipe import Recipe
from rbpx.files.atomic import atomic_write_text
from rbpx.train.design import Trunk, token_count

__all__ = ["write_family"]


def write_family(recipe: Recipe, planned: Sequence[Trunk], output: Path) -> Path:
    """Write `model/NAME.yaml` into the output: each size with its checkpoints, further seeds as sizes of their own.

    Sizes that the file has already, from a training of other sizes, stay; checkpoints that lie there stay too. The
    family's name is the recipe's, else that of the output's folder.
    """
    name = recipe.family or output.resolve().name
    path = output / "model" / f"{name}.yaml"
    sizes = yaml.safe_load(path.read_text(encoding="utf-8"))["sizes"] if path.is_file() else {}
    for trunk in planned:
        own = trunk.model_of(token_count(recipe.tokens, "tokens") // recipe.tokens_per_step).revision
        is_main = trunk.seed == recipe.seed
        label = trunk.size if is_main else f"{trunk.size}-seed{trunk.seed}"
        folder = (output / trunk.size).resolve()
        entry = {
            "id": str(folder / own),
            "non_embedding_params": recipe.shapes[trunk.size].non_embedding_params,
        }
        others = [model.revision for model in trunk.models if model.revision != own]
        if is_main:
            there = [revision for revision in sizes.get(label, {}).get("revisions", []) if (folder / revision).is_dir()]
            others += [revision for revision in there if revision not in (own, *others)]
        sizes[label] = entry | ({"revisions": others} if others else {})
    ordered = dict(sorted(sizes.items(), key=lambda entry: (entry[1]["non_embedding_params"], entry[0])))
    text = yaml.safe_dump({"family": name, "bos": "tokenizer", "sizes": ordered}, sort_keys=False, width=110)
    atomic_write_text(path, "# Written by python -m rbpx train.\n" + text)
    return path
