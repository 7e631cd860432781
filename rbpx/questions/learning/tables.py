"""The rows of learning for one group, and a table for each kind."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from rbpx.display.table import STATUS, Column, Table, interval, table_of
from rbpx.display.vocabulary import legible, number, short, whole
from rbpx.laws.counts.times import History
from rbpx.runs.group import Group
from rbpx.runs.run import Run
from rbpx.store.store import Record


class LearningRows(NamedTuple):
    """The rows about a group, each with its kind; one run for each point."""

    group: Group
    runs: Sequence[Run]
    rows: Sequence[Record]

    def of(self, kind: str, **values: Any) -> list[Record]:
        """The rows of a kind with these values."""
        values["kind"] = kind
        return [row for row in self.rows if all(row.get(name) == value for name, value in values.items())]


CARRYING: Final = 5
"""Number of token ids that a terminal shows, those that improve most."""

OFTEN: Final = (History.learned, History.forgotten, History.unstable)
"""The histories whose most frequent tokens are named."""


_TEXT: Final = Column("token", "text")
_K: Final = Column("k", "k", whole)
BETTER: Final = table_of(
    "better", _TEXT, ("id", "token_id", ".0f"), ("times", "n_tokens", whole),
    *interval("slope", "slope", ".3f", "mean of d nats / d ln {x} over the occurrences of an id"),
    ("nats", "smallest_nats largest_nats", number, "means at the first and the last point"),
    ("RBP_k", "smallest_rbp largest_rbp", ".2f", "at the first and the last point"),
    *interval("share", "share", ".2%", "of the fall in nats"),
    first="text n_tokens slope smallest_nats share, smallest_rbp, token_id, share_lo",
)  # fmt: skip
GROUP: Final = table_of(
    "group", ("points", "n_points", whole), ("{x}", "{x}_least {x}_greatest", short), ("tokens", "n_tokens", whole),
    ("left out", "n_left_out", whole, "tokens of the last run that another one lacks"),
    STATUS,
    first="n_points {x}_least n_tokens status",
)  # fmt: skip
OF_KIND: Final = {
    "What becomes of hits": table_of(
        "tokens", _K, *((each.name, each.name, ".1%") for each in History),
        ("half settled", "half_settled_at", short, "{x} from which half never change"),
        first=f"k {' '.join(each.name for each in History)}",
    ),
    "Token ids that are learned, forgotten or unstable most often at k = {k}": table_of(
        "history", ("history", "history"), _TEXT, ("times", "n", whole), ("of", "n_scored", whole),
    ),
    "Times from hits": table_of(
        "point", _K, ("{x}", "x", short),
        *interval("learned", "learned", ".1%", "hits from here on; at the last point all hits are"),
        ("RBP_k", "rbp", ".1%"),
        ("settled", "settled", ".1%", "tokens that never change from here on"),
        first="k x learned rbp",
    ),
    "The tail of the times and the law of RBP_k": table_of(
        "tail", _K,
        *interval("c", "c", ".3f", "what is not learned falls as {x}^-c, if all is some day"),
        *interval("never", "never", ".1%", "are never learned, if others are by a power"),
        *interval("α", "alpha", ".3f", "of −ln RBP_k, through the same points"),
        *interval("α of times", "alpha_of_tail", ".3f", "of −ln(1 − what the tail leaves)"),
        STATUS,
        first="k c never alpha alpha_of_tail status, c_lo never_lo alpha_lo alpha_of_tail_lo",
    ),
}  # fmt: skip
"""The title and the columns of each kind of rows, in order."""


def _named(rows: Sequence[Record]) -> list[Record]:
    return [row | {"text": legible(row["text"], row["token_id"])} for row in rows]


def tables(found: LearningRows, top: int) -> Iterator[Table]:
    """The tables of one group, those with rows."""
    about, axis = found.group.title, found.group.axis
    improved, worsened = (found.of("token", trend=trend) for trend in ("improves", "worsens"))
    if improved:
        shown = _named(improved[:top])
        is_first = [at < CARRYING for at in range(len(shown))]
        yield BETTER.of("What improves, by share", shown, about, axis, brief=is_first)
    if worsened:
        worse, last = replace(BETTER, name="worse"), _named(worsened[: -top - 1 : -1])
        yield worse.of("What gets worse, the worst first", last, about, axis, brief=False)
    ends = {f"{axis.value}_least": found.runs[0].x, f"{axis.value}_greatest": found.runs[-1].x}
    yield GROUP.of("Points and tokens", [row | ends for row in found.of("group")], about, axis, brief=False)
    for title, table in OF_KIND.items():
        rows = found.of(table.name)
        if table.name == "history":  # of the smallest k
            of_k = [row for row in rows if row["k"] == rows[0]["k"]]
            rows = _named([row for row in of_k if row["history"] in {each.name for each in OFTEN}])
        if rows:
            yield table.of(title.format(**rows[0]), rows, about, axis, brief=False)
