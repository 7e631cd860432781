"""Divides the cells of a sweep among machines that know nothing of each other: the same on all, disjoint, balanced.

Each machine divides by itself. So the shards depend on the request alone, on the architectures of its models and on its
windows, and on nothing that may differ between machines or change while they measure: not on the store, on a hub's
cache, or on a text that may have to be downloaded.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rbpx.config.grid import Cell, cells
from rbpx.config.keys.runs import Shard
from rbpx.config.request import Request
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.measure.plan.tokens_read import BYTES_PER_TOKEN
from rbpx.models.architecture import declared_architecture
from rbpx.models.costs import flops, tokens_read


@dataclass(frozen=True)
class Load:
    """The part of a sweep that one machine measures.

    Attributes:
        places: the places of its cells in the grid of each request of the sweep, in their order.
        cost: FLOPs that they take at most, by the request alone.
        n_cells: number of cells.
    """

    places: tuple[tuple[int, ...], ...]
    cost: float
    n_cells: int


@dataclass(frozen=True)
class _Item:
    """A cell to be placed: the number of its request, its place in that request's grid, its model and its cost."""

    request: int
    place: int
    model: tuple[object, ...]
    cost: float


def places_in(requests: Sequence[Request], shard: Shard | None) -> list[tuple[int, ...] | None]:
    """The places of the cells of a shard in the grid of each request of a sweep; None where all of them are meant."""
    if shard is None or shard.number is None:
        return [None] * len(requests)
    return list(divide(requests, shard.n_shards)[shard.number - 1].places)


def divide(requests: Sequence[Request], n_shards: int) -> list[Load]:
    """Divide a sweep into shards.

    The costliest cells are placed first: into a shard that has their model already, as long as that stays below an
    equal share, else into the shard with the least to do. So no shard has more than an equal share and one cell.

    Args:
        requests: of all jobs of the sweep, each with a model and a dataset.
        n_shards: number of shards.

    Raises:
        RbpxError: a request is incomplete, or a model in a folder is not on this machine.
    """
    items = sorted(_items(requests), key=lambda item: (-item.cost, item.request, item.place))
    share = sum(item.cost for item in items) / n_shards
    costs: list[float] = [0.0] * n_shards
    held: list[list[_Item]] = [[] for _ in range(n_shards)]
    where: dict[tuple[object, ...], list[int]] = {}
    for item in items:
        with_model = [at for at in where.get(item.model, []) if costs[at] + item.cost <= share]
        at = min(with_model or range(n_shards), key=lambda at: (costs[at], at))
        costs[at] += item.cost
        held[at].append(item)
        where.setdefault(item.model, []).append(at)
    loads = []
    for items_of, cost in zip(held, costs, strict=True):
        places = [tuple(sorted(i.place for i in items_of if i.request == n)) for n in range(len(requests))]
        loads.append(Load(tuple(places), cost, len(items_of)))
    return loads


def _items(requests: Sequence[Request]) -> list[_Item]:
    """The cells of a sweep, each once."""
    known: dict[object, tuple[int, int, Cell, float | None]] = {}
    for number, request in enumerate(requests):
        for place, cell in enumerate(_named(request)):
            identity = (cell, repr(request.dataset))
            if identity not in known:
                known[identity] = (number, place, cell, _cost(cell, request))
    costs = [cost for *_, cost in known.values() if cost is not None]
    typical = median(costs) if costs else 1.0
    return [
        _Item(number, place, (cell.model, cell.revision, cell.dtype), typical if cost is None else cost)
        for number, place, cell, cost in known.values()
    ]


def _named(request: Request) -> list[Cell]:
    """The grid of a request with neither its text nor the contents of its models: the same cells in the same order."""
    named = request if request.protocol is not None else request.but(protocol=ProtocolConfig())
    return cells(named, None, defaultdict(lambda: None))


def _cost(cell: Cell, request: Request) -> float | None:
    """FLOPs of a cell if all of its documents fill a window; None for a hub's model of unknown shape and size."""
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
