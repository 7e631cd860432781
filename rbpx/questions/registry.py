"""Finds the questions: each folder beside this file is one, and declares what it needs and shows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from rbpx.config.keys.output import LOOKS
from rbpx.config.request import Asking
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.questions.question import Question

THEMES = ("measure", "fit", "predict", "compare", "tokens", "tasks", "store")
"""The parts of the list of verbs, in order."""
GONE: Final[Mapping[str, str]] = {
    "choices": "audit limit=0",
    "closure": "ranks",
    "design": "surface (can size and tokens be told apart), decide next=N (the next runs)",
    "experts": "fit size_by='[active,total]'",
    "improve": "learning",
    "pooled": "exponents",
    "tokenwise": "outcomes",
    "train": "python experiments/ladder/train.py",
}
"""What to type in place of a verb that there is no more."""
_HERE = Path(__file__).resolve().parent
NARROWS = ("model", "size", "dataset", "protocol", "family", "source", "variant")
_SHOWS = ("sql_memory_mib", "store", "format", "spreadsheet", "output")


@dataclass(frozen=True)
class Analysis:
    """What a question declares as `ANALYSIS` of its folder, which must import nothing heavy.

    Attributes:
        after: the question that it follows in the list of verbs and in a report; empty for the first.
        examples: commands that can be typed.
        title: heading of its section in a report.
        sizes: models that a group of runs needs; more than one where a law is fitted.
        theme: one of `THEMES`, under which the list of verbs has it.
        summary: what it answers, for the list of verbs: the first line of the docstring of its folder.
        help: the page of its `--help`: the rest of that docstring.
        in_report: whether a report has it; every question with figures has this.
        draws: whether it has figures.
        keys: the keys that it takes beside those that narrow every question.
        tokens: whether it reads single tokens, which imported results do not have.
        across: whether it compares groups with each other instead of looking at one after the other.
        trainings: whether its groups hold all trainings of a family with known tokens, instead of one run per size.
        small: whether it has something to say about groups with fewer sizes than a law needs.
        chooses_checkpoints: whether `checkpoints=` narrows it.
        file: what it takes instead of the store, as FILE.csv; empty where it takes nothing.
        words: the keys, in order, that words without key= stand for; empty where it takes none.
        lacking: why it may have nothing to look at, with {store}; where empty, a message about its sizes.
        primary: the file of conf/ that its request begins from.
    """

    after: str
    examples: tuple[str, ...]
    title: str
    sizes: int = 1
    theme: str = "fit"
    summary: str = ""
    help: str = ""
    in_report: bool = False
    draws: bool = False
    tokens: bool = False
    across: bool = False
    trainings: bool = False
    small: bool = False
    chooses_checkpoints: bool = True
    file: str = ""
    keys: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    lacking: str = ""
    primary: str = "analyse"

    @property
    def measures(self) -> bool:
        """Whether it measures again instead of asking the store alone."""
        return self.primary != "analyse"


@cache
def names() -> tuple[str, ...]:
    """The verbs of all questions, by the names of their folders."""
    return tuple(sorted(path.parent.name for path in _HERE.glob("*/__init__.py")))


@cache
def analyses() -> Mapping[str, Analysis]:
    """All questions by verb, each behind the one that it follows, those with fewer followers first."""
    described = {name: analysis(name) for name in names()}
    followers: dict[str, list[str]] = {}
    for name, each in described.items():
        followers.setdefault(each.after, []).append(name)

    def from_here(name: str) -> list[str]:
        lines = sorted(map(from_here, followers.get(name, ())), key=lambda line: (len(line), line))
        return [name, *(each for line in lines for each in line)]

    return {name: described[name] for name in from_here("")[1:]}


@cache
def analysis(name: str) -> Analysis:
    """What one question declares."""
    folder = import_module(f"rbpx.questions.{name}")
    described: Analysis = folder.ANALYSIS
    summary, page = taught(folder)
    return replace(described, summary=summary, help=page, in_report=described.in_report or described.draws)


def refuse_gone(name: str) -> None:
    """Refuse a verb that there is no more.

    Raises:
        RbpxError: it is one of `GONE`.
    """
    if name in GONE:
        raise RbpxError(f"{name} is no verb any more; in its place: {GONE[name]}")


def taught(described: ModuleType) -> tuple[str, str]:
    """What the list of verbs says of one, and its page of `--help`: the first line of its docstring, and the rest."""
    first, _, page = (described.__doc__ or "").partition("\n\n")
    return f"{first[:1].lower()}{first[1:].removesuffix('.')}", page.strip()


def asking(name: str) -> Asking:
    """The keys of one question: those that narrow it, its own, and those that say how its answer is shown.

    `checkpoints=` is a key of nearly all.
    """
    described = analysis(name)
    narrows = (*NARROWS, "checkpoints") if described.chooses_checkpoints else NARROWS
    shows = (*(LOOKS if described.draws else ()), "details", *(() if described.measures else ("fresh",)), *_SHOWS)
    return Asking(name, described.primary, tuple(dict.fromkeys((*narrows, *described.keys, *shows))))


def own_keys(name: str) -> tuple[str, ...]:
    """The keys of one question without those that say which runs it looks at."""
    return tuple(key for key in asking(name).names if key not in NARROWS)


def report_keys() -> tuple[str, ...]:
    """The keys of a report: those of its questions, without those that make sense for one question alone."""
    asked = [asking(name).names for name, each in analyses().items() if each.in_report]
    one = ("D", "details", "next", "register", "spreadsheet")
    return tuple(dict.fromkeys(("group", *(key for names in asked for key in names if key not in one))))


def question(name: str) -> "Question":
    """What a question looks at, and how it is answered."""
    found: Question = import_module(f"rbpx.questions.{name}.ask").QUESTION
    return found
