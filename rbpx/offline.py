"""The grid of a request from what is on this machine alone: nothing is downloaded, measured or written."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rbpx.config import DatasetConfig, ProtocolConfig, Request
from rbpx.corpus import Document, draw, read_source, text_hash
from rbpx.errors import RbpxError
from rbpx.grid import Cell, cells, members
from rbpx.store import Store
from rbpx.weights import hash_model, local_folder

_BUILT_IN = ("file", "stdlib", "pydoc")  # kinds of texts that need no hub


def grid_offline(request: Request, store: Store) -> tuple[list[Cell], Sequence[Document] | None]:
    """The cells that a request means and their documents; None, and no `text_hash`, where the text is not here.

    Raises:
        RbpxError: the request names no model or no text, or a folder or file that is missing.
    """
    model, dataset = request.model, request.dataset
    if model is None or dataset is None:
        raise RbpxError("a grid needs model=FAMILY and dataset=NAME; see python -m rbpx --help")
    cache = store.root / "hashes.json" if os.access(store.root, os.W_OK) else None
    hashes: dict[str, str | None] = {}
    for member in members(model, request.sizes())[1]:
        place = local_folder(member.model)
        hashes[member.model] = None if place is None else hash_model(place, member.model, cache)
    documents = documents_here(dataset, request.limit, request.seed)
    if request.protocol is None:
        request = replace(request, protocol=ProtocolConfig())
    return cells(request, None if documents is None else text_hash(documents), hashes), documents


def documents_here(dataset: DatasetConfig, limit: int, seed: int) -> Sequence[Document] | None:
    """The drawn documents of a text that is on this machine, None of one that a hub would have to be asked for."""
    if dataset.path is None and dataset.kind not in _BUILT_IN:
        return None
    source = read_source(dataset.kind, None if dataset.path is None else Path(dataset.path), dataset.fields)
    if not source:
        raise RbpxError(f"dataset {dataset.name} ({dataset.path}) is empty; give one with at least one document")
    return draw(source, limit, seed)
