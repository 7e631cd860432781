"""All verbs by name: the questions of `rbpx.questions` and the files of `rbpx.cli.verbs`.

The description of a verb, and what it is given to perform.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rbpx.config.request import Asking, Request
from rbpx.questions import registry
from rbpx.questions.registry import Analysis

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine


@dataclass(frozen=True)
class Verb:
    """The description of a verb that is not a question, `VERB` in its file; nothing heavy is imported for it.

    Attributes:
        order: its place among the verbs; the questions stand at 100.
        theme: one of `THEMES`, under which the list of verbs has it.
        examples: commands that can be typed.
        primary: what its request begins from: measure, analyse, audit, or import.
        takes_words: whether it takes words beside key=value, as the query of sql.
        needs_store: whether it reads or writes a store.
        keys: what it can be asked beside the store; one with a dot stands here to be explained on its page.
        kind: returns the dataclass of its request, where that is not a `Request`.
        performs: whether it asks questions, whose keys it then has too.
        summary: what it does, for the list of verbs: the first line of the docstring of its file.
        help: the page of its `--help`: the rest of that docstring.
    """

    order: int
    theme: str
    examples: tuple[str, ...]
    primary: str = "analyse"
    takes_words: bool = False
    needs_store: bool = True
    keys: tuple[str, ...] = ()
    kind: Callable[[], type] | None = None
    performs: bool = False
    summary: str = ""
    help: str = ""


@dataclass(frozen=True)
class Asked:
    """What a verb is given to perform.

    Attributes:
        line: the command line.
        requests: of each job of a sweep, in order; one where it is none.
        launcher: of Hydra, that gives jobs processes of their own; None where this process does them.
    """

    line: "CommandLine"
    requests: Sequence[Any]
    launcher: str | None = None

    @property
    def request(self) -> Any:
        """The first request, of verbs for which a sweep makes no sense."""
        return self.requests[0]

    @property
    def words(self) -> tuple[str, ...]:
        """The verb's own words."""
        return self.line.words


_VERBS = Path(__file__).resolve().parent / "verbs"
_QUESTIONS = 100  # their place among the other verbs


def names() -> list[str]:
    """Every verb, without importing any."""
    return sorted([*registry.names(), *_files()])


@cache
def verbs() -> Mapping[str, Verb | Analysis]:
    """Every verb with what it says of itself, in the order of `--help`."""
    ours = {name: _verb(name) for name in _files()}
    in_order = sorted(ours, key=lambda name: ours[name].order)
    measuring = {name: ours[name] for name in in_order if ours[name].order < _QUESTIONS}
    return {**measuring, **registry.analyses(), **{name: ours[name] for name in in_order if name not in measuring}}


def about(name: str) -> Verb | Analysis:
    """What a verb says of itself."""
    return registry.analysis(name) if name in registry.names() else _verb(name)


def _verb(name: str) -> Verb:
    file = module(name)
    described: Verb = file.VERB
    summary, page = registry.summary_and_help(file)
    return replace(described, summary=summary, help=page)


def module(name: str) -> ModuleType:
    """The file of a verb, with its `perform`; all questions share one."""
    return import_module("rbpx.cli.question" if name in registry.names() else f"rbpx.cli.verbs.{_files()[name]}")


def asking(name: str) -> Asking:
    """What a verb can be asked."""
    if name in registry.names():
        return registry.asking(name)
    described = _verb(name)
    keys = described.keys
    if described.needs_store and "store" not in keys:
        keys += ("store",)
    if "format" in keys and described.primary == "analyse" and "spreadsheet" not in keys:
        keys += ("spreadsheet",)
    kind = None if described.kind is None else described.kind()
    return Asking(
        name, described.primary, tuple(dict.fromkeys(keys)), kind, _of_questions if described.performs else None
    )


def _of_questions(request: Request) -> Iterable[str]:
    """The keys of the questions that a request asks; of what it measures it looks at all."""
    keys = registry.own_keys if request.model is not None else lambda name: registry.asking(name).names
    return (key for name in request.analyses if name in registry.names() for key in keys(name))


def takes_words(name: str) -> bool:
    """Whether a verb takes words beside key=value."""
    described = about(name)
    return bool(described.file or described.words) if isinstance(described, Analysis) else described.takes_words


@cache
def _files() -> dict[str, str]:
    """Verb -> its file; `import` is a word of Python, so its file is import_.py."""
    return {path.stem.rstrip("_"): path.stem for path in sorted(_VERBS.glob("[!_]*.py"))}
