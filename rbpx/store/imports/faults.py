"""Gathers what is wrong with a file that is imported, and lists the first ten faults in the order of their rows."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.errors import RbpxError

_LOG = logging.getLogger(__name__)
_MOST: Final = 10  # that are told

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Faults:
    """Faults of the rows of a file; a row may have several."""

    def __init__(self) -> None:
        """Begin without any."""
        self._found: list[tuple[Rows, Callable[[int], str]]] = []

    def add(self, rows: npt.ArrayLike, text: Callable[[int], str]) -> None:
        """Add one kind of fault.

        Args:
            rows: those that have it.
            text: what is wrong in the row at a place in `rows`; asked for those alone that are told.
        """
        of = np.asarray(rows, np.int64)
        if of.size:
            self._found.append((of, text))

    def rows(self, n_rows: int) -> Mask:
        """[R], whether a row has any."""
        wrong = np.zeros(n_rows, bool)
        for rows, _ in self._found:
            wrong[rows] = True
        return wrong

    def __add__(self, others: "Faults") -> "Faults":
        """These and others."""
        faults = Faults()
        faults._found = [*self._found, *others._found]
        return faults

    def only(self, kept: Mask) -> "Faults":
        """The faults of some rows."""
        faults = Faults()
        for rows, text in self._found:
            places = np.flatnonzero(kept[rows])
            faults.add(rows[places], partial(_of_those, text, places))
        return faults

    def __len__(self) -> int:
        """How many there are."""
        return sum(rows.size for rows, _ in self._found)

    def lines(self, place: Callable[[int], str]) -> list[str]:
        """The first of them, in order of their rows."""
        firsts = [
            (int(rows[at]), kind, int(at))
            for kind, (rows, _) in enumerate(self._found)
            for at in np.argsort(rows, kind="stable")[:_MOST]
        ]
        return [f"{place(row)}: {self._found[kind][1](at)}" for row, kind, at in sorted(firsts)[:_MOST]]


def always(text: str, at: int) -> str:
    """What is wrong, where it is the same in every row."""
    return text


def _of_those(text: Callable[[int], str], places: Rows, at: int) -> str:
    return text(int(places[at]))


def refuse(lines: Sequence[str], n: int, file: object) -> None:
    """Refuse a file with faults; nothing where it has none.

    Args:
        lines: what is wrong, the first of them.
        n: how many there are.
        file: whose they are.

    Raises:
        RbpxError: the one fault; of several their number, when each was told in a line of its own.
    """
    if not n:
        return
    if n == 1:
        raise RbpxError(lines[0])
    for line in lines[:_MOST]:
        _LOG.warning(line)
    listed = "listed above" if n <= _MOST else f"of which the first {_MOST} are listed above"
    raise RbpxError(
        f"{file} has {n:,} faults, {listed}; nothing was imported: correct them, or leave rows out with where="
    )
