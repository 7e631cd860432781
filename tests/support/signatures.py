"""The types of the methods that ask questions, written from the keys of their verbs: rbpx/api/questions.pyi."""

from enum import Enum
from types import NoneType
from typing import Any, get_args

from rbpx.api.keywords import taken
from rbpx.questions.registry import analyses, asking
from tests.support.places import PROJECT

STUB = PROJECT / "rbpx" / "api" / "questions.pyi"
_HEAD = """# Written by `make signatures` from the keys of each verb, a line a question; a test holds it.
# ruff: noqa: E501
# fmt: off
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rbpx.api.answer import Answer
from rbpx.config.model.placement import EngineConfig
from rbpx.questions.result import Result

@dataclass(frozen=True)
class Questions:
    store: str
    config_dir: Path | None = None
    def _answer(self, verb: str, keys: Mapping[str, Any]) -> Answer[Result]: ...
"""


def stub() -> str:
    """The text of the file."""
    return _HEAD + "".join(_method(verb) for verb in analyses())


def _method(verb: str) -> str:
    named = ", ".join(f"{key.name}: {_kind(key.name, key.kind)} = ..." for key in taken(asking(verb)))
    return f"    def {verb}(self, *, {named}) -> Answer[Result]: ...\n"


def _kind(name: str, kind: Any) -> str:
    """A type as Python callers write it: names of an Enum, lists of models and texts."""
    if name in ("model", "dataset", "protocol"):
        return "Any"
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
