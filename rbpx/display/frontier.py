"""Shows the best of sweeps: for each size and number of tokens the quantity, the setting, and how many runs say so."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.view import Table, View, magnitude, text, whole, with_ends, written
from rbpx.display.vocabulary import law_title, number, short, significant
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.sweeps import Cell, How

_LEAST: Final = "the least of several runs as it is, which is biased low"


def frontier_table(cells: Sequence[Cell], about: str) -> Table:
    """The best of each cell."""
    names = dict.fromkeys(name for cell in cells for name in cell.best.at)

    def best(name: str, cell: Cell) -> Estimate | None:
        return cell.best.at.get(name)

    several = len({(cell.law, cell.k) for cell in cells}) > 1
    view = View[Cell](
        "frontier",
        [text("law", "law", lambda row: law_title(row.law, row.k))] if several else [],
        magnitude("S", "S", lambda row: row.S),
        magnitude("D", "D", lambda row: row.D),
        whole("runs", "n_runs", lambda row: row.best.n_runs),
        whole("behind", "n_used", lambda row: row.best.n_used, "runs that stand behind the best", spare=2),
        with_ends("best y", "y", lambda row: row.best.y, number, ends_spare=3),
        written("least", "y_least", lambda row: row.y_least, number, "the least run as it is", spare=4),
        [
            with_ends(
                f"best {name.removeprefix('vary_')}", name, lambda row, name=name: best(name, row),  # type: ignore[misc]
                lambda value: significant(value, 3) if value is None or abs(value) < 1 else short(value), ends_spare=1,
            )
            for name in names
        ],
        text("how", "how", lambda row: row.best.how.value),
    )  # fmt: skip
    return view.table("The best of each size and number of tokens", cells, about)


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
