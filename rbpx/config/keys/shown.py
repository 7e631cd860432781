"""Keys that say where answers come from and go to, how they look, and what a named study is."""

from dataclasses import dataclass
from typing import Any, Final

from rbpx.config.imports import ImportConfig
from rbpx.config.keys.key import key, number_within
from rbpx.config.options import Format, Legend

__all__ = ["LOOKS", "ShownKeys", "StudyKeys"]


@dataclass
class StudyConfig:
    """A named study (experiments/*.yaml).

    Attributes:
        name: the name of its file.
        question: the question it answers.
        grid: what was measured in the publication, and what is measured here.
        published: what was published, with its source.
        would_change: what measurement would change the answer.
        file: what its analyses read in place of the store, as FILE of their verbs; relative to the study's file.
        result: a SELECT over `found`, the rows of its analyses; `record` writes its answer into the file.
    """

    name: str | None = None
    question: str | None = None
    grid: str | None = None
    published: str | None = None
    would_change: str | None = None
    file: str | None = None
    result: str | None = None


LOOKS: Final = ("width", "font_size", "font", "legend")


@dataclass(kw_only=True)
class ShownKeys:
    """From where, to where, and how."""

    fresh: bool = key(False, "does nothing any more: every answer is computed", shown="true")
    store: str = key(
        "${oc.env:RBPX_STORE,store}",
        "folder of the store (--store DIR); default $RBPX_STORE or store/",
        shown="DIR",
        path=True,
    )
    details: bool = key(
        False,
        "in csv and json, all columns of every row, not only those of tables (--details)",
        shown="true",
        values=("true",),
    )
    format: Format = key(
        Format.table,
        "or csv, json, html, md, tex, svg, pdf (--format F)",
        shown="table",
        narrows="or csv, json, html, md, tex; svg and pdf: its figures (--format F)",
        alone="or csv, json; plan also jobs (--format F)",
    )
    spreadsheet: bool = key(
        False,
        "in csv, put a ' before text that begins with = + - @, a tab or a line end, which spreadsheets run",
        shown="true",
    )
    width: float | None = key(
        None, "of a figure in a file, with its axes", number_within(1, 40, "inches"), shown="INCHES"
    )
    font_size: float | None = key(
        None, "of the text of figures in files", number_within(4, 40, "points"), shown="POINTS"
    )
    font: str | None = key(None, "of these", shown="NAME")
    legend: Legend | None = key(None, "of these, or top, bottom, left, none", shown="right")
    output: str | None = key(
        None,
        "where a verb writes (--output FILE)",
        shown="FILE",
        path=True,
        narrows="where that is written, a folder for several figures (--output FILE)",
        alone="where that is written (--output FILE)",
    )


@dataclass(kw_only=True)
class StudyKeys:
    """What a named study says beside these."""

    study: StudyConfig | None = key(None, "")
    imports: list[ImportConfig] = key([], "")
    analyses: list[str] = key(
        ["fit"], "questions that are asked of what was measured; default fit", shown="'[fit,ranks]'"
    )
    experiment: Any = key(None, "{experiments}", shown="NAME")
