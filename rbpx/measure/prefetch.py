"""The text that comes next, cut while the one before it is measured; tokenizers work outside the interpreter's lock."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType

from rbpx.config.grid import Cell
from rbpx.data.corpus import Document
from rbpx.errors import RbpxError
from rbpx.measure.reading import read_as_asked
from rbpx.models.load import LoadedModel

Turn = tuple[Cell, Sequence[Document]]


class Ahead:
    """Cuts the texts of one model, at most one ahead of the one that is measured."""

    def __init__(self, load: Callable[[], LoadedModel], turns: Sequence[Turn]) -> None:
        """Know the cells of a model in the order of their turns, with their documents; none to cut nothing."""
        self._load, self._turns = load, turns
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rbpx-ahead")
        self._under_way: Future[None] | None = None

    def __enter__(self) -> "Ahead":
        """Nothing is cut before something is measured."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for what is being cut."""
        self._thread.shutdown()

    def settle(self) -> None:
        """Before a cell begins: its text is whole, or it is cut in its own turn, where it can tell what is wrong."""
        if self._under_way is not None:
            wait([self._under_way])

    def follow(self, at: int) -> None:
        """The cell at this place is being measured: cut the text of the next one."""
        if at + 1 < len(self._turns):
            self._under_way = self._thread.submit(self._cut, *self._turns[at + 1])

    def _cut(self, cell: Cell, documents: Sequence[Document]) -> None:
        try:
            read_as_asked(cell, self._load()).cut(documents)
        except RbpxError:  # told when it is this cell's turn
            return
