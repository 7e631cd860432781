"""Downloads all that measuring a sweep reads from the hub, as `measure` would, without loading a model."""

import shutil
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from threading import Event
from typing import Final

from rbpx.config.grid import Cell
from rbpx.config.keys.runs import GridKeys
from rbpx.data.hub import HubFile, Needs, cache_folder, quiet
from rbpx.data.hub_texts import needed_rows
from rbpx.data.samples import draws_from_hub, keep_sample
from rbpx.display.progress import counted, downloading, tell_loading
from rbpx.display.vocabulary import in_bytes
from rbpx.errors import MeasureError, RbpxError, number_of
from rbpx.measure.grid import grid_here
from rbpx.measure.results import Failure, Measured, not_measured, told
from rbpx.measure.shards import places_of
from rbpx.models.folder import local_folder
from rbpx.models.hub import fetch, needed_files
from rbpx.store.cell_states import cell_states
from rbpx.store.store import Record

_AT_ONCE: Final = 8  # repositories in parallel


@dataclass(eq=False)
class Needed:
    """A model or sample of the hub that cells need.

    Attributes:
        place: kind, ORG/NAME, and revision as requested, "" for the hub's default.
        fetch: makes it available to `measure`; of a model, calls its argument with the bytes that came.
        is_drawn: False for a sample that the store lacks.
    """

    place: tuple[str, str, str]
    ask: Callable[[], Needs]
    fetch: Callable[..., object]
    is_drawn: bool = True
    commit: str | None = None
    files: Sequence[HubFile] = ()
    n_read_bytes: int = 0
    problem: RbpxError | None = None

    def look_up(self) -> None:
        """Ask the hub what there is."""
        self.commit, self.files, self.n_read_bytes = self.ask()

    def attempt(self, step: Callable[[], object]) -> None:
        """Take a step; an error becomes the problem."""
        try:
            step()
        except RbpxError as problem:
            self.problem = problem


def _missing(needed: Sequence[Needed]) -> dict[Hashable, int]:
    return {(of.place[:2], file.blob): file.n_bytes for of in needed for file in of.files if not file.is_here}


@dataclass(eq=False)
class _Grid:
    request: GridKeys
    texts: list[Needed] = field(default_factory=list)
    cells: dict[Cell, Needed | RbpxError | None] = field(default_factory=dict)
    problem: RbpxError | None = None

    def result(self) -> Measured:
        stopped = next((text.problem for text in self.texts if text.problem is not None), self.problem)
        if stopped is not None:
            return not_measured(self.request, stopped)
        problems = {cell: of.problem if isinstance(of, Needed) else of for cell, of in self.cells.items()}
        failures = tuple(
            Failure(str(cell), told(problem, self.request), not isinstance(problem, MeasureError))
            for cell, problem in problems.items()
            if problem is not None
        )
        return Measured(self.request, tuple(cell.key for cell, of in problems.items() if of is None), failures)


