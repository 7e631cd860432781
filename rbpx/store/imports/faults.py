"""Gathers the faults of an imported file and lists the first ten in the order of their rows."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.errors import RbpxError

_LOG = logging.getLogger(__name__)
_MOST: Final = 10  # listed faults

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Faults:
    """Faults of the rows of a file; a row may have several.

    Attributes:
        found: for each kind of fault its rows, those of them that are told, and the message of a row.
    """

    found: list[tuple[Rows, Rows, Callable[[int], str]]] = field(default_factory=list)

    def add(self, rows: Rows, text: str | Callable[[int], str], is_once: bool = False) -> None:
        """Add one kind of fault, with one message or one by row; `is_once` tells that of the first row."""
        if rows.size:
            self.found.append((rows, rows[:1] if is_once else rows, text if callable(text) else lambda row: text))

    def rows(self, n_rows: int) -> Mask:
        """Mask of the rows with a fault, [R]."""
        return np.isin(np.arange(n_rows), np.concatenate([[], *(rows for rows, _, _ in self.found)]))

    def only(self, kept: Mask) -> "Faults":
        """The faults of some rows."""
        return Faults([(rows, told[kept[told]], text) for rows, told, text in self.found])

    def __len__(self) -> int:
        return sum(told.size for _, told, _ in self.found)

    def lines(self, place: Callable[[int], str]) -> list[str]:
        """The messages of the first faults, in order of their rows."""
        firsts = [(int(row), kind) for kind, (_, told, _) in enumerate(self.found) for row in np.sort(told)[:_MOST]]
        return [f"{place(row)}: {self.found[kind][2](row)}" for row, kind in sorted(firsts)[:_MOST]]


def named_of(names: Iterable[object], most: int = _MOST) -> str:
    """Names in a row, the first of them where they are many."""
    each = list(map(str, names))
    return ", ".join(each[:most]) + (f" and {len(each) - most:,} more" if len(each) > most else "")


def refuse(
    lines: Sequence[str], n: int, file: object, hint: str = "", otherwise: str = ", or leave rows out with where="
) -> None:
    """Refuse a file with faults: `n` of them, of which `lines` are the first; `hint` ends the last line.

    Raises:
        RbpxError: the one fault; of several their number, after each is logged in its own line.
    """
    if not n:
        return
    if n == 1:
        raise RbpxError(f"{lines[0]}{hint}")
    for line in lines[:_MOST]:
        _LOG.warning(line)
    listed = "listed above" if n <= _MOST else f"of which the first {_MOST} are listed above"
    raise RbpxError(f"{file} has {n:,} faults, {listed}; nothing was imported: correct them{otherwise}{hint}")
