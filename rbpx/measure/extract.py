"""Rank the scored tokens of windows, in batches that are divided among processes; one row for each token.

Of choices of an item that are equal only the first is measured, and all get its rows. In batches of other shapes their
numbers would differ by rounding, and one would beat the other.

Shapes: B windows, T tokens, D hidden width, N scored positions, V vocabulary.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from rbpx.data.windows import Window
from rbpx.errors import MeasureError, RbpxError, UnexpectedError, first_line
from rbpx.measure.distributed import ProcessGroup
from rbpx.models.devices import input_device, is_out_of_memory
from rbpx.models.head import head_input, without_tiles
from rbpx.models.load import LoadedModel
from rbpx.ranks.definition import NonFiniteLogits, rank_hidden

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Distinct:
    """Windows without repetitions, and all the windows that they stand for, each in order of (doc_id, start).

    Attributes:
        windows: the first of each set of equal windows.
        of_all: every window with a scored position.
        which: for each of `of_all`, the index of its equal in `windows`.
    """

    windows: list[Window]
    of_all: list[Window]
    which: Rows

    def columns_of_all(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Expand the columns of `tokens` from the distinct windows to all of them; rows are in order in both."""
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


def distinct(keys: Iterable[Hashable]) -> tuple[list[int], Rows]:
    """The index at which each distinct key first occurs, and for each key the index of its equal among these."""
    seen: dict[Hashable, int] = {}
    which = np.asarray([seen.setdefault(key, len(seen)) for key in keys], np.int64)
    return np.unique(which, return_index=True)[1].tolist(), which


_MIN_LOGITS_FOR_TILES = 1 << 28  # ranking fewer takes less time than loading numba, about a second
T = TypeVar("T")
Advance = Callable[[int], None]
Measure = Callable[[torch.Tensor, torch.Tensor], T]
_MOST_PADDING = 0.05  # share of padding in a batch at most, because computation on it is wasted
COLUMNS = ("doc_id", "position", "token_id", "greater", "ties", "logprob")


@dataclass(frozen=True, eq=False)
class Reading:
    """One pass of a model over windows; each process reads its share.

    Attributes:
        loaded: the model.
        windows: each token is scored in at most one; windows without a scored position are skipped.
        processes: the process group.
        tokens_per_batch: padded tokens a batch; halved for the rest of the cell when memory runs out.
        advance: called with the number of tokens that this process has just scored.
    """

    loaded: LoadedModel
    windows: Sequence[Window]
    processes: ProcessGroup
    tokens_per_batch: int
    advance: Advance

    @property
    def n_tokens(self) -> int:
        """Number of scored tokens."""
        return sum(window.n_scored for window in self.windows)

    def with_tiles_from(self, n_logits: int) -> "Reading":
        """The same without the tile kernel if fewer logits than this are to be computed."""
        if self.n_tokens * self.loaded.head.vocab_size >= n_logits:
            return self
        return replace(self, loaded=replace(self.loaded, head=without_tiles(self.loaded.head)))

    def measure(self, of_batch: Callable[[LoadedModel, list[Window]], T]) -> list[T]:
        """The value of `of_batch` for each batch; every process returns the values of all.

        Raises:
            MeasureError: a single window does not fit into memory, logits are not finite, or the model's code fails;
                every process raises it.
        """
        # Dealt by length, so that the processes finish together.
        longest_first = sorted((w for w in self.windows if w.n_scored), key=_longest_first)
        share = longest_first[self.processes.of_model :: self.processes.n_models]
        parts = self.processes.together(lambda: self._measure_share(share, of_batch))
        return list(chain.from_iterable(self.processes.gather(parts if self.processes.tells else [])))

    def _measure_share(self, share: list[Window], of_batch: Callable[[LoadedModel, list[Window]], T]) -> list[T]:
        """The value of `of_batch` for each batch of this process, halved where it has the model to itself."""
        loaded = self.loaded
        # A model without a product gives whole logits, so it reads one window at a time.
        queue = list(batch_windows(share, 1 if loaded.head.product is None else self.tokens_per_batch))
        parts = []
        while queue:
            batch = queue.pop(0)
            longest = f"window of {len(batch[0].ids)} tokens (document {batch[0].doc_id})"
            try:
                parts.append(of_batch(loaded, batch))
            except RbpxError:
                raise
            except Exception as problem:  # each architecture fails in its own way
                if self.processes.tensor is not None or not is_out_of_memory(problem):
                    raise UnexpectedError.of(problem, f"{loaded.name} fails on a {longest}") from None
                failed = first_line(problem)
            else:
                self.advance(sum(window.n_scored for window in batch))
                continue
            # Outside the handler, whose traceback would keep the tensors alive.
            if len(batch) == 1:
                raise MeasureError(
                    f"one {longest} does not fit into memory ({failed}); use a smaller dtype or device=split"
                )
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            half = len(batch) * len(batch[0].ids) // 2
            queue = list(batch_windows([*batch, *chain.from_iterable(queue)], half))
        return parts


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

    A causal model computes the same states for the same tokens, so for choices of one token the context is read once.
    """
    if not any(window.ends_in_label for window in batch):
        return list(range(len(batch))), np.arange(len(batch))
    return distinct(window.ids[: window.n_read].tobytes() for window in batch)


def measure_windows(reading: Reading) -> TokenRows:
    """Rank every scored token of every window; every process returns the rows of all.

    Raises:
        MeasureError: as in `Reading.measure`.
    """
    once = distinct_windows(reading.windows)
    of_once = replace(reading, windows=once.windows).with_tiles_from(_MIN_LOGITS_FOR_TILES)
    parts = of_once.measure(_rank_batch)
    if len(once.windows) < len(once.of_all):
        reading.advance((reading.n_tokens - of_once.n_tokens) // reading.processes.n_models)
    return TokenRows(once.columns_of_all(_merge(parts, of_once.n_tokens)))


@dataclass(frozen=True, eq=False)
class Places:
    """The scored tokens of a batch: document, position in it, id; each [N]."""

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
        measure: called with the states [N, D] that predict the scored tokens, and these tokens [N].
        measure_whole: called with logits [N, V] in place of states, for a model that changes them after its head in a
            way that is not known.

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
    places = Places(doc_id_N, position_N, ids_BT[row_N, column_N])
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
    out = np.empty(len(places.doc_id_N), _ROW)
    out["doc_id"], out["position"], out["token_id"] = places.doc_id_N, places.position_N, places.token_id_N
    out["greater"], out["ties"], out["logprob"] = ranks.greater, ranks.ties, ranks.logprob
    return out


def _merge(parts: list[npt.NDArray[Any]], n_tokens: int) -> dict[str, npt.NDArray[Any]]:
    rows = np.concatenate([np.empty(0, _ROW), *parts])
    rows = rows[np.lexsort((rows["position"], rows["doc_id"]))]
    if len(rows) != n_tokens or len(np.unique(rows[["doc_id", "position"]])) != n_tokens:
        raise MeasureError(f"{len(rows):,} rows were returned for {n_tokens:,} scored tokens; nothing was written")
    return {name: np.ascontiguousarray(rows[name]) for name in COLUMNS}
