"""Ranks the scored tokens of windows: one row for each token.

Of equal choices of an item only the first is measured, and all get its rows, as batches of other shapes differ by
rounding.

Shapes: N scored positions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rbpx.data.windows import Window
from rbpx.errors import MeasureError
from rbpx.measure.reading.batches import distinct
from rbpx.measure.reading.parts import Parts
from rbpx.measure.reading.reading import Batch, Reading, read_batch
from rbpx.models.load import LoadedModel
from rbpx.ranks.definition import begin_ranks

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct windows, and all that they stand for, in order of (doc_id, start), `which` is the like of each."""

    windows: list[Window]
    of_all: list[Window]
    which: Rows

    def columns_of_all(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of `tokens` of all windows from those of the distinct ones, in order."""
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
    """The windows to be measured: each target and choice once, and all windows of texts."""
    scored = sorted((w for w in windows if w.n_scored), key=_place)
    firsts, which = distinct((w.ids.tobytes(), w.scored.tobytes()) if w.ends_in_label else _place(w) for w in scored)
    return Distinct([scored[at] for at in firsts], scored, which)


def _place(window: Window) -> tuple[int, int]:
    return window.doc_id, window.start


_MIN_LOGITS_FOR_TILES = 1 << 28  # fewer take less time than loading numba, about 1 s
COLUMNS = ("doc_id", "position", "token_id", "greater", "ties", "logprob")
TokenColumns = dict[str, npt.NDArray[Any]]
"""Columns of the scored tokens, in order of (doc_id, position); see the relation `tokens`."""


def measure_windows(reading: Reading, parts: Parts | None = None) -> TokenColumns:
    """Rank every scored token of every window; every process returns the rows of all; raises as `Reading.measure`.

    `parts` stores rows as they are measured and returns those of an interrupted run.
    """
    once = distinct_windows(reading.windows)
    of_once = replace(reading, windows=once.windows).with_tiles_from(_MIN_LOGITS_FOR_TILES)
    of_batch = _rank_batch
    if parts is not None:
        of_once = replace(of_once, is_known=lambda window: parts.rows(window) is not None)
        of_batch = partial(_known_or_ranked, parts=parts)
    measured = of_once.measure(of_batch)
    if len(once.windows) < len(once.of_all):
        reading.advance((reading.n_tokens - of_once.n_tokens) // reading.processes.n_models)
    return once.columns_of_all(_merge(measured, of_once.n_tokens))


# Record of a scored token, as sent between processes and stored in parts.
ROW = np.dtype([(name, np.float32 if name == "logprob" else np.int32) for name in COLUMNS])


def _rank_batch(loaded: LoadedModel, batch: Batch) -> Callable[[], npt.NDArray[Any]]:
    whole = partial(begin_ranks, head=torch.Tensor.float, vocab_size=loaded.head.vocab_size)
    ranked = read_batch(loaded, batch, loaded.head.rank, whole)

    def rows() -> npt.NDArray[Any]:
        places, ranks = ranked()
        out = np.empty(len(places.doc_id_N), ROW)
        out["doc_id"], out["position"], out["token_id"] = places.doc_id_N, places.position_N, places.token_id_N
        out["greater"], out["ties"], out["logprob"] = ranks.greater, ranks.ties, ranks.logprob
        return out

    return rows


def _known_or_ranked(loaded: LoadedModel, batch: Batch, parts: Parts) -> Callable[[], npt.NDArray[Any]]:
    known = [rows for window in batch.windows if (rows := parts.rows(window)) is not None]
    if len(known) == len(batch.windows):
        return lambda: np.concatenate(known)
    ranked = _rank_batch(loaded, batch)

    def kept() -> npt.NDArray[Any]:
        rows = ranked()
        parts.add(rows)
        return rows

    return kept


def _merge(parts: list[npt.NDArray[Any]], n_tokens: int) -> TokenColumns:
    rows = np.concatenate([np.empty(0, ROW), *parts])
    rows = rows[np.lexsort((rows["position"], rows["doc_id"]))]
    twice = (np.diff(rows["doc_id"]) == 0) & (np.diff(rows["position"]) == 0)
    if len(rows) != n_tokens or twice.any():
        raise MeasureError(f"{len(rows):,} rows were returned for {n_tokens:,} scored tokens; nothing was written")
    return {name: np.ascontiguousarray(rows[name]) for name in COLUMNS}
