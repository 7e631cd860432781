"""Rank the scored tokens of windows: batched to a token budget, divided among processes, one row for each token.

Shapes: B windows, T tokens, D hidden width, N scored positions, V vocabulary.

Equal choices of an item are measured once: windows in, the first of each out, and in the end the rows of all.

In batches of other shapes their numbers would differ by rounding, and one would beat the other.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from rbpx.data.windows import Window
from rbpx.errors import MeasureError, RbpxError, UnexpectedError
from rbpx.measure.distributed import ProcessGroup
from rbpx.models.devices import input_device, is_out_of_memory
from rbpx.models.head import head_input, without_tiles
from rbpx.models.load import LoadedModel
from rbpx.ranks.definition import NonFiniteLogits, rank_hidden

Rows = npt.NDArray[np.int64]


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
    which: Rows

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


def distinct(keys: Iterable[Hashable]) -> tuple[list[int], Rows]:
    """Where each key stands first, and which of these each key is."""
    seen: dict[Hashable, int] = {}
    which = np.asarray([seen.setdefault(key, len(seen)) for key in keys], np.int64)
    return np.unique(which, return_index=True)[1].tolist(), which


# Logits of a cell; with fewer, ranking all of them takes less than the second in which numba is loaded.
_MIN_LOGITS_FOR_TILES = 1 << 28
T = TypeVar("T")
Advance = Callable[[int], None]
Measure = Callable[[torch.Tensor, torch.Tensor], T]
_MOST_PADDING = 0.05  # of the tokens of a batch, to limit the computation that is wasted on it
COLUMNS = ("doc_id", "position", "token_id", "greater", "ties", "logprob")


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Columns of the scored tokens, in order of (doc_id, position); see the relation `tokens`."""

    columns: dict[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        """Number of scored tokens."""
        return len(self.columns["doc_id"])


def batch_windows(windows: Sequence[Window], tokens_per_batch: int) -> Iterator[list[Window]]:
    """Batches of windows, longest first, of at most `tokens_per_batch` padded tokens, or of one window.

    The longest come first, so that a batch that does not fit into memory fails at once. At most `_MOST_PADDING` of a
    batch is padding, so lengths differ by about a tenth within one; texts of 8 to 512 tokens need some 40 more batches.
    """
    batch: list[Window] = []
    n_tokens = 0
    for window in sorted(windows, key=_longest_first):
        if batch:
            n_padded = (len(batch) + 1) * len(batch[0].ids)
            if n_padded > tokens_per_batch or n_padded - n_tokens - len(window.ids) > _MOST_PADDING * n_padded:
                yield batch
                batch, n_tokens = [], 0
        batch.append(window)
        n_tokens += len(window.ids)
    if batch:
        yield batch


def _longest_first(window: Window) -> tuple[int, bytes, int, int]:
    """The longest first; choices of one token stand beside the others that read the same context."""
    read = window.ids[: window.n_read].tobytes() if window.ends_in_label else b""
    return -len(window.ids), read, window.doc_id, window.start


def _distinct(batch: Sequence[Window]) -> tuple[list[int], npt.NDArray[np.int64]]:
    """The first window of each sequence of tokens to be read, and which of these each window reads.

    What a causal model makes of the same tokens is the same, so choices of one token need their context read once.
    """
    if not any(window.ends_in_label for window in batch):
        return list(range(len(batch))), np.arange(len(batch))
    return distinct(window.ids[: window.n_read].tobytes() for window in batch)


def measure_windows(
    loaded: LoadedModel, windows: Sequence[Window], processes: ProcessGroup, tokens_per_batch: int, advance: Advance
) -> TokenRows:
    """Rank every scored token of every window; each process ranks its share, and all return the rows of all.

    Args:
        loaded: the model.
        windows: each token is scored in at most one; windows without a scored position are skipped.
        processes: the process group.
        tokens_per_batch: padded tokens a batch; halved for the rest of the cell when memory runs out.
        advance: called with the number of tokens just scored by this process.

    Raises:
        MeasureError: a single window does not fit into memory, logits are not finite, or the model's code fails; every
            process raises it.
    """
    once = distinct_windows(windows)
    n_tokens = sum(w.n_scored for w in once.windows)
    if n_tokens * loaded.head.vocab_size < _MIN_LOGITS_FOR_TILES:
        loaded = replace(loaded, head=without_tiles(loaded.head))
    parts = measure_batches(_rank_batch, loaded, once.windows, processes, tokens_per_batch, advance)
    if len(once.windows) < len(once.of_all):
        advance((sum(w.n_scored for w in once.of_all) - n_tokens) // processes.n_models)
    return TokenRows(once.columns_of_all(_merge(parts, once.windows)))


def measure_batches(
    of_batch: Callable[[LoadedModel, list[Window]], T],
    loaded: LoadedModel,
    windows: Sequence[Window],
    processes: ProcessGroup,
    tokens_per_batch: int,
    advance: Advance,
) -> list[T]:
    """What a function makes of each batch of windows; each process takes its share, and all return the parts of all.

    Args:
        of_batch: the model and windows of a batch to the value that is kept of it.
        loaded: the model.
        windows: as in `measure_windows`, with the arguments after it and what is raised.
        processes: the same.
        tokens_per_batch: the same.
        advance: the same.
    """
    scored = sorted((w for w in windows if w.n_scored), key=_longest_first)
    share = scored[processes.of_model :: processes.n_models]  # dealt by length, so that the processes finish together
    alone = processes.tensor is None
    parts = processes.together(lambda: _measure_share(of_batch, loaded, share, tokens_per_batch, advance, alone))
    return [part for of_process in processes.gather(parts if processes.tells else []) for part in of_process]


def _measure_share(
    of_batch: Callable[[LoadedModel, list[Window]], T],
    loaded: LoadedModel,
    share: list[Window],
    budget: int,
    advance: Advance,
    alone: bool,
) -> list[T]:
    """What a function makes of each batch; a process that is not `alone` with its model cannot halve its batches."""
    if loaded.head.product is None:
        budget = 1  # whole logits of one window at a time
    queue = list(batch_windows(share, budget))
    parts = []
    while queue:
        batch = queue.pop(0)
        try:
            parts.append(of_batch(loaded, batch))
        except RbpxError:
            raise
        except Exception as problem:  # each architecture fails in its own way
            if not (alone and is_out_of_memory(problem)):
                what = f"{loaded.name} fails on a window of {len(batch[0].ids)} tokens (document {batch[0].doc_id})"
                raise UnexpectedError.of(problem, what) from None
            failed = problem
        else:
            advance(sum(window.n_scored for window in batch))
            continue
        # Outside the handler, whose traceback would keep the tensors alive.
        size = len(batch) * len(batch[0].ids)
        if len(batch) == 1:
            raise MeasureError(
                f"one window of {len(batch[0].ids)} tokens (document {batch[0].doc_id}) does not fit into memory "
                f"({str(failed).splitlines()[0][:120]}); use a smaller dtype or device=split"
            )
        del failed
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        budget = size // 2
        queue = list(batch_windows([w for b in [batch, *queue] for w in b], budget))
    return parts


@dataclass(frozen=True, eq=False)
class Places:
    """The scored tokens of a batch: row and position in it, document and position in the text, id; each [N]."""

    row_N: npt.NDArray[np.int64]
    column_N: npt.NDArray[np.int64]
    doc_id_N: npt.NDArray[np.int32]
    position_N: npt.NDArray[np.int64]
    token_id_N: npt.NDArray[np.int64]


def read_batch(
    loaded: LoadedModel, batch: list[Window], measure: Measure[T], measure_whole: Measure[T]
) -> tuple[Places, T]:
    """Run a model over a batch, and measure its scored tokens.

    Args:
        loaded: the model.
        batch: windows, the longest first.
        measure: the states [N, D] that predict the scored tokens, and the tokens [N], to what is measured of them.
        measure_whole: the same of whole logits [N, V], for a model that changes them in an unknown way after its head.

    Raises:
        MeasureError: logits are not finite.
    """
    longest = len(batch[0].ids)
    ids_BT = np.zeros((len(batch), longest), np.int64)  # padded on the right, which a causal model does not attend to
    scored_BT = np.zeros((len(batch), longest), bool)
    for row, window in enumerate(batch):
        ids_BT[row, : len(window.ids)] = window.ids
        scored_BT[row, : len(window.ids)] = window.scored
    row_N, column_N = np.nonzero(scored_BT)
    doc_id_N = np.asarray([w.doc_id for w in batch], np.int32)[row_N]
    position_N = np.asarray([w.start for w in batch], np.int64)[row_N] + column_N
    places = Places(row_N, column_N, doc_id_N, position_N, ids_BT[row_N, column_N])
    try:
        with torch.inference_mode():
            ids = torch.from_numpy(ids_BT).to(input_device(loaded.model))
            columns = torch.from_numpy(column_N)
            targets_N = ids[torch.from_numpy(row_N), columns]  # a position is predicted by the state before it
            firsts, which_B = _distinct(batch)
            ids = ids[firsts, : max(window.n_read for window in batch)]
            rows = torch.from_numpy(which_B[row_N])
            if loaded.head.product is not None:
                return places, measure(head_input(loaded.model, ids)[rows, columns - 1], targets_N)
            logits_BTV = loaded.model(input_ids=ids, use_cache=False).logits[..., : loaded.head.vocab_size]
            return places, measure_whole(logits_BTV[rows, columns - 1], targets_N)
    except NonFiniteLogits as problem:
        raise MeasureError(
            f"{loaded.name} gives non-finite logits at document {doc_id_N[problem.row]}, position "
            f"{position_N[problem.row]}, so ranks would be wrong; check its weights, or measure it with dtype=float32"
        ) from None


# One record for each scored token, as it is sent between processes.
_ROW = np.dtype([(name, np.float32 if name == "logprob" else np.int32) for name in COLUMNS])


def _rank_batch(loaded: LoadedModel, batch: list[Window]) -> npt.NDArray[Any]:
    whole = partial(rank_hidden, head=torch.Tensor.float, vocab_size=loaded.head.vocab_size)
    places, ranks = read_batch(loaded, batch, loaded.head.rank, whole)
    out = np.empty(len(places.row_N), _ROW)
    out["doc_id"], out["position"], out["token_id"] = places.doc_id_N, places.position_N, places.token_id_N
    out["greater"], out["ties"], out["logprob"] = ranks.greater, ranks.ties, ranks.logprob
    return out


def _merge(parts: list[npt.NDArray[Any]], scored: Sequence[Window]) -> dict[str, npt.NDArray[Any]]:
    rows = np.concatenate([np.empty(0, _ROW), *parts])
    rows = rows[np.lexsort((rows["position"], rows["doc_id"]))]
    expected = sum(w.n_scored for w in scored)
    if len(rows) != expected or len(np.unique(rows[["doc_id", "position"]])) != expected:
        raise MeasureError(f"{len(rows):,} rows were returned for {expected:,} scored tokens; nothing was written")
    return {name: np.ascontiguousarray(rows[name]) for name in COLUMNS}
