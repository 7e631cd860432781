"""Downloads all that measuring a sweep reads from the hub, without loading a model: requests in, results out.

First the hub is queried for commits and sizes; then huggingface_hub fetches the files in parallel.
"""

import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from threading import Event
from typing import Final

from rbpx.config.grid import Cell
from rbpx.config.request import Request
from rbpx.data.hub import HubFile, cache_folder, quiet
from rbpx.data.samples import draws_from_hub
from rbpx.display.progress import counted, downloading
from rbpx.display.vocabulary import in_bytes
from rbpx.errors import MeasureError, RbpxError, number_of
from rbpx.measure.download.sources import Found, Wanted, WantedModel, WantedText
from rbpx.measure.grid import grid_here
from rbpx.measure.results import Failure, Measured, not_measured, told
from rbpx.measure.shards import places_of
from rbpx.models.folder import local_folder
from rbpx.store.cell_states import CellState, State, cell_states
from rbpx.store.store import Record, Store

_AT_ONCE: Final = 8  # files in parallel, huggingface_hub's default


@dataclass(eq=False)
class Needed:
    """A model or sample of the hub that cells need.

    Attributes:
        wanted: what it is.
        found: what the hub says of it; None before the query, or where the hub lacks it.
        problem: why it cannot be downloaded.
    """

    wanted: Wanted
    found: Found | None = None
    problem: RbpxError | None = None

    def look_up(self) -> None:
        """Ask the hub."""
        with self._noted():
            self.found = self.wanted.look_up()

    def settle(self) -> None:
        """Make it available to `measure`, once its files are here."""
        with self._noted():
            self.wanted.settle()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except RbpxError as problem:
            self.problem = problem


@dataclass(eq=False)
class _Grid:
    """A grid as requested: its cells with the hub models that they need, its texts and its errors."""

    request: Request
    texts: list[Needed] = field(default_factory=list)
    models: dict[Cell, Needed | None] = field(default_factory=dict)
    absent: dict[Cell, RbpxError] = field(default_factory=dict)  # cells whose folder does not exist
    problem: RbpxError | None = None

    @property
    def stopped(self) -> RbpxError | None:
        """Why none of its cells can be measured."""
        return next((text.problem for text in self.texts if text.problem is not None), self.problem)

    def result(self) -> Measured:
        """The result of the grid, as if each cell that can be measured now were measured."""
        if self.stopped is not None:
            return not_measured(self.request, self.stopped)
        of_hub = {cell: model.problem for cell, model in self.models.items() if model is not None}
        failed = self.absent | {cell: problem for cell, problem in of_hub.items() if problem is not None}
        failures = tuple(
            Failure(str(cell), told(problem, self.request), not isinstance(problem, MeasureError))
            for cell, problem in failed.items()
        )
        return Measured(self.request, tuple(cell.key for cell in self.models if cell not in failed), failures)


