"""Keys that say where answers come from and go to, how they look, and what a named study is."""

from dataclasses import dataclass
from typing import Any, Final

from rbpx.config.imports import ImportConfig
from rbpx.config.keys.key import Asked, Key, as_typed, number_within
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


class ShownKeys(Asked):
    """From where, to where, and how."""

    fresh: Key[bool] = Key(bool, False, as_typed, "true").says("does nothing any more: every answer is computed")
    store: Key[str] = Key(str, "${oc.env:RBPX_STORE,store}", as_typed, "DIR", takes_path=True).says(
        "folder of the store (--store DIR); default $RBPX_STORE or store/"
    )
    details: Key[bool] = Key(bool, False, as_typed, "true", values=("true",)).says(
        "in csv and json, all columns of every row, not only those of tables (--details)"
    )
    format: Key[Format] = Key(Format, Format.table, as_typed, "table").says(
        "or csv, json, html, md, tex, svg, pdf (--format F)",
        "or csv, json, html, md, tex; svg and pdf: its figures (--format F)",
        "or csv, json; plan also jobs (--format F)",
    )
    spreadsheet: Key[bool] = Key(bool, False, as_typed, "true").says(
        "in csv, put a ' before text that begins with = + - @, a tab or a line end, which spreadsheets run"
    )
    width: Key[float | None] = Key(float | None, None, number_within(1, 40, "inches"), "INCHES").says(
        "of a figure in a file, with its axes"
    )
    font_size: Key[float | None] = Key(float | None, None, number_within(4, 40, "points"), "POINTS").says(
        "of the text of figures in files"
    )
    font: Key[str | None] = Key(str | None, None, as_typed, "NAME").says("of these")
    legend: Key[Legend | None] = Key(Legend | None, None, as_typed, "right").says(
        "of these, or top, bottom, left, none"
    )
    output: Key[str | None] = Key(str | None, None, as_typed, "FILE", takes_path=True).says(
        "where a verb writes (--output FILE)",
        "where that is written, a folder for several figures (--output FILE)",
        "where that is written (--output FILE)",
    )


class StudyKeys(Asked):
    """What a named study says beside these."""

    study: Key[StudyConfig | None] = Key(StudyConfig | None, None, as_typed, "").says("")
    imports: Key[list[ImportConfig]] = Key(list[ImportConfig], [], as_typed, "").says("")
    analyses: Key[list[str]] = Key(list[str], ["fit"], as_typed, "'[fit,ranks]'").says(
        "questions that are asked of what was measured; default fit"
    )
    experiment: Key[Any] = Key(None, None, as_typed, "NAME").says("{experiments}")
