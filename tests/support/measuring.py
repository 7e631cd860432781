"""Texts measured in this process, without a command: a model loaded, windows cut, rows of them by one or several."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rbpx.config.model.placement import Split
from rbpx.data.corpus import Document
from rbpx.data.windows import Window, cut_windows
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import COLUMNS, TokenColumns, measure_windows
from rbpx.measure.reading.reading import Reading
from rbpx.models.load import LoadedModel, load_model
from tests.support.checkpoints import CONTEXT, TINY_TEXT
from tests.support.reference import reference_rows

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
) -> TokenColumns:
    """Their rows, in batches of so many padded tokens."""
    return measure_windows(Reading(loaded, windows, processes, budget, lambda n: None))


@dataclass
class Memory:
    """Refuses batches of more than `holds` padded tokens, and remembers what was tried."""

    holds: int
    refuse: Callable[[], Exception]
    tried: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tried.append(tuple(kwargs["input_ids"].shape))
        if kwargs["input_ids"].numel() > self.holds:
            raise self.refuse()


FULL = {
    "cuda": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.\nand a second line"),
    "cpu": lambda: RuntimeError(
        "[enforce fail at alloc_cpu.cpp:123] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 800 bytes. Error code 12 (Cannot allocate memory)"
    ),
    "python": lambda: MemoryError("no more"),
}


@contextmanager
def small_memory(model: Any, holds: int, refuse: Callable[[], Exception] = FULL["cuda"]) -> Iterator[Memory]:
    """A model whose device holds no more padded tokens than these at once."""
    memory = Memory(holds, refuse)
    hook = model.register_forward_pre_hook(memory, with_kwargs=True)
    try:
        yield memory
    finally:
        hook.remove()


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


def plain_rows(folder: Path, windows: Sequence[Window], special: Sequence[int]) -> list[tuple[Any, ...]]:
    """What the plain loop makes of windows: a token at a time, with special ones left out."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return [
        (window.doc_id, *row) for window in windows for row in reference_rows(model, window.ids.tolist(), set(special))
    ]


def _columns_of(expected: list[tuple[Any, ...]]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in zip(COLUMNS, zip(*expected, strict=True), strict=True)}


def assert_same_rows(rows: TokenColumns, expected: list[tuple[Any, ...]], moved: int = 0) -> None:
    """The same tokens; greater and ties equal on all but `moved` of them, logprob to 1e-4."""
    wanted = _columns_of(expected)
    for name in ("doc_id", "position", "token_id"):
        np.testing.assert_array_equal(rows[name], wanted[name], err_msg=name)
    differs = (rows["greater"] != wanted["greater"]) | (rows["ties"] != wanted["ties"])
    assert differs.sum() <= moved
    np.testing.assert_allclose(rows["logprob"], wanted["logprob"], rtol=0, atol=1e-4)


def check_many_documents(loaded: LoadedModel) -> None:
    """The contract: in another batch one token in a thousand may move, and log-probabilities by 1e-4."""
    prose = TINY_TEXT[6]
    documents = [Document(i, str(i), prose[i * 7 : i * 7 + 20 + 11 * i]) for i in range(60)]
    windows = cut_windows(documents, loaded.tokenizer, CONTEXT)
    alone = measure(loaded, windows, 1)
    assert len(alone["doc_id"]) > 1000
    for budget in (64, 200, 10**6):
        batched = measure(loaded, windows, budget)
        for name in ("doc_id", "position", "token_id"):
            np.testing.assert_array_equal(batched[name], alone[name])
        moved = (batched["greater"] != alone["greater"]) | (batched["ties"] != alone["ties"])
        assert moved.sum() <= len(alone["doc_id"]) / 1000
        np.testing.assert_allclose(batched["logprob"], alone["logprob"], rtol=0, atol=1e-4)


def check_split(folder: Path, dtype: str, limit: int, texts: Sequence[str], offload: Path) -> None:
    """A model with so many bytes of the CPU's memory is the whole one: 1 leaves nothing there, 10^9 all."""
    whole = load(folder, dtype)
    split = load_model(str(folder), None, dtype, CPU, split=Split(offload, {"cpu": limit}))
    whole_here = {"": "cpu"}  # a model that fits has no map
    places = {str(place) for place in getattr(split.model, "hf_device_map", whole_here).values()}
    assert places == {1: {"disk"}, 10**9: {"cpu"}}.get(limit, {"cpu", "disk"})
    for fact in ("weights_hash", "tokenizer_hash", "non_embedding_params", "total_params", "vocab_size"):
        assert getattr(split, fact) == getattr(whole, fact), fact
    assert split.head.after == whole.head.after
    windows = windows_of(whole, texts)
    expected, rows = measure(whole, windows), measure(split, windows)
    for name in ("doc_id", "position", "token_id", "greater", "ties"):
        np.testing.assert_array_equal(rows[name], expected[name], err_msg=name)
    np.testing.assert_allclose(rows["logprob"], expected["logprob"], rtol=0, atol=1e-6)
