"""Finds the questions: each folder of this package declares one as ANALYSIS."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from rbpx.config.keys.output import QuestionKeys
from rbpx.config.keys.runs import GridKeys
from rbpx.config.request import NARROWS, Asking
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.questions.question import Question

THEMES = ("measure", "fit", "predict", "compare", "tokens", "tasks", "store")
"""The sections of the list of verbs, in order."""
REMOVED: Final[Mapping[str, str]] = {
    "choices": "fit, which has a law for each protocol, bos and dtype, and fit ties=mid",
    "closure": "ranks",
    "design": "surface (can size and tokens be told apart), decide next=N (the next runs)",
    "experts": "fit size_by=active, and fit size_by=total",
    "improve": "learning",
    "exponents FILE": "import FILE, with columns family, dataset, S, k, rbp and cross_entropy_nats, and then exponents",
    "outcomes FILE": "outcomes of stored runs; import FILE, with columns item, n_samples, n_correct, and attempts",
    "pooled": "exponents, for each family by itself",
    "temperature": "entropy (what cross-entropy consists of)",
    "tokenwise": "outcomes",
    "train": "python experiments/ladder/train.py",
}
"""Removed verbs and files that verbs took, and what to type instead."""
_HERE = Path(__file__).resolve().parent
_LAST: Final = 1000


@dataclass(frozen=True)
class Analysis:
    """What the folder of a question declares as `ANALYSIS`; it must import nothing heavy.

    Attributes:
        title: of its section in a report.
        place: in the list of verbs and in a report, ascending; questions of one place stand by name.
        sizes: fewest models of a group.
        summary: the first line of the folder's docstring; `help` is the rest.
        in_report: whether a report includes it; always with figures.
        tokens: whether it reads single tokens, which imported results lack.
        across: whether it compares groups.
        trainings: whether a group holds all trainings of a family, instead of one run per size.
        small: whether it also answers about fewer sizes than a law needs.
        words: the keys, in order, of words without key=.
        lacking: the message where nothing suits, with {store}; empty for the usual one about sizes.
        without_tokens: a verb that answers where runs have no tokens, and from what.
        on_card: whether the card of a group in a report has its answer.
        plain: the columns of its rows in CSV, JSON and frames, at most 24, NAME_* for all that begin so; if empty, all
            that are not nested.
        kinds: of the plain rows; all if empty.
    """

    examples: tuple[str, ...]
    title: str
    place: int = _LAST
    keys: type[QuestionKeys] = QuestionKeys
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
    words: tuple[str, ...] = ()
    lacking: str = ""
    without_tokens: tuple[str, str] | None = None
    on_card: bool = False
    plain: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def measures(self) -> bool:
        """Whether it measures, and does not only read the store."""
        return issubclass(self.keys, GridKeys)


@cache
def names() -> tuple[str, ...]:
    """The verbs of all questions, the names of their folders."""
    return tuple(sorted(path.parent.name for path in _HERE.glob("*/__init__.py")))


@cache
def analyses() -> Mapping[str, Analysis]:
    """All questions by verb, in their order."""
    every = {name: analysis(name) for name in names()}
    return {name: every[name] for name in sorted(every, key=lambda name: every[name].place)}


@cache
def analysis(name: str) -> Analysis:
    """What one question declares."""
    folder = import_module(f"rbpx.questions.{name}")
    described: Analysis = folder.ANALYSIS
    summary, page = summary_and_help(folder)
    keys = getattr(folder, f"{name.title().replace('_', '')}Keys")
    in_report = described.in_report or described.draws
    return replace(described, keys=keys, summary=summary, help=page, in_report=in_report)


def refuse_removed(name: str) -> None:
    """Refuses a removed verb, or VERB FILE.

    Raises:
        RbpxError: it is one of `REMOVED`.
    """
    if name in REMOVED:
        raise RbpxError(f"{name} is not asked any more; in its place: {REMOVED[name]}")


def summary_and_help(described: ModuleType) -> tuple[str, str]:
    """Splits a module's docstring for the list of verbs and its `--help` page."""
    first, _, page = (described.__doc__ or "").partition("\n\n")
    return f"{first[:1].lower()}{first[1:].removesuffix('.')}", page.strip()


def asking(name: str) -> Asking:
    """The keys of a question."""
    return Asking(name, analysis(name).keys)


def own_keys(name: str) -> tuple[str, ...]:
    """The keys of a question except those that select runs, if its folder is there."""
    return tuple(key for key in asking(name).keys if key not in NARROWS) if name in names() else ()


def report_keys() -> tuple[str, ...]:
    """The keys of a report's questions, except those that suit only one."""
    asked = {key for name, each in analyses().items() if each.in_report for key in asking(name).keys}
    return tuple(asked - {"D", "details", "next", "register", "spreadsheet"})


def question(name: str) -> "Question":
    """Imports and returns a question."""
    found: Question = import_module(f"rbpx.questions.{name}.ask").QUESTION
    return found
