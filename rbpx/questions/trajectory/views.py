"""Shows what happens along training: the law of each size."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import duckdb

from rbpx.config.options import Checkpoints
from rbpx.config.request import Request
from rbpx.display.view import Table, View, decimal, ends, magnitude, state, text, whole, with_ends
from rbpx.display.vocabulary import short, significant
from rbpx.errors import RbpxError, number_of
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Place
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.questions.trajectory.analysis import Trajectories, Trajectory, analyse, keep
from rbpx.questions.trajectory.figures import figures
from rbpx.runs.group import Group
from rbpx.runs.select.schedules import said_of_places
from rbpx.runs.select.ways import Cells, whole_trainings

_FEW: Final = 3  # numbers that are listed


def _of_law(of: Callable[[PowerLawFit], Estimate]) -> Callable[[Trajectory], Estimate | None]:
    return lambda law: None if law.fit is None else of(law.fit)


def _at(place: Place | None) -> Callable[[Trajectory], int]:
    """How many points of a law have this place in the schedule of the rate."""
    return lambda law: sum(law.runs[at].place is place for at in law.taken)


LAWS: Final = View[Trajectory](
    "laws",
    text("law", "law", lambda law: law.trained.title),
    text("size", "size", lambda law: law.name),
    magnitude("S", "S", lambda law: law.S, spare=4),
    whole("points", "n_points", lambda law: len(law.taken), spare=1),
    ends("D_least D_greatest", lambda law: (law.D[0], law.D[-1]), short, "D", spare=2),
    magnitude("from D", "D_first", lambda law: None if law.after is None else law.after.D),
    with_ends("β", "beta", _of_law(lambda fit: fit.exponent)),
    with_ends("E", "E", _of_law(lambda fit: fit.offset), ends_spare=3),
    with_ends("B", "B", _of_law(lambda fit: fit.constant), lambda value: significant(value, 4), spare=6),
    decimal("R²", "r2", lambda law: None if law.fit is None else law.fit.r2, 3, spare=5),
    state(lambda law: law.status),
)  # fmt: skip
SCHEDULES: Final = View[Trajectory](
    "schedules",
    text("size", "size", lambda law: law.name),
    whole("states", "n_states", lambda law: len(law.D)),
    whole("points", "n_points", lambda law: len(law.taken)),
    whole("ends of decays", "n_ends", _at(Place.end)),
    whole("constant rate", "n_constant", _at(Place.constant), spare=2),
    whole("unknown", "n_unknown", _at(None), spare=3),
    whole("in a decay", "n_middle", lambda law: law.n_left_out.get(Place.middle, 0), "left out; no points of a law"),
    text("D of points", "D_points", lambda law: _few([law.D[at] for at in law.taken]), spare=1),
)


def _few(places: Sequence[float]) -> str:
    """At most three numbers, or the first and the last with how many."""
    if len(places) <= _FEW:
        return ", ".join(map(short, places))
    return f"{short(places[0])} to {short(places[-1])}"


def _once(of: Trajectories) -> list[Trajectory]:
    """One quantity of each training."""
    return list({law.name: law for law in reversed(of.laws)}.values())[::-1]


@one_by_one
def tables(of: Trajectories) -> list[Table]:
    """The laws of a group, and which states are points."""
    note = (
        "y = E + B·D^−β from the first D that follows it (F tests at 1 %, or warm_up=); intervals assume that "
        "checkpoints scatter independently."
    )
    about = of.group.title
    scheduled = [law for law in _once(of) if law.is_scheduled]
    found = (
        LAWS.table("Laws in training tokens", of.laws, about, note=note),
        SCHEDULES.table("Which states are points, by the schedule of the rate", scheduled, about),
    )
    return [table for table in found if table.rows]


@one_by_one
def sentences(of: Trajectories) -> Iterator[str]:
    """How many trainings have several points, and what is left out."""
    left_out = {"finished models": of.group.n_other, "checkpoints with the weights of another": of.group.n_same}
    named = ", ".join(f"{n} {what}" for what, n in left_out.items() if n)
    n_trainings = number_of(len({law.name for law in of.laws}), "training")
    yield f"{n_trainings} with several points{f'; left out: {named}' if named else ''}."
    scheduled = [law for law in _once(of) if law.is_scheduled]
    if scheduled:
        counts = Counter[Place]()
        for law in scheduled:
            counts.update(law.n_left_out)
        yield from said_of_places([law.runs[at] for law in scheduled for at in law.taken], counts)


def select(connection: duckdb.DuckDBPyConnection, request: Request, cells: Cells = None) -> Sequence[Group]:
    """Whole trainings, raw checkpoints rather than the finished models beside them.

    Raises:
        RbpxError: one point of each training is asked for.
    """
    if request.checkpoints is Checkpoints.last:
        raise RbpxError("checkpoints=last keeps one point of each training, and this verb needs several; drop it")
    return whole_trainings(connection, request, cells, raw=True)


QUESTION = of_parts(each(analyse), keep, tables, sentences, figures, select=select)
