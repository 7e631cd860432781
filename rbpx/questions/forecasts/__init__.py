"""Predictions that were registered before their model was measured, and how they turned out.

Lists what `predict ... register=NAME` wrote, and scores predictions whose model was measured since, alike in text,
protocol and precision: the relative error, the error in units of the interval's sd, whether the interval holds the
measured value, and its score.

The interval score in ln y is its width, plus 40 times by how much it missed; less is better. The share of intervals
that held counts each model once. A model that was measured before the registration is too late and does not count. A
forecast is a plain file: send it to someone, or commit it, to prove its time. `store verify` says which of its runs
changed since.
"""

from rbpx.config.keys.laws import TieRule
from rbpx.config.keys.output import QuestionKeys
from rbpx.questions.registry import Analysis


class ForecastsKeys(TieRule, QuestionKeys):
    """Keys of forecasts."""


ANALYSIS = Analysis(
    place=110,
    theme="predict",
    examples=(
        "python -m rbpx forecasts",
        "python -m rbpx forecasts dataset=stdlib --format json",
    ),
    plain=(
        *("kind", "forecast_id", "name", "registered_at", "source", "family", "dataset", "law", "k", "S"),
        *("D", "y", "lo", "hi", "size", "measured", "error", "in_sd", "outcome", "status", "coverage"),
        *("coverage_lo", "coverage_hi", "ties"),
    ),
    title="Forecasts",
    across=True,
    small=True,
    lacking="store={store} has no forecasts; predict with register=NAME makes one",
)
