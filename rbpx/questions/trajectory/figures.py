"""Draws quantities against D with their laws along training."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Chart, Figure, Origin, Rows, Scale, drawn, line, points, scale_of, spread
from rbpx.display.view import Column, View, magnitude, text
from rbpx.display.vocabulary import headline, short
from rbpx.laws.names import Axis
from rbpx.laws.predict.prediction import along
from rbpx.questions.question import one_by_one
from rbpx.questions.trajectory.analysis import Trajectories, Trajectory
from rbpx.runs.origin import from_fits

_MOST_LAWS: Final = 2
_STEPS: Final = 40
_Point = tuple[str, float, float]  # size, D, value
_SIZE: Final[Column[_Point]] = text("size", "size", lambda point: point[0])
_D: Final[Column[_Point]] = magnitude("D", "D", lambda point: point[1])


@one_by_one
def figures(of: Trajectories, fit_ids: Sequence[str]) -> Iterator[Figure]:
    """Draw cross-entropy and -ln RBP at the smallest k along training."""
    origin = from_fits(fit_ids, of.group)
    kinds = sorted(dict.fromkeys((law.trained.law, law.trained.k) for law in of.laws), key=lambda kind: headline(*kind))
    for kind in kinds[:_MOST_LAWS]:
        yield _trajectories([law for law in of.laws if (law.trained.law, law.trained.k) == kind], origin)


def _trajectories(of_kind: Sequence[Trajectory], origin: Origin) -> Figure:
    laws = spread(of_kind, MOST_SERIES)
    trained, what = laws[0].trained, laws[0].trained.title
    rows = [(of.name, D, trained.sign * y) for of in laws for D, y in zip(of.D, of.y, strict=True)]
    curves: Rows = [
        {"size": of.name, "D": at.S, "y": trained.sign * at.y}
        for of in laws
        if of.fit is not None and of.fit.alpha is not None
        for at in along(of.fit, _STEPS)
    ]
    falls = [f"{of.name} from {short(trained.sign * of.y[0])} to {short(trained.sign * of.y[-1])}" for of in laws]
    view = View(f"{trained.law}{trained.k or ''}", (_SIZE, _D, magnitude(what, "y", lambda point: point[2])))
    y = Scale("y", what, log=trained.sign == 1)
    marks = (*([line(curves)] if curves else []), points())
    return drawn(
        view.table(f"{what} along training", rows),
        Chart(scale_of(Axis.D), y, marks, "size", "size", height=320),
        f"{what}: {'; '.join(falls)}.",
        "Points: what was measured or imported. Lines: y = E + B·D^−β from the end of the warm-up.",
        origin,
    )
