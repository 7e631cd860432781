"""Figures and sentences of loss-to-loss curves, shared by fit and predict (arXiv 2411.12925, figure 1)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rbpx.display.chart.figure import Figure, Mark, Origin, Rows, Scale, Undrawn, line
from rbpx.display.chart.laws import series_figure
from rbpx.display.view import Value
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.losses.calibration import Calibration
from rbpx.laws.losses.curve import LossCurve
from rbpx.laws.prediction.verdict import SIGNIFICANT
from rbpx.runs.points.losses import Pairs


def families_sentence(pairs: Pairs, p: float) -> str:
    """Says whether the families share one curve, by the p-value of the test."""
    share = "do not share" if p < SIGNIFICANT else "may share"
    return f"{pairs.title}: the families {share} one curve (p = {p:.2g})."


def calibration_line(
    pairs: Pairs,
    family: str | None,
    calibration: Calibration | None,
    x: Sequence[float],
    curve: LossCurve | None = None,
) -> Rows:
    """Returns points of a calibration between the least and the greatest x, with the 95 % band of new models.

    With `curve` the line is that curve, in the same band. Empty without a calibration.
    """
    if calibration is None:
        return []
    rows, scatter = list[dict[str, Value]](), pairs.scatter(calibration, family)
    for at, y in calibration.along(min(x), max(x)):
        if curve is not None:
            y = replace(y, value=float(np.exp(curve.ln_at(np.log([at])))[0]))
        y = pairs.as_y(y, scatter)
        rows.append({"series": family or pairs.families[0], "x": at, "y": y.value, "lo": y.lo, "hi": y.hi})
    return rows


def loss_figure(
    pairs: Pairs,
    lines: Rows,
    predictions: Sequence[tuple[str, float, Estimate]],
    says: str,
    caption: str,
    origin: Origin,
) -> Figure | Undrawn:
    """Draws one quantity against another: measured models, predictions (series, x, y), and lines with bands."""
    name, title = f"losses-{pairs.key.replace('_', '-')}", f"{pairs.title} against {pairs.x_title}"
    if not len(pairs.x_N):
        return Undrawn(name, title, "No model has both.")
    measured = zip(pairs.family_N, pairs.x_N.tolist(), pairs.y_N.tolist(), strict=True)
    rows = [*((family, x, Estimate(y)) for family, x, y in measured), *predictions]
    under = [Mark("band", lines), line(lines)] if lines else []
    says = f"{pairs.title} of {len(pairs.x_N)} models against {pairs.x_title}; {says}."
    x, y = Scale("x", pairs.x_title), Scale("y", pairs.title)
    return series_figure(name, title, rows, x, y, (says, caption), origin, under)
