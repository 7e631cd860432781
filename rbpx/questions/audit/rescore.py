"""Scores stored runs again, one after another; a run that fails is recorded and the others go on."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from rbpx.config.model.placement import Split
from rbpx.config.options import Dtype
from rbpx.data.corpus import Document
from rbpx.data.windows import Window
from rbpx.display.progress import GridProgress
from rbpx.errors import RbpxError, number_of
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.engine import ServedCell
from rbpx.measure.extract import measure_windows
from rbpx.measure.protocol import ResolvedProtocol
from rbpx.measure.reading.reading import Reading
from rbpx.measure.reopen import Reopener, RunNames
from rbpx.measure.results import Failure
from rbpx.measure.runner import split_of
from rbpx.questions.audit import AuditKeys
from rbpx.runs.run import Run
from rbpx.store.store import Store

Found = TypeVar("Found")
_VERB = "audit"


@dataclass(frozen=True)
class Rescorer:
    """Scores documents of runs of one store again, and collects `failures`."""

    request: AuditKeys
    reopener: Reopener
    split: Split | None
    progress: GridProgress
    failures: list[Failure] = field(default_factory=list)

    def each(self, runs: Sequence[Run], measure: Callable[[Run], tuple[Found, str]]) -> Iterator[tuple[Run, Found]]:
        """Each run that `measure` could score, with its result and a line to print."""
        for run in runs:
            try:
                found, told = measure(run)
            except BrokenPipeError:  # the reader of stdout has closed it
                raise
            except Exception as raised:
                failure = self.reopener.failed(_VERB, names_of(run), raised)
                self.failures.append(replace(failure, cell=name_of(run)))
                self.progress.finish(f"{name_of(run)} failed")
                continue
            self.reopener.succeeded(_VERB, names_of(run))
            self.progress.finish(f"{name_of(run)}: {told}")
            yield run, found

    def score(
        self, run: Run, doc_ids: Collection[int], dtype: Dtype | None = None, shows: bool = True
    ) -> tuple[pa.Table, str]:
        """Scores documents of a run in a precision, by default its own; returns tokens, and their speed as text.

        Raises:
            RbpxError: the model or the text is not what was measured, or no such document has a scored token.
        """
        protocol, documents = self.reopener.reopen(names_of(run), self.split, dtype)

        def read(windows: list[Window], advance: Callable[[int], None]) -> dict[str, pa.Array]:
            return measure_windows(Reading(protocol.loaded, windows, self.reopener.processes, 1, advance))

        return self._timed(run, protocol, documents, doc_ids, read, shows)

    def ask(
        self, run: Run, asked: ServedCell, documents: list[Document], doc_ids: Collection[int]
    ) -> tuple[pa.Table, str]:
        """Sends documents of a run again, in random order, to the engine that measured it; raises as `score`."""

        def read(windows: list[Window], advance: Callable[[int], None]) -> dict[str, pa.Array]:
            rng = np.random.default_rng(self.request.seed)
            return asked.columns(windows, self.request.tokens_in_batch("cpu"), advance, rng)

        return self._timed(run, asked.protocol, documents, doc_ids, read)

    def _timed(
        self,
        run: Run,
        protocol: ResolvedProtocol[Any],
        documents: list[Document],
        doc_ids: Collection[int],
        read: Callable[[list[Window], Callable[[int], None]], dict[str, pa.Array]],
        shows: bool = True,
    ) -> tuple[pa.Table, str]:
        windows = protocol.windows([document for document in documents if document.doc_id in doc_ids])
        n_tokens = sum(window.n_scored for window in windows)
        if n_tokens == 0:
            raise RbpxError(f"no document of the {len(doc_ids):,} drawn has a scored token; give more with limit=N")
        begin = self.progress.begin if shows else lambda *_: lambda n: None
        advance = begin(name_of(run), n_tokens, self.reopener.processes.world_size)
        began = time.monotonic()
        found = pa.table(read(windows, advance))
        wall_s = time.monotonic() - began
        return found, f"{number_of(n_tokens, 'token')} at {n_tokens / wall_s:,.0f} tokens/s"


@contextmanager
def rescorer(title: str, n_runs: int, request: AuditKeys, store: Store, processes: ProcessGroup) -> Iterator[Rescorer]:
    """Prepares to score `n_runs` runs again, with progress shown under a title."""
    with GridProgress(title, n_runs, quiet=not processes.is_main) as progress, split_of(request, store) as split:
        yield Rescorer(request, Reopener(store, processes), split, progress)


def name_of(run: Run) -> str:
    """The name of a run in progress messages."""
    return f"{run.family} {run.size} on {run.dataset} ({', '.join(filter(None, (run.dtype, run.engine)))})"


def names_of(run: Run) -> RunNames:
    """The names under which a run was requested."""
    return RunNames(run.run_id, run.family, run.size, run.dataset)
