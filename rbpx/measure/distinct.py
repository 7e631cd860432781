"""Equal choices of an item are measured once: windows in, the first of each out, and in the end the rows of all.

In batches of other shapes their numbers would differ by rounding, and one would beat the other.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rbpx.data.windows import Window

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Distinct:
    """Windows of which no two are the same, and those that they stand for; all in order of (doc_id, start).

    Attributes:
        windows: the first of each.
        of_all: every window with a scored position.
        which: of `windows` each of these is.
    """

    windows: list[Window]
    of_all: list[Window]
    which: Places

    def columns_of_all(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of `tokens` of every window, from those of the distinct ones, both in order."""
        if len(self.windows) == len(self.of_all):
            return dict(columns)
        n_scored = np.asarray([window.n_scored for window in self.windows])
        begin = np.cumsum(n_scored) - n_scored
        rows_N = np.concatenate([np.arange(begin[at], begin[at] + n_scored[at]) for at in self.which])
        positions = [window.start + np.flatnonzero(window.scored) for window in self.of_all]
        return {name: column.take(rows_N) for name, column in columns.items()} | {
            "doc_id": np.repeat([w.doc_id for w in self.of_all], n_scored[self.which]).astype(np.int32),
            "position": np.concatenate(positions).astype(np.int32),
        }


def distinct_windows(windows: Sequence[Window]) -> Distinct:
    """The windows that are to be measured: of targets and choices each once, of texts all."""
    scored = sorted((w for w in windows if w.n_scored), key=_place)
    firsts, which = distinct((w.ids.tobytes(), w.scored.tobytes()) if w.ends_in_label else _place(w) for w in scored)
    return Distinct([scored[at] for at in firsts], scored, which)


def _place(window: Window) -> tuple[int, int]:
    return window.doc_id, window.start


def distinct(keys: Iterable[Hashable]) -> tuple[list[int], Places]:
    """Where each key stands first, and which of these each key is."""
    seen: dict[Hashable, int] = {}
    which = np.asarray([seen.setdefault(key, len(seen)) for key in keys], np.int64)
    return np.unique(which, return_index=True)[1].tolist(), which
