"""Cuts the text of the next cell into windows in a thread, while a GPU measures the cell before it.

Tokenizers release the interpreter's lock, so the two run side by side.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType

from rbpx.config.grid import Cell
from rbpx.data.corpus import Document
from rbpx.errors import RbpxError
from rbpx.measure.protocol import resolve_protocol
from rbpx.models.load import LoadedModel


class WindowPrefetcher:
    """Cuts the texts of one model's cells, at most one cell ahead; the windows stay in the cache of `windows`."""

    def __init__(self, load: Callable[[], LoadedModel], cells: Sequence[tuple[Cell, Sequence[Document]]]) -> None:
        """Prepare for cells of one model, in the order in which they are measured, each with its documents.

        Args:
            load: returns the model.
            cells: empty to prefetch nothing.
        """
        self._load, self._cells = load, cells
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rbpx-prefetch")
        self._pending: Future[None] | None = None

    def __enter__(self) -> "WindowPrefetcher":
        """Start nothing yet; `start_next` does."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the thread to end."""
        self._thread.shutdown()

    def wait(self) -> None:
        """Wait until the text that is being cut, if there is one, has been cut."""
        if self._pending is not None:
            wait([self._pending])

    def start_next(self, i: int) -> None:
        """Cut the text of the cell after cell `i`, which is being measured."""
        if i + 1 < len(self._cells):
            self._pending = self._thread.submit(self._cut, *self._cells[i + 1])

    def _cut(self, cell: Cell, documents: Sequence[Document]) -> None:
        try:
            resolve_protocol(cell, self._load()).windows(documents)
        except RbpxError:  # raised again, and reported, when the cell is measured
            return
