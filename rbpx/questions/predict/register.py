"""Writes predictions as a forecast (register=NAME), a record that never changes."""

import logging
import platform
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import metadata

import duckdb

from rbpx.config.keys.runs import Narrowing
from rbpx.errors import RbpxError, number_of
from rbpx.files.digest import digest
from rbpx.laws.names import OnText
from rbpx.laws.prediction.prediction import COMBINED
from rbpx.questions.predict import PredictKeys
from rbpx.runs.forecasts import BESIDE, NAMES, is_about
from rbpx.runs.group import By, Group
from rbpx.runs.select.groups import Cells
from rbpx.runs.select.groups import select as select_groups
from rbpx.runs.select.stored import select_runs
from rbpx.store.forecasts import refuse_known, register
from rbpx.store.store import Record, Store
from rbpx.version import __version__

_LOGGER = logging.getLogger(__name__)
_SAID = ("law", "k", "S", "D", "y", "lo", "hi", "beyond", "status", "weights", "fit_id")  # of a row
_COMPUTE = ("numpy", "scipy", "lmfit", "duckdb")


def targets_of(group: Group, request: PredictKeys) -> list[float]:
    """The requested sizes, by default ten times the largest."""
    return request.S or [10.0 * group.runs[-1].non_embedding_params]


def select(connection: duckdb.DuckDBPyConnection, request: PredictKeys, cells: Cells = None) -> Sequence[Group]:
    """Selects one run per size, whole trainings with D, or models on two texts; refuses a forecast that it cannot keep.

    Raises:
        RbpxError: a key needs D=, there are several groups, the name is taken, or such a model is measured already.
    """
    surface = [name for name in ("form", "unique_tokens") if request.typed[name] is not None]
    if surface and not request.D:
        raise RbpxError(f"{surface[0]}= is about surfaces in size and tokens; give D= beside S=")
    if isinstance(request.axis, OnText):
        from rbpx.runs.select.losses import select_pairs  # laws in size do not need it

        return select_pairs(connection, request, request.axis, cells)
    groups = select_groups(connection, request, cells, by=By.training if request.D else By.size, sizes=3)
    if request.register is None or not groups:  # without groups the question itself says why there are none
        return groups
    if len(groups) != 1:
        titles = "; ".join(group.title for group in groups)
        raise RbpxError(
            f"register={request.register} takes one family on one text, and there are {len(groups)}: {titles}; narrow "
            "them with family= and dataset="
        )
    refuse_known(request.register, Store(request.store).records("forecasts"))
    if request.unique_tokens:
        raise RbpxError(f"register={request.register} keeps no unique_tokens=; drop one of them")
    (group,) = groups
    points: list[tuple[float, float | None]] = [*request.points_to_predict()]
    points = points or [(S, None) for S in targets_of(group, request)]
    for run in select_runs(connection, Narrowing(store=request.store)):
        if any(is_about(group.names(), S, D, run, BESIDE) for S, D in points):
            raise RbpxError(
                f"register={request.register}: {run.family} {run.size} (S = {run.non_embedding_params:,}) is measured "
                f"on {run.dataset} already, so this would be no forecast; choose another S, or drop register="
            )
    return groups


def forecast_rows(rows: Iterable[Record], fit: Record, n_points: int, points: object) -> list[Record]:
    """The averaged answers of a law, with the runs of its row of `fits`."""
    rests_on = {"n_points": n_points, "run_ids": fit["run_ids"], "points_hash": digest(points)}
    answers = (row for row in rows if (row["kind"], row["method"]) == ("prediction", COMBINED))
    return [{name: row.get(name) for name in _SAID} | rests_on for row in answers]


def forecast_writer(
    request: PredictKeys, group: Group, of_laws: Iterable[Sequence[Record]]
) -> Callable[[Store], object] | None:
    """A function that writes a forecast (`Result.then`); None without `register`."""
    if request.register is None:
        return None
    return partial(_register, request.register, group, [row for own in of_laws for row in own])


def _register(name: str, group: Group, answers: Sequence[Record], store: Store) -> None:
    predictions = [each for each in answers if None not in (each["y"], each["lo"], each["hi"])]
    if not predictions:
        raise RbpxError(f"register={name}: no law of {group.title} gives an interval, so there is nothing to register")
    versions = {library: metadata.version(library) for library in _COMPUTE}
    versions |= {"rbpx": __version__, "python": platform.python_version()}
    facts = {fact: group.names()[fact] for fact in NAMES} | {"versions": versions}
    known = register(store, name, facts, predictions)
    _LOGGER.info(
        f"registered {number_of(len(predictions), 'prediction')} as {known}; note this id, which stands for all that "
        "they say; rbpx forecasts scores them when the model is measured"
    )
