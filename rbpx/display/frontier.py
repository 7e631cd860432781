"""Shows the best runs of sweeps, for each size and number of tokens."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.table import Table, interval, table_of
from rbpx.display.vocabulary import amount, law_title, short, significant, whole
from rbpx.errors import number_of
from rbpx.laws.sweeps import SweepCell

_HOW: Final = (
    "quadratic: the minimum of one in what runs vary; seeds: their mean; least: the least of several runs as it is, "
    "which is biased low, where they have no minimum among them, or nothing says what they vary"
)


def frontier_table(cells: Sequence[SweepCell], about: str) -> Table:
    """A table of the cells."""
    rows = [cell.row() | {"law": law_title(cell.law, cell.k)} for cell in cells]
    several = len({(cell.law, cell.k) for cell in cells}) > 1
    knobs = dict.fromkeys(name for cell in cells for name in cell.best.at)
    ends, title = " ".join(f"{name}_lo" for name in knobs), "The best of each size and number of tokens"
    return table_of(
        "frontier", *([("law", "law")] if several else []), ("S", "S", amount), ("D", "D", amount),
        ("runs", "n_runs", whole), ("behind", "n_used", whole, "runs that stand behind the best"),
        *interval("best y", "y"), ("least", "y_least", ".4f", "the least run as it is"),
        *(column for name in knobs for column in interval(f"best {name.removeprefix('vary_')}", name, _knob)),
        ("how", "how", str, _HOW),
        first=f"law S D n_runs y how {' '.join(knobs)}, {ends}, n_used, y_lo, y_least",
    ).of(title, rows, about, brief=False)  # fmt: skip


def _knob(value: float) -> str:
    return significant(value, 3) if abs(value) < 1 else short(value)


def said_of_frontier(cells: Sequence[SweepCell]) -> Iterator[str]:
    """Sentences on how its points were found."""
    first = [cell for cell in cells if (cell.law, cell.k) == (cells[0].law, cells[0].k)]
    n_runs = sum(cell.best.n_runs for cell in first)
    hows = Counter(cell.best.how.value for cell in cells)
    by = ", ".join(f"{n:,} by {how}" for how, n in hows.items())
    cells_said = number_of(len(first), "(S, D) cell")
    yield f"Each point is the best of its size and tokens: {cells_said}, {n_runs:,} runs; best values: {by}."
