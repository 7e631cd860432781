"""The types of the methods that ask questions, written from the keys of their verbs: rbpx/api/questions.pyi."""

from enum import Enum
from types import NoneType
from typing import Any, get_args

from rbpx.api.keywords import MEASURING, taken
from rbpx.config.keys.key import Key
from rbpx.config.request import Asking
from rbpx.questions.registry import analyses, asking
from tests.support.places import PROJECT

STUB = PROJECT / "rbpx" / "api" / "questions.pyi"
_HEAD = """# Written by `make signatures` from the keys of each verb, a line a question; a test holds it.
# ruff: noqa: E501
# fmt: off
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rbpx.api.answer import Answer
from rbpx.config.model.placement import EngineConfig, ParallelConfig
from rbpx.questions.result import Result

@dataclass(frozen=True)
class Questions:
    store: str
    config_dir: Path | None = None
    def _answer(self, verb: str, keys: Mapping[str, Any]) -> Answer[Result]: ...
"""


def stub() -> str:
    """The text of the file."""
    return _HEAD + _method(MEASURING, "Any") + "".join(_method(asking(verb), "Result") for verb in analyses())


def _method(asked: Asking, of: str) -> str:
    named = ", ".join(f"{key.name}: {_kind(key)} = ..." for key in taken(asked))
    return f"    def {asked.verb}(self, *, {named}) -> Answer[{of}]: ...\n"


def _kind(key: Key) -> str:
    """A type as Python callers write it: names of an Enum, lists of models and texts."""
    kind: Any = key.kind
    if key.name in ("model", "dataset", "protocol") or (kind is Any and key.is_text):
        return "str | Sequence[str] | None"
    parts = get_args(kind) or (kind,)
    return " | ".join(_one(part) for part in parts)


def _one(kind: Any) -> str:
    if kind is Any:
        return "Any"
    if kind is NoneType:
        return "None"
    if issubclass(kind, Enum):
        return f"Literal[{', '.join(repr(each.value).replace(chr(39), chr(34)) for each in kind)}]"
    return str(kind.__name__)


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
