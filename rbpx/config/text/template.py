r"""Templates of items: text with columns of a row in braces, such as `Q: {question}\nA:`, checked before it is used.

A column is named by its path, `{choices.text[0]}`; functions behind a colon change its text, `{question:strip}`, one
after the other where several are named. `{{` and `}}` are braces.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Final

from rbpx.config.suggest import did_you_mean
from rbpx.errors import RbpxError

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_BRACKETS: Final = re.compile(r"\[.*?\]")


def _without_brackets(text: str) -> str:
    """Text without the marks that HellaSwag's articles of WikiHow carry in brackets; a title begins a sentence."""
    return _BRACKETS.sub("", text.strip().replace(" [title]", ". ")).replace("  ", " ")


def _but_last_word(text: str) -> str:
    return " ".join(text.split(" ")[:-1])


FUNCTIONS: Final[Mapping[str, Callable[[str], str]]] = {
    "strip": str.strip,
    "capitalize": str.capitalize,
    "words": lambda text: text.replace("_", " "),  # of a name with underscores
    "but_last_word": _but_last_word,  # words are what single spaces divide
    "last_word": lambda text: text.split(" ")[-1],
    "before_blank": lambda text: text.partition("_")[0],
    "after_blank": lambda text: text.partition("_")[2].strip(),
    "without_brackets": _without_brackets,
}


@dataclass(frozen=True)
class Place:
    """A column in a template: the steps to its value, and the functions that its text goes through."""

    name: str
    steps: tuple[str | int, ...]
    functions: tuple[str, ...]

    def apply(self, text: str) -> str:
        """The text of the column as it stands in what the template makes."""
        for name in self.functions:
            text = FUNCTIONS[name](text)
        return text


Template = tuple[str | Place, ...]


def parse(key: str, template: str) -> Template:
    """The parts of a template: plain text, and columns.

    Args:
        key: where it was given, for errors.
        template: as typed; a backslash with an n behind it is a line end, as it is typed on a command line.

    Raises:
        RbpxError: a brace is not closed, a column has no name, or a function is unknown.
    """
    parts: list[str | Place] = []
    try:
        fields = list(Formatter().parse(template.replace("\\n", "\n")))
    except ValueError as problem:
        raise RbpxError(
            f"{key}={template!r} is not a template: {problem}; name columns as {{column}}, and write {{{{ for a brace"
        ) from None
    for text, name, spec, conversion in fields:
        if text:
            parts.append(text)
        if name is not None:
            parts.append(_place(key, template, name if conversion is None else f"{name}!{conversion}", spec or ""))
    return tuple(parts)


def column(key: str, path: str) -> Place:
    """A column by its path, such as `choices.text`.

    Raises:
        RbpxError: it is not a path.
    """
    return _place(key, path, path, "")


def _place(key: str, template: str, name: str, spec: str) -> Place:
    found = list(_STEP.finditer(name))
    if not name or "".join(match[0] for match in found) != name or found[0][1] is None:
        raise RbpxError(
            f"{key}={template!r} names the column '{name}', which is not a path; write it as in {{question}} or "
            "{choices.text[0]}"
        )
    functions = tuple(each for each in spec.split(":") if each)
    for each in functions:
        if each not in FUNCTIONS:
            raise RbpxError(
                f"{key}={template!r} names the function '{each}', which is unknown; "
                f"{did_you_mean(each, list(FUNCTIONS))}known: {', '.join(FUNCTIONS)}"
            )
    steps = tuple(match[1] if match[1] is not None else int(match[2]) for match in found)
    return Place(name, steps, functions)
