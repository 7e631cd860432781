"""Predictions that were registered before their model was measured, and how they turned out.

Lists what `predict ... register=NAME` wrote into the store, and scores the predictions whose model was measured since,
alike in text, protocol and precision: the relative error, the error in units of the sd that the interval stands for,
whether the interval contains the measured value, and the interval score in ln y (its width, plus 40 times by how much
it missed; less is better). Then gives the share of intervals that held, with a 95 % interval in which each model
counts once, as its quantities err together. A model that was measured before the forecast was registered, as
`store merge` may bring in, is marked as too late and does not count. No command changes a
forecast, but it is a plain file: send it to someone, or commit it, to prove its time. `store verify` says where a run
that it rests on is another one by now.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="decide",
    theme="predict",
    examples=(
        "python -m rbpx forecasts",
        "python -m rbpx forecasts dataset=stdlib --format json",
    ),
    title="Forecasts",
    across=True,
    small=True,
    keys=("ties",),
    lacking="store={store} has no forecasts; predict with register=NAME makes one",
)
