"""Quantities against training tokens at each size.

For each size with several checkpoints (raw ones if there are any, without the finished models) or trainings of several
lengths, shows each quantity against its training tokens D, with the law y = E + B D^-beta after a warm-up, which F
tests find, or warm_up= sets. The law needs five points after it; its intervals assume that checkpoints scatter
independently. A terminal shows cross-entropy and -ln RBP at the smallest k. Laws are stored in `fits`. `learning
axis=D` follows each token of the text.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="forecasts",
    examples=(
        "python -m rbpx trajectory",
        "python -m rbpx trajectory size=25k k=1 warm_up=1e6",
        "python -m rbpx trajectory source=them laws='[cross_entropy]'",
    ),
    title="Along training",
    sizes=3,
    draws=True,
    trainings=True,
    chooses_checkpoints=False,
    keys=("k", "ties", "resamples", "seed", "laws", "warm_up", "last"),
    lacking="no size in store={store} has two points along training; measure checkpoints (model.revision=...), or "
    "import a table with a column D: python -m rbpx import FILE source=NAME",
)
