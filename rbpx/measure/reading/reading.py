"""Reads windows with a model and measures their scored tokens, in batches divided among processes.

Shared beginnings of windows are read once (`branches`), then each continuation. A batch is windows, and the rows of the
past (key-value cache) that they continue.

Shapes: B windows, T tokens, D hidden width, N scored positions, V vocabulary.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from rbpx.data.windows import Window
from rbpx.errors import MeasureError, RbpxError, UnexpectedError, first_line
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.reading.batches import batch_windows, distinct_reads, longest_first
from rbpx.measure.reading.branches import Stem, branches, n_saved, stem_batches
from rbpx.models.devices import input_device, is_out_of_memory, uploaded
from rbpx.models.head import head_input, without_tiles
from rbpx.models.load import LoadedModel
from rbpx.models.past import Past, continues, empty_past
from rbpx.ranks.definition import NonFiniteLogits

T = TypeVar("T")
U = TypeVar("U")
Advance = Callable[[int], None]
Measure = Callable[[torch.Tensor, torch.Tensor], Callable[[], T]]
"""States and targets of a batch to a function that waits for the device and gives what is measured of them."""

_BRANCH = 8  # tokens read in several rows, twice at the end of the trial
_TRIAL = 4  # shared beginnings must save so many times the longest window


@dataclass(frozen=True, eq=False)
class Batch:
    """Windows that are read in one pass, the longest first, and the row of the past that each continues."""

    windows: list[Window]
    past: Past | None = None
    rows: list[int] | None = None

    @property
    def begun(self) -> int:
        """Tokens of each window that were read before."""
        return 0 if self.past is None or self.rows is None else self.past.n_tokens


OfBatch = Callable[[LoadedModel, Batch], Callable[[], T]]
"""A model and a batch to a function that gives the value of the batch."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One pass of a model over windows; each process reads its share.

    Attributes:
        windows: each token is scored in at most one; windows without a scored position are skipped.
        tokens_per_batch: halved for the rest of the cell when memory runs out. 1 reads each window alone.
        advance: called with the number of tokens that this process has just scored.
        is_known: whether the values of a window are known, so that its beginning need not be read.
        shares: called if shared beginnings are read once.
    """

    loaded: LoadedModel
    windows: Sequence[Window]
    processes: ProcessGroup
    tokens_per_batch: int
    advance: Advance
    is_known: Callable[[Window], bool] = lambda window: False
    shares: Callable[[], None] = lambda: None

    @property
    def n_tokens(self) -> int:
        """Number of scored tokens."""
        return sum(window.n_scored for window in self.windows)

    def with_tiles_from(self, n_logits: int) -> "Reading":
        """A copy without the tile kernel if fewer logits than this are to be computed."""
        if self.n_tokens * self.loaded.head.vocab_size >= n_logits:
            return self
        return replace(self, loaded=replace(self.loaded, head=without_tiles(self.loaded.head)))

    def measure(self, of_batch: OfBatch[T]) -> list[T]:
        """The value of `of_batch` for each batch; every process returns the values of all.

        On a GPU the next batch is launched before the value of a batch is awaited.

        Raises:
            MeasureError: a single window does not fit into memory, logits are not finite, or the model's code fails;
                every process raises it.
        """
        share = list(chain.from_iterable(_bundles(self.windows)[self.processes.of_model :: self.processes.n_models]))
        parts = self.processes.together(lambda: _Share(self, of_batch).measure(share))
        return list(chain.from_iterable(self.processes.gather(parts if self.processes.tells else [])))


def _bundles(windows: Iterable[Window]) -> list[list[Window]]:
    """Windows with a scored position, grouped by context, the longest first.

    Dealt in this order, the processes finish together.
    """
    bundles: dict[object, list[Window]] = {}
    for window in sorted((w for w in windows if w.n_scored), key=longest_first):
        context = window.ids[: int(window.scored.argmax())]
        key: object = context.tobytes() if len(context) > 1 else (window.doc_id, window.start)
        bundles.setdefault(key, []).append(window)
    return list(bundles.values())


class _Share(Generic[T]):
    def __init__(self, reading: Reading, of_batch: OfBatch[T]) -> None:
        self._loaded, self._processes, self._advance = reading.loaded, reading.processes, reading.advance
        self._of_batch, self._is_known, self._shares = of_batch, reading.is_known, reading.shares
        # A model without a head product returns all logits, so it reads one window at a time.
        self._tokens_per_batch = 1 if self._loaded.head.product is None else reading.tokens_per_batch
        self._parts: list[T] = []
        self._device = "cuda" if input_device(self._loaded.model).type == "cuda" else "cpu"
        self._launched: tuple[Callable[[], T], list[Window]] | None = None

    def measure(self, windows: list[Window]) -> list[T]:
        past = self._past_for(windows)
        if past is not None:
            self._shares()
        self._read(windows, past, None)
        self._finish()
        return self._parts

    def _past_for(self, windows: list[Window]) -> Past | None:
        """An empty past for a model that reads shared beginnings once; None where that saves nothing or does not work.

        Tried on the longest window of this share, because some cache limits show in long texts only.
        """
        # Processes that share a model would have to agree on the trial's outcome.
        if self._tokens_per_batch == 1 or self._processes.tensor is not None or not windows:
            return None
        stems, _ = branches(windows)
        longest = max((window for stem in stems for window in stem.windows), key=lambda w: w.n_read, default=None)
        if longest is None or n_saved(windows) < _TRIAL * longest.n_read:
            return None
        past = empty_past(self._loaded.model)
        depth = max(stem.depth for stem in stems if longest in stem.windows)
        n_read = longest.n_read
        places = {max(1, depth // 2), max(2, depth), n_read - 2 * _BRANCH, n_read - _BRANCH}
        parts = sorted(place for place in places if 0 < place < n_read)
        fits = past is not None and continues(self._loaded.model, past, longest.ids[:n_read].tolist(), parts)
        return past if fits else None

    def _read(self, windows: list[Window], past: Past | None, rows: dict[int, int] | None) -> None:
        """Read windows on from a past; `rows` maps the id of each window to the row that it continues."""
        begun = 0 if past is None else past.n_tokens
        stems, alone = ([], windows) if past is None else branches(windows, begun)
        queue = list(stem_batches(stems, self._tokens_per_batch, begun, self._device))
        while queue:
            batch, depth = queue.pop(0)
            assert past is not None, "stems continue a past"
            further = self._stem(past, batch, depth, rows)
            if further is not None:
                of_window = {id(window): row for row, stem in enumerate(batch) for window in stem.windows}
                self._read([window for stem in batch for window in stem.windows], further, of_window)
            elif len(batch) > 1:
                self._tokens_per_batch = max(1, len(batch) * (depth - begun) // 2)
                left = [*batch, *chain.from_iterable(stems for stems, _ in queue)]
                queue = list(stem_batches(left, self._tokens_per_batch, begun, self._device))
            else:  # no memory for one beginning: read its windows whole
                alone = alone + batch[0].windows
        self._leaves(alone, past, rows)

    def _stem(self, past: Past, stems: list[Stem], depth: int, rows: dict[int, int] | None) -> Past | None:
        """The past with the beginnings of some stems; None if memory runs out."""
        if all(self._is_known(window) for stem in stems for window in stem.windows):
            return replace(past, n_tokens=depth)
        firsts = [stem.windows[0] for stem in stems]
        ids = np.stack([window.ids[past.n_tokens : depth] for window in firsts]).astype(np.int64)
        continued = np.asarray([] if rows is None else [rows[id(window)] for window in firsts], np.int64)

        def read() -> Past:
            with torch.inference_mode():
                on_device, row_R = uploaded([ids, continued], input_device(self._loaded.model))
                return past.read_on(self._loaded.model, on_device, None if rows is None else row_R)

        return self._unless_full(read, _name(firsts[0]))[0]

    def _leaves(self, windows: list[Window], past: Past | None, rows: dict[int, int] | None) -> None:
        begun = 0 if past is None else past.n_tokens
        kind = self._loaded.lengths.kind
        queue = list(batch_windows(windows, self._tokens_per_batch, begun, kind, self._device))
        while queue:
            batch = queue.pop(0)
            of_batch = Batch(batch, past, None if rows is None else [rows[id(window)] for window in batch])
            longest = _name(batch[0])
            launched, failed = self._unless_full(partial(self._of_batch, self._loaded, of_batch), longest)
            self._finish()
            if launched is not None:
                self._launched = launched, batch
                if self._device == "cpu":
                    self._finish()
                continue
            if len(batch) == 1:
                raise MeasureError(_too_large(longest, failed))
            self._tokens_per_batch = len(batch) * (len(batch[0].ids) - begun) // 2
            left = [*batch, *chain.from_iterable(queue)]
            queue = list(batch_windows(left, self._tokens_per_batch, begun, kind, self._device))

    def _finish(self) -> None:
        if self._launched is None:
            return
        (value, batch), self._launched = self._launched, None
        part, failed = self._unless_full(value, _name(batch[0]))
        if part is None:
            raise MeasureError(_too_large(_name(batch[0]), failed))
        self._parts.append(part)
        self._advance(sum(window.n_scored for window in batch))

    def _unless_full(self, work: Callable[[], U], longest: str) -> tuple[U | None, str]:
        """None and the reason, if memory runs out and no other process shares the model."""
        try:
            return work(), ""
        except RbpxError:
            raise
        except Exception as problem:  # each architecture fails in its own way
            if self._processes.tensor is not None or not is_out_of_memory(problem):
                raise UnexpectedError.of(problem, f"{self._loaded.name} fails on a {longest}") from None
            failed = first_line(problem)
        # Outside the handler, whose traceback would keep the tensors alive.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None, failed


def _name(window: Window) -> str:
    return f"window of {len(window.ids)} tokens (document {window.doc_id})"


def _too_large(longest: str, failed: str) -> str:
    return f"one {longest} does not fit into memory ({failed}); use a smaller dtype or device=split"


@dataclass(frozen=True, eq=False)
class Places:
    """The scored tokens of a batch: document, position in it, id; each [N]."""

    doc_id_N: npt.NDArray[np.int32]
    position_N: npt.NDArray[np.int64]
    token_id_N: npt.NDArray[np.int64]


def read_batch(
    loaded: LoadedModel, batch: Batch, measure: Measure[T], measure_whole: Measure[T]
) -> Callable[[], tuple[Places, T]]:
    """Run a model over a batch and launch the measurement of its scored tokens; the returned function awaits it.

    Nothing before it synchronises with the device. `measure` is called with the states [N, D] that predict the scored
    tokens, and these tokens; `measure_whole` with logits [N, V], for a model whose change of the logits after the head
    is unknown.

    Raises:
        MeasureError: logits are not finite, or the weight files were written to; raised here or by the returned
            function.
    """
    windows, begun = batch.windows, batch.begun
    longest = len(windows[0].ids) - begun
    ids_BT = np.zeros((len(windows), longest), np.int64)  # right padding, which a causal model ignores
    scored_BT = np.zeros((len(windows), longest), bool)
    for row, window in enumerate(windows):
        n_own = len(window.ids) - begun
        ids_BT[row, :n_own] = window.ids[begun:]
        scored_BT[row, :n_own] = window.scored[begun:]
    row_N, column_N = np.nonzero(scored_BT)
    doc_id_N = np.asarray([w.doc_id for w in windows], np.int32)[row_N]
    position_N = np.asarray([w.start + begun for w in windows], np.int64)[row_N] + column_N
    places = Places(doc_id_N, position_N, ids_BT[row_N, column_N])
    firsts, which_B = distinct_reads(windows)
    n_read = max(window.n_read for window in windows) - begun
    before_N = which_B[row_N] * n_read + column_N - 1  # a position is predicted by the state before it
    row_R = np.asarray([] if batch.rows is None else [batch.rows[at] for at in firsts], np.int64)
    with _named(loaded, places), torch.inference_mode():
        on_device = (ids_BT[firsts, :n_read], before_N, places.token_id_N, row_R)
        ids, before, targets_N, rows = uploaded(on_device, input_device(loaded.model))
        if loaded.head.product is not None:
            past = loaded.keeps_nothing
            if batch.past is not None and batch.rows is not None:
                past = batch.past.branched(rows, keeps=False).given()
            states_ND = head_input(loaded.model, ids, past).flatten(0, 1)
            measured = measure(states_ND[before.to(states_ND.device)], targets_N)
        else:
            logits_NV = loaded.model(input_ids=ids, use_cache=False).logits.flatten(0, 1)
            logits_NV = logits_NV[before.to(logits_NV.device), : loaded.head.vocab_size]
            measured = measure_whole(logits_NV, targets_N)

    def values() -> tuple[Places, T]:
        with _named(loaded, places):
            found = measured()
        loaded.check_files()
        return places, found

    return values


@contextmanager
def _named(loaded: LoadedModel, places: Places) -> Iterator[None]:
    try:
        yield
    except NonFiniteLogits as problem:
        loaded.check_files()
        raise MeasureError(
            f"{loaded.name} gives non-finite logits at document {places.doc_id_N[problem.row]}, position "
            f"{places.position_N[problem.row]}, so ranks would be wrong; check its weights, or measure it with "
            "dtype=float32"
        ) from None