class Download:
    """The downloads of a sweep's grids, and their outcome."""

    def __init__(self, requests: Sequence[Request]) -> None:
        """Query the hub for what there is to fetch; an error in a request becomes part of its result."""
        known: dict[Wanted, Needed] = {}
        self._grids = [_Grid(request) for request in requests]
        parts: list[frozenset[int] | None] = []
        try:
            parts = places_of(requests)
        except RbpxError as problem:
            self._stop(problem)
        for grid, places in zip(self._grids, parts, strict=False):
            if places is None or places:
                _fill(grid, places, known)
        self._needed = list(known.values())
        with quiet(bars=False):
            self._look_up()
        self._here = {file for each in self._needed if each.found for file in each.found.files if file.is_here}
        self._n_came_bytes, self._began, self._wall_s = 0, False, 0.0

    def _look_up(self) -> None:
        texts = [each for each in self._needed if isinstance(each.wanted, WantedText)]
        models = [each for each in self._needed if isinstance(each.wanted, WantedModel)]
        with counted("asking the hub", max(1, len(self._needed))) as advance, ThreadPoolExecutor(_AT_ONCE) as pool:
            for done in as_completed([pool.submit(model.look_up) for model in models]):
                done.result()
                advance(1)
            for text in texts:  # `datasets` is not thread-safe
                text.look_up()
                advance(1)

    def _stop(self, problem: RbpxError) -> None:
        for grid in self._grids:
            grid.problem = grid.problem or problem

    def fetch(self) -> None:
        """Fetch what is missing; a failure does not stop the rest. Fetches nothing where a disk is too small."""
        found = [each.found for each in self._needed if each.found is not None]
        missing = list({file.content: file for of in found for file in of.files if not file.is_here}.values())
        n_bytes = sum(file.n_bytes for file in missing)
        try:
            _check_room(n_bytes)
        except MeasureError as problem:
            self._stop(problem)
            return
        self._began, began = True, time.monotonic()
        with quiet(bars=False):
            if missing:
                self._fetch(missing, n_bytes)
            for each in self._needed:
                if each.problem is None:
                    each.settle()
                    self._n_came_bytes += each.found.n_read_bytes if each.found and each.problem is None else 0
        self._wall_s = time.monotonic() - began

    def _fetch(self, files: Sequence[HubFile], n_bytes: int) -> None:
        stopped = Event()

        def advance(n: int) -> None:
            if stopped.is_set():
                raise InterruptedError("stopped")
            self._n_came_bytes += n
            show(n)

        with downloading(number_of(len(files), "file"), n_bytes) as show, ThreadPoolExecutor(_AT_ONCE) as pool:
            fetched = {pool.submit(file.fetch, advance): file for file in files}
            try:
                for future in as_completed(fetched):
                    problem = future.exception()
                    if problem is not None and not isinstance(problem, RbpxError):
                        raise problem
                    if problem is not None:
                        self._note(fetched[future], problem)
            finally:  # after Ctrl-C too: each fetch ends at its next bytes
                stopped.set()
                pool.shutdown(cancel_futures=True)

    def _note(self, failed: HubFile, problem: RbpxError) -> None:
        for each in self._needed:
            if each.found is not None and any(file.content == failed.content for file in each.found.files):
                each.problem = problem

    def rows(self) -> list[Record]:
        """A row for each repository and revision: what is needed, what was here before, and its state."""
        return [self._row(*place, list(of)) for place, of in groupby(sorted(self._needed, key=_place), key=_place)]

    def _row(self, kind: str, name: str, revision: str, needed: Sequence[Needed]) -> Record:
        found = [each.found for each in needed if each.found is not None]
        files = {file for of in found for file in of.files}
        n_bytes, n_bytes_here = sum(file.n_bytes for file in files), sum(file.n_bytes for file in files & self._here)
        n_read_bytes = sum(of.n_read_bytes for of in found)
        problem = next((each.problem for each in needed if each.problem is not None), None)
        if problem is not None:
            state = "failed"
        elif n_bytes == n_bytes_here and all(each.wanted.is_held for each in needed):
            state = "here"
        else:
            state = "fetched" if self._began else "to fetch"
        return {
            "kind": kind,
            "repository": name,
            "revision": revision or None,
            "commit": next((of.commit for of in found), None),
            "n_files": len(files),
            "n_bytes": n_bytes,
            "n_bytes_here": n_bytes_here,
            "n_read_bytes": n_read_bytes,
            "state": state,
            "error": None if problem is None else str(problem),
        }

    def summary(self) -> str | None:
        """What was downloaded, in one line; None where something failed and nothing was."""
        states = [row["state"] for row in self.rows()]
        n_fetched = states.count("fetched")
        if n_fetched:
            came, rate = in_bytes(self._n_came_bytes), in_bytes(self._n_came_bytes / max(self._wall_s, 1e-3))
            of = number_of(n_fetched, "repository", "repositories")
            return f"fetched {came} of {of} at {rate}/s; HF_HUB_OFFLINE=1 measures them without a network"
        if states.count("here") == len(states) and not any(grid.problem for grid in self._grids):
            of = number_of(len(states), "repository", "repositories")
            what = f"all that is needed is here, {of}" if states else "no cell that is missing needs the hub"
            return f"nothing to fetch: {what}"
        return None

    def results(self) -> list[Measured]:
        """The result of each grid, in the order of the requests."""
        return [grid.result() for grid in self._grids]


def _place(needed: Needed) -> tuple[str, str, str]:
    return needed.wanted.kind, needed.wanted.name, str(needed.wanted.revision or "")


def _fill(grid: _Grid, places: Collection[int] | None, known: dict[Wanted, Needed]) -> None:
    """Find what the cells at some places of a grid need, as far as this machine knows."""

    def needed(wanted: Wanted) -> Needed:
        return known.setdefault(wanted, Needed(wanted))

    request = grid.request.but(shard=None)
    try:
        store = Store(request.store)
        cells = grid_here(request).cells
        assert request.dataset is not None, "a grid has a dataset"
        for dataset, limit, seed, held in draws_from_hub(request.dataset, request.limit, request.seed, store):
            identity = f"{dataset!r} in {store.root}"
            grid.texts.append(needed(WantedText(identity, limit, seed, dataset, store, held)))
        for place, state in enumerate(cell_states(cells, store)):
            if places is not None and place not in places:
                continue
            cell = state.cell
            grid.models[cell] = None
            try:
                if not _is_done(state, request, store) and local_folder(cell.model, cell.pickled) is None:
                    model = WantedModel(cell.model, cell.revision, cell.pickled, cell.engine is None)
                    grid.models[cell] = needed(model)
            except RbpxError as problem:
                grid.absent[cell] = problem
    except RbpxError as problem:
        grid.problem = problem


def _is_done(state: CellState, request: Request, store: Store) -> bool:
    """Whether a cell is measured, with its best tokens where they are requested."""
    if state.state is not State.done or state.run_id is None:
        return False
    return not request.best or store.beside_file("best", state.run_id).is_file()


def _check_room(n_bytes: int) -> None:
    """Check that the disk of the hub's cache has room.

    Raises:
        MeasureError: it has not.
    """
    folder = cache_folder()
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(place).free
    if n_bytes > free:
        raise MeasureError(
            f"{in_bytes(n_bytes)} are missing, and the disk of {folder} has {in_bytes(free)} free; make room, or name "
            "a folder on another disk with HF_HOME=DIR"
        )
