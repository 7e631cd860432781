"""Finds the questions: each folder of this package is one, and its ANALYSIS declares its keys and requirements."""

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
_ORDER: Final = (
    *("fit", "regimes", "exponents", "klaw", "items", "attempts", "predict", "surface", "downstream", "decide"),
    *("forecasts", "trajectory", "emergence", "gaps", "ranks", "entropy", "units", "compare", "view"),
    *("multiplier", "learning", "outcomes", "audit"),
)  # of the list of verbs and of a report; questions that are not here follow by name
NARROWS = ("model", "size", "dataset", "protocol", "family", "source", "variant")
_SHOWS = ("sql_memory_mib", "store", "format", "spreadsheet", "output")


@dataclass(frozen=True)
class Analysis:
    """What the folder of a question declares as `ANALYSIS`; it must import nothing heavy.

    Attributes:
        examples: commands.
        title: heading of its section in a report.
        sizes: fewest models of a group; more than one where a law is fitted.
        theme: one of `THEMES`.
        summary: the first line of the folder's docstring, for the list of verbs.
        help: the rest of that docstring, for `--help`.
        in_report: whether a report includes it; always with figures.
        draws: whether it has figures.
        keys: its keys besides those that narrow every question.
        tokens: whether it reads single tokens, which imported results lack.
        across: whether it compares groups.
        trainings: whether a group holds all trainings of a family with known tokens, instead of one run per size.
        small: whether it also answers about groups with fewer sizes than a law needs.
        chooses_checkpoints: whether it takes `checkpoints=`.
        words: the keys, in order, of words without key=; empty for none.
        lacking: the message where nothing suits, with {store}; empty for the usual one about sizes.
        plain: the columns of its rows in CSV, JSON and frames, at most 24; NAME_* are all that begin so. All that are
            not nested if empty.
        kinds: the kinds of rows that are there; all if empty.
        primary: the file of conf/ that its request starts from.
    """

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
    keys: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    lacking: str = ""
    plain: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    primary: str = "analyse"

    @property
    def measures(self) -> bool:
        """Whether it measures, and does not only read the store."""
        return self.primary != "analyse"


@cache
def names() -> tuple[str, ...]:
    """Returns the verbs of all questions, the names of their folders."""
    return tuple(sorted(path.parent.name for path in _HERE.glob("*/__init__.py")))


@cache
def analyses() -> Mapping[str, Analysis]:
    """Returns all questions by verb, in their order."""
    in_order = [name for name in _ORDER if name in names()]
    return {name: analysis(name) for name in dict.fromkeys((*in_order, *names()))}


@cache
def analysis(name: str) -> Analysis:
    """Returns what one question declares."""
    folder = import_module(f"rbpx.questions.{name}")
    described: Analysis = folder.ANALYSIS
    summary, page = summary_and_help(folder)
    return replace(described, summary=summary, help=page, in_report=described.in_report or described.draws)


def refuse_removed(name: str) -> None:
    """Refuses a removed verb, or VERB FILE.

    Raises:
        RbpxError: it is one of `REMOVED`.
    """
    if name in REMOVED:
        raise RbpxError(f"{name} is not asked any more; in its place: {REMOVED[name]}")


def summary_and_help(described: ModuleType) -> tuple[str, str]:
    """Splits a module's docstring into its summary for the list of verbs and its `--help` page."""
    first, _, page = (described.__doc__ or "").partition("\n\n")
    return f"{first[:1].lower()}{first[1:].removesuffix('.')}", page.strip()


def asking(name: str) -> Asking:
    """Returns the keys of a question: those that select runs, its own, and those of its output."""
    described = analysis(name)
    narrows = (*NARROWS, "checkpoints") if described.chooses_checkpoints else NARROWS
    shows = (*(LOOKS if described.draws else ()), "details", *(() if described.measures else ("fresh",)), *_SHOWS)
    return Asking(name, described.primary, tuple(dict.fromkeys((*narrows, *described.keys, *shows))))


def own_keys(name: str) -> tuple[str, ...]:
    """Returns the keys of a question except those that select runs; none where its folder is gone."""
    return tuple(key for key in asking(name).names if key not in NARROWS) if name in names() else ()


def report_keys() -> tuple[str, ...]:
    """Returns the keys of a report: those of its questions, except keys that suit only a single question."""
    asked = [asking(name).names for name, each in analyses().items() if each.in_report]
    one = ("D", "details", "next", "register", "spreadsheet")
    return tuple(dict.fromkeys(("group", *(key for names in asked for key in names if key not in one))))


def question(name: str) -> "Question":
    """Imports and returns a question."""
    found: Question = import_module(f"rbpx.questions.{name}.ask").QUESTION
    return found
