"""Registers predictions as a forecast (register=NAME), a record of the store that never changes."""

import logging
import platform
from collections.abc import Sequence
from importlib import metadata

import duckdb

from rbpx.config.request import Request
from rbpx.errors import RbpxError, number_of
from rbpx.files.digest import digest
from rbpx.runs.group import Group
from rbpx.runs.select.sizes import BESIDE, NAMES, is_about, select_runs
from rbpx.runs.select.ways import Cells, in_size, whole_trainings
from rbpx.store.forecasts import refuse_known, register
from rbpx.store.store import Record, Store
from rbpx.version import __version__

__all__ = ["register_answers", "select", "targets_of"]

_LOGGER = logging.getLogger(__name__)
_COMPUTE = ("numpy", "scipy", "lmfit", "duckdb")


def targets_of(group: Group, request: Request) -> list[float]:
    """The sizes to predict: those asked for, by default ten times the largest."""
    return request.S or [10.0 * group.runs[-1].non_embedding_params]


def select(connection: duckdb.DuckDBPyConnection, request: Request, cells: Cells = None) -> Sequence[Group]:
    """One run a size, or whole trainings where D is given; refuses what cannot be registered before it is computed.

    Raises:
        RbpxError: several groups are meant, the name is taken, or such a model is measured already.
    """
    if request.D:
        groups = whole_trainings(connection, request, cells)
    else:
        groups = in_size(connection, request, cells, sizes=3, along=False, loss_to_loss=True)
    if request.register is None or not groups:  # without groups the question itself says why there are none
        return groups
    if len(groups) != 1:
        titles = "; ".join(group.title for group in groups)
        raise RbpxError(
            f"register={request.register} takes one family on one text, and there are {len(groups)}: {titles}; narrow "
            "them with family= and dataset="
        )
    refuse_known(request.register, Store(request.store).records("forecasts"))
    (group,) = groups
    everything = select_runs(connection, Request(store=request.store))
    points: list[tuple[float, float | None]] = [*request.points_to_predict()]
    for S, D in points or [(S, None) for S in targets_of(group, request)]:
        for run in everything:
            if is_about(group.names(), S, D, run, BESIDE):
                raise RbpxError(
                    f"register={request.register}: {run.family} {run.size} (S = {run.non_embedding_params:,}) is "
                    f"measured on {run.dataset} already, so this would be no forecast; choose another S, or drop "
                    "register="
                )
    return groups


def register_answers(name: str, group: Group, answers: Sequence[Record], store: Store) -> None:
    """Write the answers that have an interval to the store, and log the id of the forecast.

    Args:
        name: the name of the forecast.
        group: the runs that the answers rest on.
        answers: columns of `forecasts`, with the points that the law was fitted to.
        store: where it is kept.

    Raises:
        RbpxError: no answer has an interval, the name is taken, or the store cannot be written.
    """
    predictions = []
    for answer in answers:
        points = answer.pop("points")
        if None not in (answer["y"], answer["lo"], answer["hi"]):
            predictions.append(answer | {"points_hash": digest(points)})
    if not predictions:
        raise RbpxError(f"register={name}: no law of {group.title} gives an interval, so there is nothing to register")
    versions = {"rbpx": __version__, "python": platform.python_version()}
    versions |= {library: metadata.version(library) for library in _COMPUTE}
    facts = {fact: group.names()[fact] for fact in NAMES} | {"versions": versions}
    known = register(Store(store.name), name, facts, predictions)
    _LOGGER.info(
        f"registered {number_of(len(predictions), 'prediction')} as {known}; note this id, which stands for all that "
        "they say; rbpx forecasts scores them when the model is measured"
    )
