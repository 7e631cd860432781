"""What can be typed, from the code: verbs, keys, families, datasets, studies."""

import re
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import yaml

from ext.markdown import block, name, plain, table
from rbpx.cli import registry
from rbpx.cli.help import help_text
from rbpx.config.folders import experiments, folder
from rbpx.config.imports import ImportConfig
from rbpx.config.keys.output import StudyConfig
from rbpx.config.model.family import ModelConfig, SizeConfig
from rbpx.config.request import KEYS
from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig
from rbpx.display.view import View
from rbpx.questions import registry as questions

_FEW = 5  # questions that lack a key which is said to be of every other


def verbs() -> str:
    """A section for each verb: what its `--help` says."""
    parts = []
    for verb, described in registry.verbs().items():
        paragraphs = "\n\n".join(plain(paragraph) for paragraph in described.help.split("\n\n"))
        examples = block("\n".join(described.examples))
        parts.append(f"## {verb}\n\n*{plain(described.summary)}*\n\n{paragraphs}\n\n{examples}")
        parts += _tables_of(verb) if verb in questions.names() else []
    return "\n".join(parts)


def _tables_of(verb: str) -> list[str]:
    """The columns of the tables of a question, as its views describe them; views that say the same stand once."""
    described = vars(import_module(f"rbpx.questions.{verb}.ask")).values()
    parts = []
    for view in (each for each in described if isinstance(each, View)):
        meant = [(each.heading, " ".join(each.keys), each.means) for each in view.all_columns() if each.means]
        rows = [[plain(_in_S(heading)), name(_in_S(keys)), plain(_in_S(means))] for heading, keys, means in meant]
        parts += [f"Columns of `{view.name}`:\n\n" + table(["column", "name", "meaning"], rows)] if rows else []
    return list(dict.fromkeys(parts))


def _in_S(text: str) -> str:
    """Words of a column, of laws in size."""
    return text.replace("{x}", "S").replace("{c}", "C")


def help_page() -> str:
    """The page of `python -m rbpx --help`."""
    return block(help_text("all"))


def keys() -> str:
    """Keys, defaults and meanings of each group, from the dataclasses that check them."""
    groups = [("model", ModelConfig), ("model.sizes.NAME", SizeConfig), ("dataset", DatasetConfig)]
    groups += [("protocol", ProtocolConfig), ("imports", ImportConfig), ("study", StudyConfig)]
    parts = [
        f"## {group}\n\n{plain(str(kind.__doc__).split(chr(10))[0])}\n\n"
        + table(["key", "default", "meaning"], [_key(field, meanings(kind)) for field in fields(kind)])
        for group, kind in groups
    ]
    top = [
        [name(key.name), plain(str(_shown(key.default))), plain(_verbs_with(key.name))]
        for key in KEYS.values()
        if key.help and key.name not in ("model", "dataset", "protocol")
    ]
    return "\n".join([*parts, "## all other keys\n", table(["key", "default", "verbs"], top)])


def _verbs_with(key: str) -> str:
    """The verbs that have a key, questions in a word where most do."""
    having = [verb for verb in registry.names() if key in registry.asking(verb).names]
    lacking = [verb for verb in questions.names() if verb not in having]
    if len(lacking) > _FEW:
        return ", ".join(having)
    every = f"every question{' but ' if lacking else ''}{', '.join(lacking)}"
    others = ", ".join(verb for verb in having if verb not in questions.names())
    return f"{every}; {others}" if others else every


def meanings(kind: type) -> dict[str, str]:
    """The attributes that the docstrings of a class and of its bases explain."""
    section = "".join(cleandoc(str(each.__doc__)).partition("Attributes:")[2] for each in reversed(kind.__mro__))
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE)
    return {key: " ".join(text.split()) for key, text in found}


def _key(field: Field[Any], known: dict[str, str]) -> list[str]:
    return [name(field.name), _default(field), plain(known[field.name])]


def _default(field: Field[Any]) -> str:
    value = field.default if field.default is not MISSING else MISSING
    if field.default_factory is not MISSING:
        value = field.default_factory()
    return "needed" if value is MISSING else _shown(value)


def _shown(value: Any) -> str:
    if is_dataclass(value):
        return ", ".join(name(f"{field.name}={getattr(value, field.name)}") for field in fields(value))
    if isinstance(value, Enum):
        others = [name(each.value) for each in type(value) if each is not value]
        return f"{name(value.value)}, or {', '.join(others)}"
    return (
        "none"
        if value is None or value in ([], {})
        else name(str(value).replace("${oc.env:RBPX_STORE,store}", "store"))
    )


def _comment(path: Path) -> str:
    """The comment that a file begins with."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def configurations() -> str:
    """The files of conf/ that verbs and protocols begin from, whole."""
    root = folder("conf")
    paths = [*sorted(root.glob("*.yaml")), *sorted((root / "protocol").glob("*.yaml"))]
    return "\n".join(
        f"## conf/{path.relative_to(root)}\n\n{block(path.read_text(encoding='utf-8'), 'yaml')}" for path in paths
    )


def families() -> str:
    """A section for each family: sizes, S, ids, where they are from."""
    parts = []
    for path in sorted((folder("conf") / "model").glob("*.yaml")):
        family = yaml.safe_load(path.read_text(encoding="utf-8"))
        rows = [
            [name(size), f"{about.get('non_embedding_params', 0):,}", name(about["id"]), _verified(about)]
            for size, about in (family.get("sizes") or {}).items()
        ]
        source = f"\n\nSource: {_linked(family['source'])}" if family.get("source") else ""
        listed = table(["size", "S", "model", "S verified"], rows) if rows else ""
        parts.append(f"## {path.stem}\n\n{plain(_comment(path))}{source}\n\n{listed}")
    return "\n".join(parts)


def _verified(about: dict[str, Any]) -> str:
    return "yes" if about.get("verified") else "from the shape" if about.get("shape") else "when loaded"


def _linked(text: str) -> str:
    """Text in which addresses are links."""
    words = " ".join(text.split()).split(" ")
    pieces = [re.fullmatch(r"(https?://[^\s;,]+)(.*)", word) for word in words]
    return " ".join(f"<{at[1]}>{plain(at[2])}" if at else plain(word) for word, at in zip(words, pieces, strict=True))


def datasets() -> str:
    """A section for each dataset: where it is from, what makes a document."""
    parts = []
    for path in sorted((folder("conf") / "dataset").glob("*.yaml")):
        about = yaml.safe_load(path.read_text(encoding="utf-8"))
        rows = [[name(key), name(str(value).replace("\n", "\\n"))] for key, value in about.items() if key != "name"]
        parts.append(f"## {path.stem}\n\n{plain(_comment(path))}\n\n{table(['key', 'value'], rows)}")
    return "\n".join(parts)


def studies() -> str:
    """The named studies and what they ask."""
    rows = []
    for path in experiments():
        study = yaml.safe_load(path.read_text(encoding="utf-8")).get("study", {})
        rows.append([name(path.stem), plain(study.get("question"))])
    return table(["study", "question"], rows)
