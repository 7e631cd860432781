"""Items with three choices each, and how they are measured."""

import json
from pathlib import Path
from typing import Any, Final

from tests.support.composed import here

KEYS: Final = ("dataset.choices=c", "dataset.right=r", "dataset.category=s", "dataset.domains={sea: [ship, fish]}")
TEMPLATE: Final = ('dataset.template="Q: {q}\\nA:"', 'dataset.delimiter=" "')
KINDS: Final = ("ship", "fish", "law")
_WORDS: Final = ("salt", "rope", "boat", "a light", "the keeper of it")


def items(n: int, n_twice: int = 0) -> list[dict[str, Any]]:
    """So many items of three kinds; the last `n_twice` of them have their first choice a second time."""
    return [
        {"q": f"which {at}", "r": at % 3, "s": KINDS[at % 3], "c": [_WORDS[at % 5], _WORDS[(at + 2) % 5], "none"]}
        if at < n - n_twice
        else {"q": f"which {at}", "r": 2 * (at % 2), "s": KINDS[at % 3], "c": [_WORDS[at % 5], "none", _WORDS[at % 5]]}
        for at in range(n)
    ]


def written(path: Path, items: list[dict[str, Any]]) -> Path:
    """A JSONL file of items."""
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def measured(store: Path, quiz: Path, model: Path, *words: str) -> Path:
    """The store, into which a model is measured on a quiz, each choice by itself."""
    cwd = store.parent / "cwd"
    cwd.mkdir(exist_ok=True)
    asked = ("measure", "model=hub", f"model.id={model}", "dataset=file", f"dataset.path={quiz}", *KEYS, *TEMPLATE)
    here(*asked, "tokens_per_batch=1", *words, "--store", store, cwd=cwd, check=0)
    return store
