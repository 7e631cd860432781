"""The grid of a request: its cells, which know their models and their text by hash, and the documents that they share.

`measure` draws what is missing from a hub; `plan`, `download` and `status` know what is on this machine alone.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rbpx.config.grid import INCOMPLETE, Cell, cells, members
from rbpx.config.model.family import is_gguf
from rbpx.config.model.training import Training, checked_training
from rbpx.config.request import Request
from rbpx.config.text.dataset import UNNAMED, ProtocolConfig
from rbpx.data.corpus import text_hash
from rbpx.data.hub_texts import Sample
from rbpx.data.samples import sample_here
from rbpx.errors import AbsentTextError, RbpxError
from rbpx.models.folder import hash_model, local_folder
from rbpx.models.gguf import stored_as
from rbpx.store.store import Store


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of one request.

    Attributes:
        request: whose dataset has the name under which the store holds its text.
        store: of the request.
        cells: in order of family, size and checkpoint.
        sample: the documents that they share; None where those are not on this machine.
    """

    request: Request
    store: Store
    cells: list[Cell]
    sample: Sample | None


def open_grid(request: Request, draw: Callable[[Store], Sample | None]) -> Grid:
    """The grid of a request with the documents that `draw` finds for a store.

    Raises:
        RbpxError: the request names no model or no dataset, none of its models can be read, or a `training.json` is
            not what it should be; or what `draw` raises.
    """
    if request.dataset is None:
        raise RbpxError(INCOMPLETE)
    store = Store(request.store)
    hashes = hash_members(request, store)
    sample = draw(store)
    text = None if sample is None else text_hash(sample.documents)
    request = _as_held(request, text, store)
    pickled = request.model is not None and request.model.pickled
    folders = {name: local_folder(name, pickled) for name, of in hashes.items() if of is not None}
    training = {name: read_training(folder) for name, folder in folders.items() if folder is not None}
    return Grid(request, store, cells(request, text, hashes, training, stored_as(hashes)), sample)


def grid_here(request: Request, by_name: bool = False) -> Grid:
    """The same from what is on this machine: downloads, measures and writes nothing.

    Args:
        request: with a model and a dataset.
        by_name: whether a dataset may be a name alone: of the store, or of a missing file, which is then said.
    """
    dataset = request.dataset

    def draw(store: Store) -> Sample | None:
        if dataset is None or (by_name and dataset.kind == "file" and dataset.path is None):
            return None
        try:
            return sample_here(dataset, request.limit, request.seed, store)
        except AbsentTextError as problem:
            if not by_name:
                raise
            logging.getLogger(__name__).warning(str(problem))
            return None

    return open_grid(request if request.protocol else request.but(protocol=ProtocolConfig()), draw)


def _as_held(request: Request, text: str | None, store: Store) -> Request:
    """The request with the dataset's name under which the store holds its text, so that no cell is measured twice.

    A file is named after its path. Earlier versions called every file `file`; a text that a store holds by that name
    keeps it there, so that models measured later can be compared with those measured then.
    """
    dataset = request.dataset
    if dataset is None or text is None or not dataset.has_file_name or dataset.name == UNNAMED:
        return request
    names = {run["dataset"] for run in store.runs() if run["text_hash"] == text}
    held_unnamed = UNNAMED in names and dataset.name not in names
    return request.but(dataset=replace(dataset, name=UNNAMED)) if held_unnamed else request


def hash_members(request: Request, store: Store) -> dict[str, str | None]:
    """A hash of the contents of each model of a request that lies in a folder; None for hub ids.

    If some folders can be read, it is None too for one that cannot: loading it fails later, as that cell's failure.

    Raises:
        RbpxError: the request names no model or no document, or none of its models can be read.
    """
    model = request.model
    if model is None:
        raise RbpxError(INCOMPLETE)
    if request.limit == 0:
        raise RbpxError("limit=0 leaves no document to measure; give a whole number from 1")
    hashes: dict[str, str | None] = {}
    problems: list[RbpxError] = []
    for member in members(model, request.size)[1]:
        try:
            folder, cache = local_folder(member.model, model.pickled), store.hashes
            hashes[member.model] = None if folder is None else hash_model(folder, member.model, cache, model.pickled)
        except RbpxError as problem:
            hashes[member.model] = None
            problems.append(problem)
    if hashes and len(problems) == len(hashes):
        raise problems[0]
    return hashes


_NAMES: Final = {"training_tokens": "tokens", "training_step": "steps"}  # as experiments/ladder/train.py calls them


def read_training(folder: Path) -> Training:
    """The facts in `training.json` of a model's folder, or beside its GGUF file; none where there is no such file.

    Raises:
        RbpxError: it cannot be read, or a value is not of the kind that its name says.
    """
    path = (folder.parent if is_gguf(folder) else folder) / "training.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Training()
    except (OSError, ValueError) as problem:
        raise RbpxError(f"{path} cannot be read: {problem}; correct it, or remove it") from None
    if not isinstance(values, dict):
        raise RbpxError(f"{path} is not a JSON object; correct it, or remove it")
    also = {fact: values[name] for fact, name in _NAMES.items() if name in values and fact not in values}
    return checked_training(values | also, f"{path}: ", _NAMES if also else None)
