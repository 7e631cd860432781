"""Keys of the store, of the output and its look, and of named studies."""

from dataclasses import dataclass
from typing import Any, Final, cast

from rbpx.config.imports import ImportConfig
from rbpx.config.keys.key import Keys, Reader, Stored, Within, key, names_of, positive, whole
from rbpx.config.keys.laws import Along
from rbpx.config.keys.predictions import Budgets
from rbpx.config.keys.runs import Narrowing
from rbpx.config.options import Format, Legend
from rbpx.errors import RbpxError


@dataclass
class StudyConfig:
    """A named study (experiments/*.yaml), by the name of its file.

    Attributes:
        grid: what the publication measured, and what is measured here.
        would_change: the measurement that would change the answer.
        result: a SELECT over `found`, the rows of its analyses; `record` writes its answer into the file.
    """

    name: str | None = None
    question: str | None = None
    grid: str | None = None
    published: str | None = None
    would_change: str | None = None
    result: str | None = None


_WHERE: Final = "where that is written (--output FILE)"


class Queried(Keys):
    """Time that SQL may take."""

    sql_timeout_s: float | None = key(
        60.0, "seconds that SQL of yours may compute, null for no limit", positive("seconds"), "60"
    )


class Limited(Keys):
    """Memory that SQL may take."""

    sql_memory_mib: int | None = key(
        None, "memory that SQL may hold, default half of the machine's or the container's", whole(1), "MIB"
    )


class Printed(Keys):
    """How an answer is printed."""

    details = False
    format = Format.table
    output = cast("str | None", None)
    spreadsheet = False


class Written(Printed):
    """Where an answer is written."""

    output: str | None = key(None, _WHERE, shown="FILE")


class Answered(Written):
    """Where an answer is written, in the format that the name of the file ends in unless one is given."""

    def check(self) -> None:
        """Takes the format of the name."""
        super().check()
        if self.format is Format.table:
            self.format = self.typed["format"] = Format.of_suffix(self.output) or Format.table


class Told(Limited, Answered, Narrowing):
    """Keys of what is asked of a store and told in any format."""

    format: Format = key(
        Format.table, "table, csv, json, html, md, tex; svg, pdf, png: its figures (--format F)", shown="table"
    )
    output: str | None = key(None, f"{_WHERE}, a folder for several figures", shown="FILE")


class PrintedRows(Printed):
    """Rows, of verbs that ask no question."""

    format: Format = key(Format.table, "table, csv or json; of plan also jobs (--format F)", shown="table")


class Detailed(Printed):
    """Whether all is shown."""

    details: bool = key(False, "all tables and sentences; in csv and json all that is known of a row", shown="true")

    def check(self) -> None:
        """Refuses details= for formats that have all."""
        super().check()
        if self.details and self.format not in (Format.table, Format.csv, Format.json):
            raise RbpxError(
                f"details=true is of tables, csv and json; format={self.format.value} has all of it: drop it"
            )


class Spreadsheet(Printed):
    """Rows for programs that run what cells say."""

    spreadsheet: bool = key(
        False,
        "in csv a ' before text that begins with = + - @, a tab or a line end, which spreadsheets run",
        shown="true",
    )

    def check(self) -> None:
        """Refuses spreadsheet= for what is no CSV."""
        super().check()
        if self.spreadsheet and self.format not in (Format.csv, Format.table):
            raise RbpxError(f"spreadsheet=true is for csv, not format={self.format.value}; drop one of them")


LOOKS: Final = ("width", "font_size", "font", "legend")


def _size(least: int, what: str) -> Reader:
    return Within(least, 40, f"is not between {least} and 40 {what}; give one that is")


class Looks(Printed):
    """The look of figures in files."""

    width: float | None = key(None, "width of a figure in a file, in inches, with its axes", _size(1, "inches"), "IN")
    font_size: float | None = key(None, "size of text of figures in files, in points", _size(4, "points"), "PT")
    font: str | None = key(None, "font of figures in files", shown="NAME")
    legend: Legend | None = key(None, "position of the legend of figures in files", shown="right")

    def check(self) -> None:
        """Refuses the look of figures where none are written to files."""
        super().check()
        given = next((name for name in LOOKS if self.typed[name] is not None), None)
        if given is not None and not self.format.is_figures:
            raise RbpxError(f"{given}= is of figures in files: add --format svg, pdf or png, or drop it")


class RowKeys(Spreadsheet, PrintedRows, Stored):
    """Keys of verbs that print rows of a store."""


class QueryKeys(Queried, Limited, Written, RowKeys):
    """Keys of verbs that answer queries."""


class QuestionKeys(Detailed, Spreadsheet, Told):
    """Keys of a question to a store."""


class Drawn(Looks, QuestionKeys):
    """Keys of a question that has figures."""


class Reported(Looks, Along, Budgets, Spreadsheet, Told):
    """Keys that a report reads itself."""

    group: list[str] | None = key(
        None, "groups with sections of their own, as a report's table names them: one, a list or all", names_of, "NAME"
    )


class Named(Keys):
    """A named study."""

    experiment: Any = key(None, "{experiments}", shown="NAME")


class Study(Named, Stored):
    """What a study imports and asks; `study` and `imports` are set by its file alone."""

    study: StudyConfig | None = key(None)
    imports: list[ImportConfig] = key([])
    analyses: list[str] = key(
        ["fit"],
        "questions that are asked of what was measured: {example}; default fit",
        names_of,
        example=["fit", "ranks"],
    )
