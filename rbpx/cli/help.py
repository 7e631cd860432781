"""What `--help` teaches: a verb in, a page of text out; nothing heavy is imported for it."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Final

from rbpx.cli.registry import Verb, about, asking, verbs
from rbpx.config.keys.runs import IN_GROUPS
from rbpx.config.places import options
from rbpx.config.request import KEYS, Asking
from rbpx.files.visible import visible_line
from rbpx.questions.registry import THEMES, Analysis

_WIDTH: Final = 118  # characters
_INDENT: Final = 18
_MANY_ALIKE: Final = 3  # datasets or studies whose names begin alike

_MANY = "-m, --multirun    sweep: -m model=a,b dataset=x,y runs every combination and ends with one table"
_PROCESSES = "Several processes: torchrun --nproc-per-node 2 -m rbpx ..., or on GPUs accelerate launch -m rbpx ..."
_FLAGS = """\
--cfg job         print the configuration instead of running
--config-dir DIR  your own model/NAME.yaml, dataset/NAME.yaml and experiment/NAME.yaml; --trust-config lets them name
                  code to run
--version         print the version"""
_STATUS = "Exit status: 0 done, 1 something failed while running, 2 the request is wrong."


def help_text(verb: str | None, own: Sequence[Path] = ()) -> str:
    """The page of one verb, or of all; `own` are folders of a user's configuration, whose names are listed too."""
    if verb is None:
        lines = "\n".join(line for theme, of in _by_theme() for line in (f"  {theme}", *map(_verb, of)))
        return (
            "rbpx tells how language models get better with size, token by token.\n\n"
            "usage: python -m rbpx [VERB] [key=value ...]\n\n"
            f"verbs (default: run)\n{lines}\n\nkeys\n{_indent(_keys(own))}\n\n"
            f"flags\n{_indent(chr(10).join([_MANY, _FLAGS, _PROCESSES, _STATUS]))}\n\n"
            "python -m rbpx VERB --help explains one verb."
        )
    lesson = about(verb)
    examples = "\n".join(f"  {line}" for line in lesson.examples)
    paragraphs = [textwrap.fill(text, 100, break_on_hyphens=False) for text in lesson.help.split("\n\n")]
    parts = [f"rbpx {verb}: {lesson.summary}", *paragraphs, f"examples\n{examples}"]
    alone = isinstance(lesson, Verb) and verb != "report"
    keys = _keys_of(asking(verb), isinstance(lesson, Analysis), own, alone)
    parts += [f"keys\n{_indent(keys)}"] if keys else []
    flags = [_MANY, _FLAGS, *([_PROCESSES] if lesson.primary in ("measure", "audit") else []), _STATUS]
    return "\n\n".join([*parts, f"flags\n{_indent(chr(10).join(flags))}", "All keys: python -m rbpx --help"])


def _verb(name: str) -> str:
    return f"    {name:<11} {verbs()[name].summary}"


def _by_theme() -> Iterator[tuple[str, list[str]]]:
    """The verbs under each theme."""
    for theme in THEMES:
        yield theme, [name for name, described in verbs().items() if described.theme == theme]


def _keys(own: Sequence[Path]) -> str:
    """Every key of a request, those of groups behind their group."""
    every = [key for name in KEYS for key in (name, *(inner for inner in IN_GROUPS if inner.startswith(f"{name}.")))]
    return "\n".join(_key(name, False, own) for name in every if _explained(name))


def _keys_of(asked: Asking, narrows: bool, own: Sequence[Path], alone: bool) -> str:
    """The keys of one verb, of a question as they narrow what a store holds, or of a verb that asks nothing (alone)."""
    if asked.kind is not None:
        told = [(field.name, field.metadata) for field in fields(asked.kind) if "help" in field.metadata]
        return "\n".join(_line(about["name"] or name, about["shown"], about["help"]) for name, about in told)
    order = list(KEYS)
    names = sorted(filter(_explained, asked.keys), key=lambda name: order.index(name.partition(".")[0]))
    return "\n".join(_key(name, narrows or asked.primary == "analyse", own, alone) for name in names)


def _explained(name: str) -> bool:
    return name in IN_GROUPS or bool(KEYS[name].help)


def _key(name: str, narrows: bool, own: Sequence[Path], alone: bool = False) -> str:
    if name in IN_GROUPS:
        return _line(name, *IN_GROUPS[name])
    key = KEYS[name]
    text = key.told(narrows, alone)
    for there, listed in _THERE.items():
        text = text.replace(there, listed(own)) if there in text else text
    return _line(name, key.shown, text)


def _line(name: str, shown: str, text: str) -> str:
    """`k=K`, and behind it what it means."""
    head = f"{name}={shown}"
    head = f"{head:<{_INDENT - 2}}  "
    return textwrap.fill(head + visible_line(text), _WIDTH, subsequent_indent=" " * _INDENT, break_on_hyphens=False)


def _joined(names: list[str]) -> list[str]:
    """Names in order, those that begin alike in braces, as a shell takes them: ladder_{optimum, seeds, surface}."""
    joined = []
    for stem, members in groupby(sorted(names), lambda name: name.partition("_")[0]):
        alike = list(members)
        rest = ", ".join(name.partition("_")[2] for name in alike)
        joined += [f"{stem}_{{{rest}}}"] if len(alike) >= _MANY_ALIKE else alike
    return joined


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


# What the names of a line stand for.
_THERE: Final[Mapping[str, Callable[[Sequence[Path]], str]]] = {
    "{models}": lambda own: ", ".join(options("model", own)),
    "{datasets}": lambda own: ", ".join(
        _joined([name for name in options("dataset", own) if name not in ("file", "hub")])
    ),
    "{experiments}": lambda own: ", ".join(_joined(options("experiment", own))),
}
