"""The grid of a request: its cells, with hashes of their models and text, and the documents that they share.

`measure` draws missing samples from the hub; `plan`, `download` and `status` use what is on this machine.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rbpx.config.grid import INCOMPLETE, Cell, cells, members
from rbpx.config.keys.runs import GridKeys
from rbpx.config.model.family import Member, ModelConfig, is_gguf
from rbpx.config.model.training import TrainingFacts, checked_training
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.data.hub_texts import Sample
from rbpx.data.samples import sample_here
from rbpx.errors import AbsentTextError, RbpxError
from rbpx.models.folder import hash_adapter, hash_model, local_folder
from rbpx.models.gguf import stored_as
from rbpx.store.store import Store


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of a request, in order of family, size and checkpoint; a sample that is not here is None."""

    request: GridKeys
    store: Store
    cells: list[Cell]
    sample: Sample | None

    def holds(self, run_id: str) -> bool:
        """Whether a run in the store has its best tokens where the request asks for them."""
        return not self.request.best or self.store.file("best", run_id).is_file()


def open_grid(request: GridKeys, draw: Callable[[Store], Sample | None]) -> Grid:
    """The grid of a request with the documents that `draw` finds for a store.

    Raises:
        RbpxError: no model or dataset is named, no model or not all adapters can be read, or a `training.json` is
            invalid; or what `draw` raises.
    """
    model = request.model
    if request.dataset is None or model is None:
        raise RbpxError(INCOMPLETE)
    store = Store(request.store)
    chosen = members(model, request.size)[1]
    hashes = _hash_members(model, chosen, store)
    adapters = {member.adapter for member in chosen} - {None}
    adapter_hashes = {name: hash_adapter(name, store.hashes, model.pickled) for name in adapters if name is not None}
    sample = draw(store)
    text = None if sample is None else sample.text_hash
    folders = {name: local_folder(name, model.pickled) for name, of in hashes.items() if of is not None}
    training = {name: read_training(folder) for name, folder in folders.items() if folder is not None}
    return Grid(request, store, cells(request, text, hashes, training, stored_as(hashes), adapter_hashes), sample)


def grid_here(request: GridKeys, by_name: bool = False) -> Grid:
    """The grid of a request from what is on this machine: downloads, measures and writes nothing.

    `by_name` lets a dataset be known by name alone: one of the store, or a missing file, which is logged.
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


def _hash_members(model: ModelConfig, chosen: Sequence[Member], store: Store) -> dict[str, str | None]:
    """Content hash of each model in a folder; None for hub ids.

    Where some folders can be read, that of an unreadable one is None too: loading fails later, as that cell's failure.
    """
    hashes: dict[str, str | None] = {}
    problems: list[Exception] = []
    for member in chosen:
        try:
            folder, cache = local_folder(member.model, model.pickled), store.hashes
            hashes[member.model] = None if folder is None else hash_model(folder, member.model, cache, model.pickled)
        except (RbpxError, OSError) as problem:
            hashes[member.model] = None
            problems.append(problem)
    if hashes and len(problems) == len(hashes):
        raise problems[0]
    return hashes


_NAMES: Final = {"training_tokens": "tokens", "training_step": "steps"}  # as experiments/ladder/train.py calls them


def read_training(folder: Path) -> TrainingFacts:
    """The facts in `training.json` of a model's folder, or beside its GGUF file; raises RbpxError for a wrong file."""
    path = (folder.parent if is_gguf(folder) else folder) / "training.json"
    if not path.exists():
        return TrainingFacts()
    try:
        values = dict(json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as problem:
        raise RbpxError(f"{path} is not a JSON object ({problem}); correct it, or remove it") from None
    also = {fact: values[name] for fact, name in _NAMES.items() if name in values and fact not in values}
    return checked_training(values | also, f"{path}: ", _NAMES if also else None)
