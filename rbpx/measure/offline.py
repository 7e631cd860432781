"""The grid of a request from what is on this machine alone: nothing is downloaded, measured or written."""

from collections.abc import Sequence
from dataclasses import replace

from rbpx.config.grid import INCOMPLETE, Cell, cells, members
from rbpx.config.protocol import ProtocolConfig
from rbpx.config.request import Request
from rbpx.data.corpus import Document, text_hash
from rbpx.data.samples import sample_here
from rbpx.errors import RbpxError
from rbpx.models.weights import hash_model, local_folder
from rbpx.store.store import Store


def grid_offline(request: Request, store: Store) -> tuple[list[Cell], Sequence[Document] | None]:
    """The cells that a request means and their documents; None, and no `text_hash`, where the text is not here.

    Raises:
        RbpxError: the request names no model or no text, or a folder or file that is missing.
    """
    if request.dataset is None:
        raise RbpxError(INCOMPLETE)
    hashes = hash_members(request, store)
    found = sample_here(request.dataset, request.limit, request.seed, store)
    documents = None if found is None else found.documents
    if request.protocol is None:
        request = replace(request, protocol=ProtocolConfig())
    return cells(request, None if documents is None else text_hash(documents), hashes), documents


def hash_members(request: Request, store: Store) -> dict[str, str | None]:
    """The contents of each model that a request means and that lies in a folder; None for hub ids.

    Raises:
        RbpxError: no model is named, or a folder holds none.
    """
    model = request.model
    if model is None:
        raise RbpxError(INCOMPLETE)
    hashes: dict[str, str | None] = {}
    for member in members(model, request.sizes())[1]:
        place, cache = local_folder(member.model, model.pickled), store.root / "hashes.json"
        hashes[member.model] = None if place is None else hash_model(place, member.model, cache, model.pickled)
    return hashes
