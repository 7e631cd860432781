"""A column of a table, described once: its heading, its names for programs, how a row becomes a cell, what it means.

Every format is made of this: a terminal, a page, Markdown, LaTeX, the values of a figure, frames of a notebook.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Never, Protocol, TypeVar

from rbpx.display.numbers import UNKNOWN, number, percent, short
from rbpx.laws.names import Axis
from rbpx.status import Status

Value = float | str | None
Row = TypeVar("Row", contravariant=True)
Of = Callable[[Row], float | None]
Written = Callable[[float | None], str]


class Bounded(Protocol):
    """A number with its 95 % interval; None where not known."""

    @property
    def value(self) -> float | None:
        """The number."""

    @property
    def lo(self) -> float | None:
        """The lower end."""

    @property
    def hi(self) -> float | None:
        """The upper end."""


@dataclass(frozen=True)
class Cell:
    """What a table says in one row and column.

    Attributes:
        texts: as people read it, one, or the two ends of an interval; a dash where unknown.
        values: for programs, one for each name of the column; None where unknown.
        is_number: whether it is aligned to the right.
        doubts: the statuses in it that are not ok, the one that is named first.
    """

    texts: tuple[str, ...]
    values: tuple[Value, ...]
    is_number: bool = True
    doubts: tuple[Status, ...] = ()

    @property
    def text(self) -> str:
        """Its text on a page."""
        return self.joined(" to ")

    def joined(self, between: str) -> str:
        """Its text, with what stands between the ends of an interval."""
        return UNKNOWN if set(self.texts) == {UNKNOWN} else between.join(self.texts)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column over rows of one kind.

    Attributes:
        heading: for people, in the signs of the field; {x} stands for what laws are in, {c} for their constant.
        keys: names of its values for programs; {x} as in the heading.
        cell: what it says of a row.
        means: what stands in it, for the note under the table; empty where its heading says all.
        spare: 0 where it is always shown; else a narrow terminal leaves it out, those with larger numbers first.
        form: how a figure writes its number where one points at a mark (d3); empty for texts.
        beside_S: whether there is such a column only where laws are not in S.
    """

    heading: str
    keys: tuple[str, ...]
    cell: Callable[[Row], Cell]
    means: str = ""
    spare: int = 0
    form: str = ""
    beside_S: bool = False

    def without_rows(self) -> "Column[Never]":
        """The column of a table whose cells are there: unlike what makes them, it can be sent to another process."""
        return Column(self.heading, self.keys, given, self.means, self.spare, self.form, self.beside_S)


def given(row: Never) -> Cell:
    """Stands where the cells of a column are there already."""
    raise NotImplementedError


def text(heading: str, key: str, of: Callable[[Row], str | None], means: str = "", spare: int = 0) -> Column[Row]:
    """Names and words."""

    def cell(row: Row) -> Cell:
        value = of(row)
        return Cell((UNKNOWN if value is None else value,), (value,), is_number=False)

    return Column(heading, (key,), cell, means, spare)


def written(
    heading: str, key: str, of: Of[Row], how: Written, means: str = "", spare: int = 0, form: str = ".4~g"
) -> Column[Row]:
    """Numbers, written in some way."""

    def cell(row: Row) -> Cell:
        value = of(row)
        return Cell((how(value),), (value,))

    return Column(heading, (key,), cell, means, spare, form)


def decimal(heading: str, key: str, of: Of[Row], digits: int = 4, means: str = "", spare: int = 0) -> Column[Row]:
    """Numbers with so many decimals."""
    return written(heading, key, of, lambda value: number(value, digits), means, spare, f".{digits}f")


def whole(heading: str, key: str, of: Of[Row], means: str = "", spare: int = 0) -> Column[Row]:
    """Counts, or an imported S, which may be any positive number."""
    return written(heading, key, of, _whole, means, spare, ",")


def magnitude(heading: str, key: str, of: Of[Row], means: str = "", spare: int = 0) -> Column[Row]:
    """Numbers of any magnitude, in three digits."""
    return written(heading, key, of, short, means, spare, ".3~g")


def error(heading: str, key: str, of: Of[Row], means: str = "", spare: int = 0) -> Column[Row]:
    """Relative errors, in percent with their sign."""
    return written(heading, key, of, percent, means, spare, "+.2%")


def share(heading: str, key: str, of: Of[Row], digits: int = 1, means: str = "", spare: int = 0) -> Column[Row]:
    """Parts of a whole, in percent without a sign."""

    def in_percent(value: float | None) -> str:
        return UNKNOWN if value is None else f"{value:.{digits}%}"

    return written(heading, key, of, in_percent, means, spare, f".{digits}%")


def ends(
    keys: str,
    of: Callable[[Row], tuple[float | None, float | None]],
    how: Written = number,
    heading: str = "95 %",
    means: str = "",
    spare: int = 0,
) -> Column[Row]:
    """Intervals, by the names of their two ends."""

    def cell(row: Row) -> Cell:
        lo, hi = of(row)
        return Cell((how(lo), how(hi)), (lo, hi))

    return Column(heading, tuple(keys.split()), cell, means, spare, ".4~g")


def with_ends(
    heading: str,
    key: str,
    of: Callable[[Row], Bounded | None],
    how: Written = number,
    means: str = "",
    spare: int = 0,
    ends_spare: int = 0,
) -> Sequence[Column[Row]]:
    """Numbers, and beside them their 95 % intervals, which may be spared alone; empty where there is no number."""

    def end(row: Row) -> tuple[float | None, float | None]:
        bounded = of(row)
        return (None, None) if bounded is None else (bounded.lo, bounded.hi)

    def value(row: Row) -> float | None:
        bounded = of(row)
        return None if bounded is None else bounded.value

    return (
        written(heading, key, value, how, means, spare),
        ends(f"{key}_lo {key}_hi", end, how, spare=ends_spare or spare),
    )


def behind(
    key: str, of: Callable[[Row], Bounded | None], means: str = "", ends_spare: int = 0
) -> Sequence[Column[Row]]:
    """What each loses to the best, which is called so, with the 95 % interval."""
    value, _ = with_ends("behind", key, of, lambda value: "best" if value == 0 else number(value), means)
    return value, with_ends("behind", key, of, ends_spare=ends_spare)[1]


def state(of: Callable[[Row], Status | Sequence[Status]]) -> Column[Row]:
    """The status of each row, the first of several by name; what to do about those that are not ok stands below."""

    def cell(row: Row) -> Cell:
        found = of(row)
        statuses = (found,) if isinstance(found, Status) else tuple(found)
        doubts = tuple(status for status in statuses if status is not Status.ok)
        return Cell((statuses[0].label,), (statuses[0].value,), is_number=False, doubts=doubts)

    return Column("status", ("status",), cell)


class Placed(Protocol):
    """A run with its place on an axis."""

    @property
    def axis(self) -> Axis:
        """What laws are in."""

    @property
    def x(self) -> float | None:
        """Where on it the run lies."""

    @property
    def non_embedding_params(self) -> float:
        """S."""


def place(of: Callable[[Row], Placed], spare: int = 0) -> Sequence[Column[Row]]:
    """S, and where laws are in something else the place there."""
    S: Column[Row] = whole("S", "non_embedding_params", lambda row: of(row).non_embedding_params, spare=spare)
    x: Column[Row] = magnitude("{x}", "{x}", lambda row: of(row).x)
    return S, replace(x, beside_S=True)


def _whole(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"
