"""The bundled ladder as its family's file describes it: where each model lies, its tokenizer beside it or above it."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.support.places import CONF, LADDER

SIZES: dict[str, dict[str, Any]] = yaml.safe_load((CONF / "model" / "ladder.yaml").read_text(encoding="utf-8"))["sizes"]


def bundled_id(size: str) -> str:
    """The id of the model that stands for a size."""
    return str(SIZES[size]["id"])


def bundled_folder(size: str, revision: str | None = None) -> Path:
    """The folder of the model that stands for a size, or of another one of its checkpoints."""
    own = LADDER.parent / bundled_id(size).removeprefix("rbpx:")
    return own if revision is None else own.parent / revision


def bundled_folders() -> list[Path]:
    """The folders of all models of the family, those that stand for a size first within it."""
    return [bundled_folder(size, each) for size, entry in SIZES.items() for each in (None, *entry.get("revisions", ()))]


def tokenizer_folder(model: Path) -> Path:
    """The folder that holds the tokenizer of a bundled model: its own, or the ladder's."""
    return next(each for each in (model, *model.parents) if (each / "tokenizer.json").is_file())


def whole_copy(size: str, to: Path) -> Path:
    """A copy of a bundled model with a tokenizer of its own, as other libraries read it."""
    folder = bundled_folder(size)
    shutil.copytree(folder, to)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tokenizer_folder(folder) / name, to / name)
    return to
