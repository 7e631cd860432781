"""Divides the cells of a sweep among independent machines: the same on all, disjoint, balanced.

Each machine computes the division from the request, the architectures of its models and its windows; not from the
store, a hub's cache, or a text that may have to be downloaded.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

from rbpx.config.grid import Cell, cells
from rbpx.config.keys.runs import GridKeys
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.measure.plan.tokens_read import BYTES_PER_TOKEN
from rbpx.models.architecture import declared_architecture
from rbpx.models.costs import flops, tokens_read

T = TypeVar("T")
Place = tuple[int, int]
"""Where a cell stands in a sweep: the number of its request, and its place in that request's grid; from 0."""


@dataclass(frozen=True)
class Load:
    """The places of the cells that one machine measures, and an upper bound on their FLOPs."""

    places: frozenset[Place]
    cost: float


def places_of(requests: Sequence[GridKeys]) -> list[frozenset[int] | None]:
    """For each request, the places in its grid of the cells of its shard; None where it names no shard."""
    shard = requests[0].shard if requests else None
    if shard is None or shard.number is None:
        return [None] * len(requests)
    places = divide(requests, shard.n_shards)[shard.number - 1].places
    return [frozenset(at for of, at in places if of == number) for number in range(len(requests))]


def of_shard(requests: Sequence[GridKeys], grids: Sequence[Sequence[T]]) -> list[T]:
    """The entries of `grids` that belong to the requests' shard, in their order."""
    own = zip(places_of(requests), grids, strict=True)
    return [of for places, grid in own for at, of in enumerate(grid) if places is None or at in places]


def divide(requests: Sequence[GridKeys], n_shards: int) -> list[Load]:
    """Divide a sweep, the requests of all its jobs, into shards.

    The costliest cells come first: into a shard that has their model already, as long as that stays below an equal
    share, else into the least loaded one.

    Raises:
        RbpxError: a request is incomplete, or a model in a folder is not on this machine.
    """
    found = _cells(requests)
    known = [cost for _, cost in found.values() if cost is not None]
    typical = median(known) if known else 1.0
    costed = [(typical if cost is None else cost, place, cell) for cell, (place, cost) in found.items()]
    share = sum(cost for cost, *_ in costed) / n_shards
    costs = [0.0] * n_shards
    places: list[set[Place]] = [set() for _ in range(n_shards)]
    with_model: dict[object, list[int]] = defaultdict(list)
    for cost, place, (cell, _) in sorted(costed, key=lambda each: (-each[0], each[1])):
        held = with_model[cell.model, cell.revision, cell.dtype]
        room = [at for at in held if costs[at] + cost <= share]
        at = min(room or range(n_shards), key=lambda at: (costs[at], at))
        costs[at] += cost
        places[at].add(place)
        held.append(at)
    return [Load(frozenset(own), cost) for own, cost in zip(places, costs, strict=True)]


def _cells(requests: Sequence[GridKeys]) -> dict[tuple[Cell, str], tuple[Place, float | None]]:
    found: dict[tuple[Cell, str], tuple[Place, float | None]] = {}
    for number, request in enumerate(requests):
        for place, cell in enumerate(_named(request)):
            identity = cell, repr(request.dataset)
            if identity not in found:
                found[identity] = (number, place), _cost(cell, request)
    return found


def _named(request: GridKeys) -> list[Cell]:
    named = request if request.protocol is not None else request.but(protocol=ProtocolConfig())
    return cells(named, None, defaultdict(lambda: None))


def _cost(cell: Cell, request: GridKeys) -> float | None:
    shape = {} if request.model is None else request.model.shape_of(cell.size)
    architecture = declared_architecture(cell.model, shape, cell.pickled)
    window, _ = cell.cut_for(None if architecture is None else architecture.context)
    n_tokens = float(request.limit * window)
    path = None if request.dataset is None or request.dataset.path is None else Path(request.dataset.path)
    if path is not None and path.is_file():
        in_file = path.stat().st_size / BYTES_PER_TOKEN
        n_tokens = in_file if cell.whole else min(n_tokens, in_file)
    if architecture is None:
        return None if cell.non_embedding_params is None else 2.0 * cell.non_embedding_params * n_tokens
    return flops(architecture, tokens_read([window], window)) / window * n_tokens
