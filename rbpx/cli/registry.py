"""All verbs by name: the questions of `rbpx.analyses` and the files of `rbpx.cli.verbs`."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rbpx.analyses import registry
from rbpx.analyses.registry import Analysis
from rbpx.cli.verb import Verb
from rbpx.config.request import Asking, Request

_VERBS = Path(__file__).resolve().parent / "verbs"
_QUESTIONS = 100  # their place among the other verbs


def names() -> list[str]:
    """Every verb, without importing any."""
    return sorted([*registry.names(), *_files()])


@cache
def verbs() -> Mapping[str, Verb | Analysis]:
    """Every verb with what it says of itself, in the order of `--help`."""
    ours: dict[str, Verb] = {name: module(name).VERB for name in _files()}
    in_order = sorted(ours, key=lambda name: ours[name].order)
    measuring = {name: ours[name] for name in in_order if ours[name].order < _QUESTIONS}
    return {**measuring, **registry.analyses(), **{name: ours[name] for name in in_order if name not in measuring}}


def about(name: str) -> Verb | Analysis:
    """What a verb says of itself."""
    if name in registry.names():
        return registry.analysis(name)
    described: Verb = module(name).VERB
    return described


def module(name: str) -> ModuleType:
    """The file of a verb, with its `start` and `finish`; all questions share one."""
    return import_module("rbpx.cli.question" if name in registry.names() else f"rbpx.cli.verbs.{_files()[name]}")


def asking(name: str) -> Asking:
    """What a verb can be asked."""
    if name in registry.names():
        return registry.asking(name)
    described: Verb = module(name).VERB
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
