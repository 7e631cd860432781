"""Texts measured in this process, without a command: a model loaded, windows cut, rows of them by one or several."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from rbpx.data.corpus import Document
from rbpx.data.windows import Window, cut_windows
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import TokenRows, measure_windows
from rbpx.measure.reading.reading import Reading
from rbpx.models.load import LoadedModel, load_model
from tests.support.checkpoints import CONTEXT

CPU = torch.device("cpu")
ALONE = ProcessGroup(0, 1, CPU)


def load(folder: Path | str, dtype: str = "float32") -> LoadedModel:
    """A model of a folder on the CPU."""
    return load_model(str(folder), None, dtype, CPU)


def windows_of(loaded: LoadedModel, texts: Sequence[str]) -> list[Window]:
    """The first tokens of each text, as many as the tiny models read."""
    return cut_windows([Document(i, str(i), text) for i, text in enumerate(texts)], loaded.tokenizer, CONTEXT)


def measure(
    loaded: LoadedModel, windows: Sequence[Window], budget: int = 200, processes: ProcessGroup = ALONE
) -> TokenRows:
    """Their rows, in batches of so many padded tokens."""
    return measure_windows(Reading(loaded, windows, processes, budget, lambda n: None))


class ThreadGroup(ProcessGroup):
    """A process group of threads, to test `gather` without processes."""

    meeting: Any
    board: list[Any]

    def gather(self, part: Any) -> list[Any]:
        """What all threads bring, once all have brought theirs."""
        self.board[self.rank] = part
        self.meeting.wait(60)
        parts = list(self.board)
        self.meeting.wait(60)  # all have read it before any writes to it again
        return parts


def in_group(world: int, work: Callable[[ProcessGroup], Any]) -> list[Any]:
    """What `work` returns or raises in each of `world` threads."""
    meeting, board, results = threading.Barrier(world), [None] * world, [None] * world

    def enter(rank: int) -> None:
        processes = ThreadGroup(rank, world, CPU)
        object.__setattr__(processes, "meeting", meeting)
        object.__setattr__(processes, "board", board)
        try:
            results[rank] = work(processes)
        except Exception as problem:
            results[rank] = problem

    threads = [threading.Thread(target=enter, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