class Download:
    """The downloads of a sweep's grids, and their outcome."""

    def __init__(self, requests: Sequence[GridKeys]) -> None:
        """Ask the hub what there is to fetch; an error in a request becomes part of its result."""
        known: dict[Hashable, Needed] = {}
        self._grids = [_Grid(request) for request in requests]
        self._wall_s: float | None = None  # of fetching, once that has begun
        try:
            for grid, places in zip(self._grids, places_of(requests), strict=True):
                if places is None or places:
                    _fill(grid, places, known)
        except RbpxError as problem:
            self._stop(problem)
        self._needed = sorted(known.values(), key=lambda each: each.place)
        self._models = [each for each in self._needed if each.place[0] == "model"]
        self._texts = [each for each in self._needed if each.place[0] != "model"]  # `datasets` is not thread-safe
        with quiet(bars=False), counted("asking the hub", max(1, len(known))) as advance:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for done in as_completed([pool.submit(model.attempt, model.look_up) for model in self._models]):
                    done.result()
                    advance(1)
            for text in self._texts:
                if not text.is_drawn:
                    text.attempt(text.look_up)
                advance(1)

    def _stop(self, problem: RbpxError) -> None:
        for grid in self._grids:
            grid.problem = grid.problem or problem

    def fetch(self) -> None:
        """Fetch what is missing, or nothing where a disk is too small; a failure does not stop the rest."""
        n_bytes, folder = sum(_missing(self._needed).values()), cache_folder()
        free = shutil.disk_usage(next(place for place in (folder, *folder.absolute().parents) if place.exists())).free
        if n_bytes > free:
            return self._stop(
                MeasureError(
                    f"{in_bytes(n_bytes)} are missing, and the disk of {folder} has {in_bytes(free)} free; make room, "
                    "or name a folder on another disk with HF_HOME=DIR"
                )
            )
        began = time.monotonic()
        with quiet(bars=False):
            self._fetch_models()
            for text in self._texts:
                if text.problem is None:
                    text.attempt(text.fetch)
        self._wall_s = time.monotonic() - began

    def _fetch_models(self) -> None:
        stopped, missing = Event(), _missing(self._models)
        bar = (
            downloading(number_of(len(missing), "file"), sum(missing.values()))
            if missing
            else nullcontext(lambda n: None)
        )
        with bar as show, ThreadPoolExecutor(_AT_ONCE) as pool:

            def advance(n: int) -> None:
                if stopped.is_set():
                    raise InterruptedError("stopped")
                show(n)

            wanted = [each for each in self._models if each.problem is None]
            try:
                for done in as_completed([pool.submit(each.attempt, partial(each.fetch, advance)) for each in wanted]):
                    done.result()
            finally:  # after Ctrl-C too: each fetch ends at its next bytes
                stopped.set()
                pool.shutdown(cancel_futures=True)

    def rows(self) -> list[Record]:
        """A row for each repository and revision: what is needed, what was here before, and its state."""
        return [self._row(list(of)) for _, of in groupby(self._needed, key=lambda each: each.place)]

    def _row(self, needed: Sequence[Needed]) -> Record:
        kind, name, revision = needed[0].place
        files = {file.path: file for each in needed for file in each.files}.values()
        problem = next((each.problem for each in needed if each.problem is not None), None)
        if problem is not None:
            state = "failed"
        elif all(file.is_here for file in files) and all(each.is_drawn for each in needed):
            state = "here"
        else:
            state = "to fetch" if self._wall_s is None else "fetched"
        return {
            "kind": kind,
            "repository": name,
            "revision": revision or None,
            "commit": next((each.commit for each in needed if each.commit is not None), None),
            "n_files": len(files),
            "n_bytes": sum(file.n_bytes for file in files),
            "n_bytes_here": sum(file.n_bytes for file in files if file.is_here),
            "n_read_bytes": sum(each.n_read_bytes for each in needed),
            "state": state,
            "error": None if problem is None else str(problem),
        }

    def summary(self) -> str | None:
        """What was downloaded, in a line; None where something failed and nothing was."""
        rows = self.rows()
        fetched = [row for row in rows if row["state"] == "fetched"]
        if fetched and self._wall_s is not None:
            n_bytes = sum(row["n_bytes"] - row["n_bytes_here"] + row["n_read_bytes"] for row in fetched)
            came, rate = in_bytes(n_bytes), in_bytes(n_bytes / max(self._wall_s, 1e-3))
            of = number_of(len(fetched), "repository", "repositories")
            return f"fetched {came} of {of} at {rate}/s; HF_HUB_OFFLINE=1 measures them without a network"
        if all(row["state"] == "here" for row in rows) and not any(grid.problem for grid in self._grids):
            of = number_of(len(rows), "repository", "repositories")
            what = f"all that is needed is here, {of}" if rows else "no cell that is missing needs the hub"
            return f"nothing to fetch: {what}"
        return None

    def results(self) -> list[Measured]:
        """The result of each grid, in the order of the requests."""
        return [grid.result() for grid in self._grids]


def _fill(grid: _Grid, places: Collection[int] | None, known: dict[Hashable, Needed]) -> None:
    request = grid.request.but(shard=None)
    try:
        here = grid_here(request)
        store = here.store
        assert request.dataset is not None, "a grid has a dataset"
        for dataset, limit, seed, held in draws_from_hub(request.dataset, request.limit, request.seed, store):
            place = "dataset", str(dataset.hub), str(dataset.revision or "")
            ask = partial(needed_rows, dataset, limit, seed)
            keep = partial(keep_sample, dataset, limit, seed, store, tell_loading)
            text = Needed(place, ask, keep, held is not None, None if held is None else held.commit)
            grid.texts.append(known.setdefault((repr(dataset), limit, seed, store.root), text))
        for at, state in enumerate(cell_states(here.cells, store)):
            if places is None or at in places:
                is_done = state.run_id is not None and here.holds(state.run_id)
                grid.cells[state.cell] = None if is_done else _model_of(state.cell, known)
    except RbpxError as problem:
        grid.problem = problem


def _model_of(cell: Cell, known: dict[Hashable, Needed]) -> Needed | RbpxError | None:
    """None for a local model; the error of a folder that does not exist."""
    try:
        if local_folder(cell.model, cell.pickled) is not None:
            return None
    except RbpxError as problem:
        return problem
    asked = cell.model, cell.revision, cell.pickled, cell.engine is None  # an inference server has its own weights
    place = "model", cell.model, cell.revision or ""
    return known.setdefault(asked, Needed(place, partial(needed_files, *asked), partial(fetch, *asked)))
