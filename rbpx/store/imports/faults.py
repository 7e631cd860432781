"""Gathers what is wrong with a file that is imported, and lists the first ten faults in the order of their rows."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.errors import RbpxError

_LOG = logging.getLogger(__name__)
_MOST: Final = 10  # that are listed

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Faults:
    """Faults of the rows of a file; a row may have several.

    Attributes:
        found: of each kind of fault the rows that have it, a key for each, and what is wrong by key.
    """

    found: list[tuple[Rows, Rows, Callable[[int], str]]] = field(default_factory=list)

    def add(self, rows: Rows, text: str | Callable[[int], str], keys: Rows | None = None) -> None:
        """Add one kind of fault.

        Args:
            rows: those that have it.
            text: what is wrong: always the same, or by key, and then made for those alone that are listed.
            keys: of each of `rows`; None: the rows themselves.
        """
        if rows.size:
            self.found.append((rows, rows if keys is None else keys, text if callable(text) else lambda key: text))

    def rows(self, n_rows: int) -> Mask:
        """[R], whether a row has any."""
        wrong = np.zeros(n_rows, bool)
        for rows, _, _ in self.found:
            wrong[rows] = True
        return wrong

    def only(self, kept: Mask) -> "Faults":
        """The faults of some rows."""
        faults = Faults()
        for rows, keys, text in self.found:
            faults.add(rows[kept[rows]], text, keys[kept[rows]])
        return faults

    def __len__(self) -> int:
        """How many there are."""
        return sum(rows.size for rows, _, _ in self.found)

    def lines(self, place: Callable[[int], str]) -> list[str]:
        """The first of them, in order of their rows."""
        firsts = [
            (int(rows[at]), kind, int(keys[at]))
            for kind, (rows, keys, _) in enumerate(self.found)
            for at in np.argsort(rows, kind="stable")[:_MOST]
        ]
        firsts.sort(key=lambda first: first[:2])
        return [f"{place(row)}: {self.found[kind][2](key)}" for row, kind, key in firsts[:_MOST]]


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
