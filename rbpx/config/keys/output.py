"""Keys of the store, of the output and its look, and of named studies."""

from dataclasses import dataclass
from typing import Any, Final

from rbpx.config.imports import ImportConfig
from rbpx.config.keys.key import key, number_within
from rbpx.config.options import Format, Legend


@dataclass
class StudyConfig:
    """A named study (experiments/*.yaml).

    Attributes:
        name: the name of its file.
        question: the question that the study answers.
        grid: what the publication measured, and what is measured here.
        published: the published result, with its source.
        would_change: the measurement that would change the answer.
        result: a SELECT over `found`, the rows of its analyses; `record` writes its answer into the file.
    """

    name: str | None = None
    question: str | None = None
    grid: str | None = None
    published: str | None = None
    would_change: str | None = None
    result: str | None = None


LOOKS: Final = ("width", "font_size", "font", "legend")
_WHERE: Final = "where that is written (--output FILE)"


@dataclass(kw_only=True)
class ShownKeys:
    """Keys of the store, and of the output and its look."""

    fresh: bool = key(False, "does nothing any more: every answer is computed", shown="true")
    store: str = key(
        "${oc.env:RBPX_STORE,store}",
        "folder of the store (--store DIR), default $RBPX_STORE or store/",
        shown="DIR",
        path=True,
    )
    details: bool = key(False, "all tables and sentences; in csv and json all that is known of a row", shown="true")
    format: Format = key(
        Format.table,
        "table, csv, json, html, md, tex, svg, pdf, png (--format F)",
        shown="table",
        narrows="table, csv, json, html, md, tex; svg, pdf, png: its figures (--format F)",
        alone="table, csv or json; of plan also jobs (--format F)",
    )
    spreadsheet: bool = key(
        False,
        "in csv a ' before text that begins with = + - @, a tab or a line end, which spreadsheets run",
        shown="true",
    )
    width: float | None = key(
        None, "width of a figure in a file, in inches, with its axes", number_within(1, 40, "inches"), "IN"
    )
    font_size: float | None = key(
        None, "size of text of figures in files, in points", number_within(4, 40, "points"), "PT"
    )
    font: str | None = key(None, "font of figures in files", shown="NAME")
    legend: Legend | None = key(None, "position of the legend of figures in files", shown="right")
    output: str | None = key(
        None, _WHERE, shown="FILE", path=True, narrows=f"{_WHERE}, a folder for several figures", alone=_WHERE
    )


@dataclass(kw_only=True)
class StudyKeys:
    """Keys that only a named study sets."""

    study: StudyConfig | None = key(None)
    imports: list[ImportConfig] = key([])
    analyses: list[str] = key(
        ["fit"], "questions that are asked of what was measured: {example}; default fit", example=["fit", "ranks"]
    )
    experiment: Any = key(None, "{experiments}", shown="NAME")
