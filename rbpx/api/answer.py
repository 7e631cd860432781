"""The answer to a question in Python: rows for Arrow and pandas, tables, figures."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from rbpx.config.options import did_you_mean
from rbpx.display.terminal import shown_columns
from rbpx.errors import RbpxError, number_of
from rbpx.questions import render
from rbpx.questions.registry import analyses, analysis
from rbpx.questions.result import Result
from rbpx.store.store import Record

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import pyarrow as pa

    from rbpx.display.table import Table

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Generic[Found]):
    """The answer of one verb, with the numbers of `--format json`; `print(answer)` shows the table that it prints.

    Attributes:
        results: one for each group of runs or each compared family: its rows, tables and sentences.
        records: rows as printed in JSON: the exact values of the tables; an unknown value is None.
        messages: what the command line prints on stderr, for example that a damaged run was left out.
        details: the rows with all known values, as `--details` prints them.
    """

    verb: str
    results: tuple[Found, ...]
    records: tuple[Record, ...]
    messages: tuple[str, ...] = ()
    details: tuple[Record, ...] = ()

    @property
    def _answered(self) -> tuple[Result, ...]:
        return cast("tuple[Result, ...]", self.results)

    def arrow(self) -> pa.Table:
        """Returns the rows with all details as an Arrow table; nested values such as `params` are JSON."""
        import pyarrow as pa

        rows = [{name: _flat(value) for name, value in record.items()} for record in self.details or self.records]
        return pa.Table.from_pylist(rows)

    def frame(self) -> pd.DataFrame:
        """Returns the rows as a pandas DataFrame with the keys of JSON as its columns; an unknown number is NaN."""
        import pandas as pd

        return pd.DataFrame.from_records(list(self.records))

    def tables(self) -> dict[str, pd.DataFrame]:
        """Returns the values of the printed tables, by the table's name; the column `about` names the group."""
        import pandas as pd

        found: dict[str, list[pd.DataFrame]] = {}
        for each in render.tables(self._answered):
            frame = pd.DataFrame.from_records([render.with_status_label(row) for row in each.records()])
            frame.insert(0, "about", each.about)
            found.setdefault(each.name, []).append(frame)
        return {name: pd.concat(frames, ignore_index=True) for name, frames in found.items()}

    def show(self, details: bool = False) -> None:
        """Prints what the verb prints, with `details` all of it, in colour if the terminal has colours."""
        if self.verb in analyses():
            render.show(self.verb, self._answered, details)
        else:
            from rbpx.api.measuring import show_cells

            show_cells(self.records)

    def __str__(self) -> str:
        with redirect_stdout(io.StringIO()) as text:
            self.show()
        return text.getvalue().rstrip("\n")

    def __repr__(self) -> str:
        return f"<Answer of {self.verb}: {number_of(len(self.records), 'row')}; print() shows its table>"

    def plot(self, figure: str = "") -> alt.LayerChart:
        """Returns one of the report's figures, of the first group of runs that has it.

        `figure` is its name, such as cross_entropy or residuals for `fit`; by default the first that can be drawn.

        Raises:
            RbpxError: the question has no figures, or none of that name can be drawn.
        """
        if not analysis(self.verb).draws:
            drawing = ", ".join(name for name, each in analyses().items() if each.draws)
            raise RbpxError(f"{self.verb} has no picture in a notebook; these verbs have one: {drawing}")
        from rbpx.display.chart.figure import first_drawn

        drawn = (each for result in self._answered for each in result.figures())
        if not figure:
            return first_drawn(drawn)
        every = list(drawn)
        known = list(dict.fromkeys(each.name for each in every))
        if known and figure not in known:
            hint = did_you_mean(figure, known)
            raise RbpxError(f"{self.verb} has no figure {figure!r} here; {hint}known: {', '.join(known)}")
        return first_drawn(each for each in every if each.name == figure)

    def _repr_html_(self) -> str:
        said, shown = list(self.messages), [("", self.frame())]
        if self.verb in analyses():
            found = [table.briefly() for table in render.tables(self._answered)]
            tables = [each.only(shown_columns(each)) for each in found if each.rows and not each.is_wide]
            doubts = sorted({status for table in tables for status in table.shown_doubts()})
            said = [each[0] for each in render.sentences(self.verb, self._answered) if each] + said
            said += [f"{status.label}: {status.remedy}" for status in doubts]
            shown = [(": ".join(filter(None, (of.about, of.title))), _texts(of)) for of in tables]
        html = [f"<p>{escape(each)}</p>" for each in said]
        for title, frame in shown:
            html.append(f"<p><b>{escape(title)}</b></p>{frame.to_html(max_rows=40, index=False, na_rep='–')}")
        return "".join(html)


def _texts(table: Table) -> pd.DataFrame:
    import pandas as pd

    names = [column.name for column in table.columns]
    return pd.DataFrame([[column.text(row) for column in table.columns] for row in table.rows], columns=names)


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict) else value
