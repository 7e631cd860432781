"""The rows of learning for one group, and one table for each kind of row."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from rbpx.display.view import (
    Column,
    Columns,
    Table,
    View,
    decimal,
    ends,
    magnitude,
    share,
    state,
    text,
    whole,
    with_ends,
)
from rbpx.display.vocabulary import UNKNOWN, decimals, legible, number, short
from rbpx.laws.counts.times import History
from rbpx.runs.group import Group
from rbpx.runs.run import Run
from rbpx.store.store import Record


class LearningRows(NamedTuple):
    """The rows about a group: its runs, one for each point, and all rows, each with its kind."""

    group: Group
    runs: Sequence[Run]
    rows: Sequence[Record]

    def of(self, kind: str, **values: Any) -> list[Record]:
        """Returns the rows of a kind with these values."""
        values["kind"] = kind
        return [row for row in self.rows if all(row.get(name) == value for name, value in values.items())]


CARRYING: Final = 5
"""Number of token ids that a terminal shows, those that improve most."""

OFTEN: Final = (History.learned, History.forgotten, History.unstable)
"""The histories whose most frequent tokens are named."""


def _percents(digits: int) -> Callable[[float | None], str]:
    return lambda value: UNKNOWN if value is None else f"{value:.{digits}%}"


_three, _part = decimals(3), _percents(1)
_TEXT: Final[Column[Record]] = text("token", "text", lambda row: legible(row["text"], row["token_id"]))

BETTER: Final = View[Record](
    "better",
    _TEXT,
    decimal("id", "token_id", digits=0, spare=2),
    whole("times", "n_tokens"),
    with_ends(
        "slope", "slope", None, _three,
        "mean of d nats / d ln {x} over the occurrences of an id",
    ),
    ends("smallest_nats largest_nats", None, number, "nats", "means at the first and the last point"),
    ends("smallest_rbp largest_rbp", None, decimals(2), "RBP_k", "at the first and the last point", 1),
    with_ends("share", "share", None, _percents(2), "of the fall in nats", ends_spare=4),
)  # fmt: skip
GROUP: Final = View[Record](
    "group",
    whole("points", "n_points"),
    ends("{x}_least {x}_greatest", lambda row: (row["first"], row["last"]), short, "{x}"),
    whole("tokens", "n_tokens"),
    whole("left out", "n_left_out", means="tokens of the last run that another one lacks", spare=1),
    state(),
)


def _of(kind: str, title: str, *columns: Columns[Record]) -> tuple[str, str, View[Record]]:
    return kind, title, View(kind, *columns)


OF_KIND: Final = (
    _of(
        "tokens",
        "What becomes of hits",
        whole("k", "k"),
        [share(each.name, each.name) for each in History],
        magnitude("half settled", "half_settled_at", None, "{x} from which half never change", 1),
    ),
    _of(
        "history",
        "Token ids that are learned, forgotten or unstable most often at k = {k}",
        text("history", "history"),
        _TEXT,
        whole("times", "n"),
        whole("of", "n_scored"),
    ),
    _of(
        "point",
        "Times from hits",
        whole("k", "k"),
        magnitude("{x}", "x"),
        with_ends("learned", "learned", None, _part, "hits from here on; at the last point all hits are"),
        share("RBP_k", "rbp"),
        share("settled", "settled", None, 1, "tokens that never change from here on", 1),
    ),
    _of(
        "tail",
        "The tail of the times and the law of RBP_k",
        whole("k", "k"),
        with_ends("c", "c", None, _three, "what is not learned falls as {x}^-c, if all is some day", ends_spare=2),
        with_ends("never", "never", None, _part, "are never learned, if others are by a power", ends_spare=2),
        with_ends("α", "alpha", None, _three, "of −ln RBP_k, through the same points", ends_spare=2),
        with_ends("α of times", "alpha_of_tail", None, _three, "of −ln(1 − what the tail leaves)", ends_spare=2),
        state(),
    ),
)
"""The kind of rows, the title and the columns of each table, in order."""


def tables(found: LearningRows, top: int) -> Iterator[Table]:
    """Yields the tables of one group, those with rows."""
    about, axis = found.group.title, found.group.axis
    improved, worsened = (found.of("token", trend=trend) for trend in ("improves", "worsens"))
    if improved:
        first = [row["token_id"] for row in improved[:CARRYING]]
        title, is_first = "What improves, by share", lambda row: row["token_id"] in first
        yield BETTER.table(title, improved[:top], about, axis, brief=is_first)
    if worsened:
        worse = View("worse", BETTER.columns)
        yield worse.table("What gets worse, the worst first", worsened[: -top - 1 : -1], about, axis, brief=False)
    points = [row | {"first": found.runs[0].x, "last": found.runs[-1].x} for row in found.of("group")]
    yield GROUP.table("Points and tokens", points, about, axis, brief=False)
    for kind, title, view in OF_KIND:
        rows = found.of(kind)
        if kind == "history":  # of the smallest k
            rows = [row for row in rows if row["k"] == rows[0]["k"] and row["history"] in {each.name for each in OFTEN}]
        if rows:
            yield view.table(title.format(**rows[0]), rows, about, axis, brief=False)
