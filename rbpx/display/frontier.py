"""Shows the best runs of sweeps: for each size and number of tokens the quantity, the setting, and the run count."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from rbpx.display.view import Table, View, amount, decimal, text, whole, with_ends
from rbpx.display.vocabulary import law_title, short, significant
from rbpx.errors import number_of
from rbpx.laws.sweeps import SweepCell

_HOW: Final = (
    "quadratic: the minimum of one in what runs vary; seeds: their mean; least: the least of several runs as it is, "
    "which is biased low, where they have no minimum among them, or nothing says what they vary"
)


def frontier_table(cells: Sequence[SweepCell], about: str) -> Table:
    """Returns a table of the best run of each cell."""
    rows = [cell.row() for cell in cells]
    several = len({(cell.law, cell.k) for cell in cells}) > 1
    knobs = dict.fromkeys(name for cell in cells for name in cell.best.at)
    view = View[dict[str, Any]](
        "frontier",
        [text("law", "law", lambda row: law_title(row["law"], row["k"]))] if several else [],
        amount("S", "S"),
        amount("D", "D"),
        whole("runs", "n_runs"),
        whole("behind", "n_used", means="runs that stand behind the best", spare=2),
        with_ends("best y", "y", ends_spare=3),
        decimal("least", "y_least", means="the least run as it is", spare=4),
        [with_ends(f"best {name.removeprefix('vary_')}", name, None, _knob, ends_spare=1) for name in knobs],
        text("how", "how", None, _HOW),
    )
    return view.table("The best of each size and number of tokens", rows, about, brief=False)


def _knob(value: float | None) -> str:
    return significant(value, 3) if value is None or abs(value) < 1 else short(value)


def said_of_frontier(cells: Sequence[SweepCell]) -> Iterator[str]:
    """Returns sentences on the points of a frontier and how they were found."""
    first = [cell for cell in cells if (cell.law, cell.k) == (cells[0].law, cells[0].k)]
    n_runs = sum(cell.best.n_runs for cell in first)
    hows = Counter(cell.best.how.value for cell in cells)
    by = ", ".join(f"{n:,} by {how}" for how, n in hows.items())
    cells_said = number_of(len(first), "(S, D) cell")
    yield f"Each point is the best of its size and tokens: {cells_said}, {n_runs:,} runs; best values: {by}."
