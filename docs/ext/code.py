"""What can be typed, from the code: verbs, keys, families, datasets."""

import re
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

import yaml

from ext.markdown import block, name, plain
from ext.meanings import COLUMNS
from rbpx.cli import registry
from rbpx.cli.help import help_text
from rbpx.config.folders import folder
from rbpx.config.imports import ImportConfig
from rbpx.config.keys.key import Key, keys_of
from rbpx.config.keys.output import LOOKS
from rbpx.config.model.family import ModelConfig, SizeConfig
from rbpx.config.model.training import TrainingFacts
from rbpx.config.request import KEYS
from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig
from rbpx.questions import registry as questions

_MEASURING: Final = ("run", "measure", "plan", "download", "record")
_ASKING: Final = ("run", "report")  # verbs that take the keys of the questions that they ask
_THERE: Final = {  # names that stand on pages of their own
    "{models}": "[families](families.md)",
    "{datasets}": "[datasets](datasets.md)",
    "{experiments}": "`experiments/README.md` lists them",
}


def verbs() -> str:
    """What most verbs take, then a section for each verb: what it answers, its own keys, an example."""
    described = registry.verbs()
    taken = {verb: [key for key in KEYS if key in _keys_of(verb)] for verb in described}
    asked = [key for key in KEYS if sum(key in taken[verb] for verb in questions.names()) > len(questions.names()) / 2]
    measured = [key for key in taken["measure"] if all(key in taken[verb] for verb in _MEASURING)]
    parts = [f"Questions take {_listed(key for key in asked if key not in LOOKS)}, and those with figures "]
    parts[0] += f"{_listed(LOOKS)}. Verbs that measure take {_listed(measured)}.\n"
    of_questions = {key for verb in questions.names() for key in taken[verb]}
    for verb, about in described.items():
        answers = plain(about.help.partition("\n\n")[0])
        example = next((line for line in about.examples if "=" in line), about.examples[0])
        parts.append(f"## {verb}\n\n*{plain(about.summary)}*\n\n{answers}\n\n{block(example)}")
        known = {*(asked if verb in questions.names() else ()), *(measured if verb in _MEASURING else ())}
        known |= of_questions if verb in _ASKING else set()
        own = [key for key in taken[verb] if key not in known]
        lacks = [key for key in asked if verb in questions.names() and key not in (*taken[verb], *LOOKS)]
        keys = [*([f"Own keys: {_listed(own)}"] if own else []), *([f"Not {_listed(lacks)}"] if lacks else [])]
        parts += [f"{'. '.join(keys)}.\n"] if keys else []
    return "\n".join(parts)


def _keys_of(verb: str) -> set[str]:
    """The keys that a verb takes and that are explained."""
    return {key for key, each in registry.asking(verb).keys.items() if key in KEYS and each.help}


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(map(name, keys))


def example(file: str) -> str:
    """A file that a reader adds."""
    path = Path(__file__).parents[1] / "examples" / file
    return block(path.read_text(encoding="utf-8"), {".py": "python", ".yaml": "yaml"}[path.suffix])


def flags() -> str:
    """The flags, from the page of `python -m rbpx --help all`."""
    return block(cleandoc(help_text("all").partition("\nflags\n")[2].partition("\n\n")[0]))


_OF_RUNS: Final = (SizeConfig, ImportConfig)


def keys() -> str:
    """Keys, defaults and meanings, from the dataclasses that check them: those of a request, then those of groups."""
    groups = [("model", ModelConfig), ("sizes", SizeConfig), ("dataset", DatasetConfig)]
    groups += [("protocol", ProtocolConfig), ("imports", ImportConfig)]
    parts = ["\n".join(_line(key.name, key.default, _meant(key)) for key in KEYS.values() if key.help)]
    parts += [
        f"\n## {group}\n\n{plain(str(kind.__doc__).split(chr(10))[0])}\n\n"
        + "\n".join(_line(each.name, _default(each), _said(kind, each.name)) for each in fields(kind))
        for group, kind in groups
    ]
    return "\n".join(parts)


def _said(kind: type, field: str) -> str:
    """What the docstring of a group says of a key, or else help, without the values that it lists first.

    Facts of a run have the names and meanings of columns, which the page of relations explains.
    """
    if kind in _OF_RUNS and field in COLUMNS:
        return ""
    key = keys_of(kind).get(field)
    helped = "" if key is None else key.told.partition(": ")[2] if key.told.startswith("or ") else key.told
    said = meanings(kind).get(field, "").rstrip(".") or helped
    return f"{plain(said)}." if said else ""


def _line(key: str, default: Any, meaning: str) -> str:
    """A key with its default, where it has one, and what it means, where its name does not say it."""
    none = default is None or default in ("", [], {}) or is_dataclass(default)
    return f"- {name(key)}{'' if none else f' ({_shown(default)})'}{f': {meaning}' if meaning else ''}"


def _shown(default: Any) -> str:
    if default is MISSING:
        return "needed"
    if isinstance(default, Enum):
        return ", or ".join([name(default.value), ", ".join(name(e.value) for e in type(default) if e is not default)])
    return name(str(default).replace("${oc.env:RBPX_STORE,store}", "store"))


def _meant(key: Key) -> str:
    """Its line of help, with pages in place of lists of names."""
    for there, page in _THERE.items():
        if there in key.help:
            return page + plain(key.help.partition(there)[2])
    return plain(key.told)


def meanings(kind: type) -> dict[str, str]:
    """The attributes that the docstrings of a class and of its bases explain, or that of the facts of a training."""
    classes = (TrainingFacts, *reversed(kind.__mro__))
    section = "".join(cleandoc(str(each.__doc__)).partition("Attributes:")[2] for each in classes)
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE)
    return {key: " ".join(text.split()) for key, text in found}


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _comment(path: Path) -> str:
    """The comment that a file begins with."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def families() -> str:
    """A section for each family: what it is, its file, and each size with S and its id."""
    parts = []
    for path in sorted((folder("conf") / "model").glob("*.yaml")):
        sizes = yaml.safe_load(path.read_text(encoding="utf-8")).get("sizes") or {}
        listed = [f"- {name(size)}{_size(about)}, {name(about['id'])}" for size, about in sizes.items()]
        parts.append(f"## {path.stem}\n\n{plain(_comment(path))}\n\n" + "\n".join(listed) + "\n")
    return "\n".join(parts)


def _size(about: dict[str, Any]) -> str:
    return f"{'*' * bool(about.get('verified'))}: {about['non_embedding_params']:,}"


def datasets() -> str:
    """A section for each dataset: what it is, where it is from, and its file."""
    parts = []
    for path in sorted((folder("conf") / "dataset").glob("*.yaml")):
        about = yaml.safe_load(path.read_text(encoding="utf-8"))
        where = f" {name(about['hub'])}" if about.get("hub") else ""
        parts.append(f"## {path.stem}\n\n{plain(_comment(path))}{where}\n")
    return "\n".join(parts)
