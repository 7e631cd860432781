"""Tasks in two steps on a terminal: success against size with the forecast, and against the feature."""

from collections.abc import Sequence

import numpy as np

from rbpx.analyses.downstream.analysis import Downstream
from rbpx.analyses.downstream.curves import Curves, best_of, curves_of
from rbpx.display.names import law_name
from rbpx.display.plot.axes import SIZE, Axis
from rbpx.display.plot.canvas import Floats, Series
from rbpx.display.plot.terminal import print_plot
from rbpx.display.spread import spread
from rbpx.display.tables import console

_MOST = 8  # tasks of a family
_SUCCESS = Axis("success", log=False)


def show(results: Sequence[Downstream]) -> None:
    """Plot each task by the feature that predicts it best."""
    for result in results:
        for task in spread([task for task in result.tasks if best_of(task) is not None], _MOST):
            steps = best_of(task)
            assert steps is not None, "it was chosen so"
            curves = curves_of(task, steps)
            title = f"{task.values.group.title}, {law_name(steps.values.name, steps.values.k)}"
            series = [Series("fitted", _floats(curves.S), _floats(curves.y)), *_forecast(curves)]
            if task.values.chance is not None and curves.S:
                ends = _floats([min(curves.S), *(each.S for each in curves.forecast)])
                level = np.full(2, task.values.chance)
                x_L = np.array([ends.min(), ends.max()])
                series.append(Series("chance", ends[:1], level[:1], x_L=x_L, y_L=level))
            print_plot(console(), f"{title}: forecast of success", series, SIZE, _SUCCESS)
            axis = Axis(law_name(steps.values.name, steps.values.k), log=False)
            points = [Series("fitted, sigmoid", _floats(curves.x), _floats(curves.y),
                             x_L=_floats(curves.x_curve), y_L=_floats(curves.y_curve))]  # fmt: skip
            own = [each for each in curves.forecast if each.feature is not None and each.actual.value is not None]
            if own:
                x_N, y_N = _floats([each.feature for each in own]), _floats([each.actual.value for each in own])
                points.append(Series("held out", x_N, y_N))
            print_plot(console(), f"{title}: step 2", points, axis, _SUCCESS)


def _forecast(curves: Curves) -> list[Series]:
    forecast, series = curves.forecast, []
    if forecast:
        S_N = _floats([each.S for each in forecast])
        y_N, lo_N, hi_N = (_floats([getattr(each.chained, end) for each in forecast]) for end in ("value", "lo", "hi"))
        series.append(Series("predicted, 95 %", S_N, y_N, lo_N=lo_N, hi_N=hi_N))
    known = [each for each in forecast if each.actual.value is not None]
    if known:
        series.append(Series("actual", _floats([e.S for e in known]), _floats([e.actual.value for e in known])))
    return series


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)
