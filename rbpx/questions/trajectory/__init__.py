"""Quantities against training tokens at each size.

Shows each quantity against training tokens D for each size with several checkpoints (raw ones where there are any) or
trainings of several lengths, with the law y = E + B D^-beta after a warm-up, which F tests find or warm_up= gives. The
law needs five points after it; its intervals take checkpoints to scatter independently. A terminal shows cross-entropy
and -ln RBP at the smallest k. Laws are kept in `fits`.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
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
