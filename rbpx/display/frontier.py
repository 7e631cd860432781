"""Shows the best of sweeps: for each size and number of tokens the quantity, the setting, and how many runs say so."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rbpx.display.view import Table, View, decimal, magnitude, text, whole, with_ends
from rbpx.display.vocabulary import law_title, short, significant
from rbpx.errors import number_of
from rbpx.laws.sweeps import Cell, How

_LEAST: Final = "the least of several runs as it is, which is biased low"


def frontier_table(cells: Sequence[Cell], about: str) -> Table:
    """The best of each cell."""
    rows = [cell.row() for cell in cells]
    several = len({(cell.law, cell.k) for cell in cells}) > 1
    knobs = dict.fromkeys(name for cell in cells for name in cell.best.at)
    view = View[dict[str, Any]](
        "frontier",
        [text("law", "law", lambda row: law_title(row["law"], row["k"]))] if several else [],
        magnitude("S", "S"),
        magnitude("D", "D"),
        whole("runs", "n_runs"),
        whole("behind", "n_used", means="runs that stand behind the best", spare=2),
        with_ends("best y", "y", ends_spare=3),
        decimal("least", "y_least", means="the least run as it is", spare=4),
        [with_ends(f"best {name.removeprefix('vary_')}", name, None, _knob, ends_spare=1) for name in knobs],
        text("how", "how"),
    )
    return view.table("The best of each size and number of tokens", rows, about)


def _knob(value: float | None) -> str:
    return significant(value, 3) if value is None or abs(value) < 1 else short(value)


def said_of_frontier(cells: Sequence[Cell]) -> Iterator[str]:
    """What the points of a frontier are, and which of them have no more than the least of their runs."""
    first = [cell for cell in cells if (cell.law, cell.k) == (cells[0].law, cells[0].k)]
    n_runs = sum(cell.best.n_runs for cell in first)
    yield f"Each point is the best of its size and tokens: {number_of(len(first), '(S, D) cell')}, {n_runs:,} runs."
    knobs = dict.fromkeys(
        name.removeprefix("vary_") for cell in cells for name, of in cell.best.at.items() if of.ends is not None
    )
    for how, what in (
        (How.quadratic, f"the minimum of a quadratic in {' and '.join(knobs) or 'what they vary'}"),
        (How.seeds, "the mean over seeds"),
        (How.least, f"{_LEAST}: they have no minimum among them, or nothing says what they vary"),
    ):
        n = sum(cell.best.how is how for cell in cells)
        if n:
            yield f"{n:,} of {number_of(len(cells), 'best value')}: {what}."
