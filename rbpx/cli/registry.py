"""All verbs by name: the questions of `rbpx.questions` and the files of `rbpx.cli.verbs`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rbpx.config.keys.key import Stored
from rbpx.config.keys.output import Study
from rbpx.config.request import Asking
from rbpx.questions import registry
from rbpx.questions.registry import Analysis

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine


@dataclass(frozen=True)
class Verb:
    """The description of a verb that is not a question, `VERB` in its file; it imports nothing heavy.

    Attributes:
        order: its place among the verbs; the questions are at 100.
        takes_words: besides key=value, as the query of sql.
        more: as in `Asking`.
        performs: whether its request names questions, whose keys it then has too.
        summary: the first line of its file's docstring; `help` is the rest.
    """

    order: int
    theme: str
    examples: tuple[str, ...]
    keys: type = Stored
    takes_words: bool = False
    more: Sequence[str] = ()
    performs: bool = False
    summary: str = ""
    help: str = ""


@dataclass(frozen=True)
class Command:
    """A command line and its requests, one for each job of a sweep; `launcher` as of `Jobs`."""

    line: "CommandLine"
    requests: Sequence[Any]
    launcher: str | None = None

    @property
    def request(self) -> Any:
        """The first request, for verbs without sweeps."""
        return self.requests[0]


_VERBS = Path(__file__).resolve().parent / "verbs"
_QUESTIONS = 100  # the place of the questions among the verbs


def names() -> list[str]:
    """The name of every verb without importing any."""
    return sorted([*registry.names(), *_files()])


@cache
def verbs() -> Mapping[str, Verb | Analysis]:
    """Every verb with its description, in the order of `--help`."""
    every: dict[str, Verb | Analysis] = {**registry.analyses(), **{name: _verb(name) for name in _files()}}
    return dict(sorted(every.items(), key=lambda each: getattr(each[1], "order", _QUESTIONS)))


def about(name: str) -> Verb | Analysis:
    """The description of a verb."""
    return registry.analysis(name) if name in registry.names() else _verb(name)


def _verb(name: str) -> Verb:
    file = module(name)
    described: Verb = file.VERB
    summary, page = registry.summary_and_help(file)
    return replace(described, summary=summary, help=page)


def module(name: str) -> ModuleType:
    """The module with the `perform` of a verb; all questions share one."""
    return import_module("rbpx.cli.question" if name in registry.names() else f"rbpx.cli.verbs.{_files()[name]}")


def asking(name: str) -> Asking:
    """The keys of a verb."""
    if name in registry.names():
        return registry.asking(name)
    described = _verb(name)
    return Asking(name, described.keys, described.more, _of_questions if described.performs else None)


def _of_questions(request: Study) -> Iterable[Asking]:
    return (registry.asking(name) for name in request.analyses if name in registry.names())


def takes_words(name: str) -> bool:
    """Whether a verb takes words besides key=value."""
    described = about(name)
    return bool(described.words) if isinstance(described, Analysis) else described.takes_words


@cache
def _files() -> dict[str, str]:
    """Verb -> its file; `import` is a keyword of Python, so its file is import_.py."""
    return {path.stem.rstrip("_"): path.stem for path in sorted(_VERBS.glob("[!_]*.py"))}
