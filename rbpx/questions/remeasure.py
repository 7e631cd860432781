"""Scores stored runs again for a question, one after another; a run that fails is recorded and the others go on.

It imports torch, so questions import it only where they measure.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from rbpx.config.keys.runs import Auditing
from rbpx.config.model.placement import Split
from rbpx.config.options import Dtype
from rbpx.data.corpus import Document
from rbpx.data.windows import Window
from rbpx.display.progress import GridProgress
from rbpx.errors import RbpxError, number_of
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.engine import ServedCell
from rbpx.measure.protocol import ResolvedProtocol
from rbpx.measure.reading.reading import Reading
from rbpx.measure.reopen import Reopener, RunNames
from rbpx.measure.results import Failure
from rbpx.measure.runner import split_of
from rbpx.runs.run import Run
from rbpx.store.store import Store

Found = TypeVar("Found")


@dataclass(frozen=True)
class Rescorer:
    """Scores runs of one store again for a verb, and collects `failures`."""

    verb: str
    request: Auditing
    reopener: Reopener
    split: Split | None
    progress: GridProgress
    failures: list[Failure] = field(default_factory=list)

    def each(self, runs: Sequence[Run], measure: Callable[[Run], tuple[Found, str]]) -> Iterator[tuple[Run, Found]]:
        """Yields each run that `measure` could score, with its result; it also returns a line to print."""
        for run in runs:
            try:
                found, told = measure(run)
            except BrokenPipeError:  # the reader of stdout has closed it
                raise
            except Exception as raised:
                failure = self.reopener.failed(self.verb, names_of(run), raised)
                self.failures.append(replace(failure, cell=name_of(run)))
                self.progress.finish(f"{name_of(run)} failed")
                continue
            self.reopener.succeeded(self.verb, names_of(run))
            self.progress.finish(f"{name_of(run)}: {told}")
            yield run, found

    def score(
        self,
        run: Run,
        choose: Callable[[list[Document]], list[Document]],
        how: Callable[[Reading], Found],
        dtype: Dtype | None = None,
        shows: bool = True,
        alone: bool = False,
    ) -> tuple[Found, str]:
        """Scores the documents of a run that `choose` picks; returns the result, number and speed of tokens as text.

        `dtype` is by default that of the run. With `alone` each window is a batch of its own, so that results do not
        depend on other windows.

        Raises:
            RbpxError: the model or the text is not what was measured, or no chosen document has a scored token.
        """
        protocol, documents = self.reopener.reopen(names_of(run), self.split, dtype)
        processes = self.reopener.processes
        budget = 1 if alone else self.request.tokens_in_batch(processes.device.type)

        def read(windows: list[Window], advance: Callable[[int], None]) -> Found:
            return how(Reading(protocol.loaded, windows, processes, budget, advance))

        return self._timed(run, protocol, choose(documents), read, shows)

    def ask(
        self, run: Run, asked: ServedCell, documents: list[Document], rng: np.random.Generator
    ) -> tuple[dict[str, pa.Array], str]:
        """Sends documents of a run again, in random order, to the engine that measured it.

        Raises:
            RbpxError: the same as in `score`.
            MeasureError: the server fails.
        """

        def read(windows: list[Window], advance: Callable[[int], None]) -> dict[str, pa.Array]:
            return asked.columns(windows, self.request.tokens_in_batch("cpu"), advance, rng)

        return self._timed(run, asked.protocol, documents, read)

    def _timed(
        self,
        run: Run,
        protocol: ResolvedProtocol[Any],
        documents: list[Document],
        read: Callable[[list[Window], Callable[[int], None]], Found],
        shows: bool = True,
    ) -> tuple[Found, str]:
        windows = protocol.windows(documents)
        n_tokens = sum(window.n_scored for window in windows)
        if n_tokens == 0:
            raise RbpxError(f"no document of the {len(documents):,} drawn has a scored token; give more with limit=N")
        begin = self.progress.begin if shows else lambda *_: lambda n: None
        advance = begin(name_of(run), n_tokens, self.reopener.processes.world_size)
        began = time.monotonic()
        found = read(windows, advance)
        wall_s = time.monotonic() - began
        return found, f"{number_of(n_tokens, 'token')} at {n_tokens / wall_s:,.0f} tokens/s"


@contextmanager
def rescorer(
    verb: str, title: str, n_runs: int, request: Auditing, store: Store, processes: ProcessGroup
) -> Iterator[Rescorer]:
    """Prepares to score `n_runs` runs again, with progress shown under a title."""
    with GridProgress(title, n_runs, quiet=not processes.is_main) as progress, split_of(request, store) as split:
        yield Rescorer(verb, request, Reopener(store, processes), split, progress)


def name_of(run: Run) -> str:
    """Returns the name of a run in progress messages."""
    return f"{run.family} {run.size} on {run.dataset} ({', '.join(filter(None, (run.dtype, run.engine)))})"


def names_of(run: Run) -> RunNames:
    """Returns the names under which a run was requested."""
    return RunNames(run.run_id, run.family, run.size, run.dataset)
