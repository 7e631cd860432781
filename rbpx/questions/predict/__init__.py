"""What the laws predict for other sizes, and how right they were.

Predicts what a new model of size S scores on the same text, with a 95 % interval and warnings. The prediction averages
over forms (a power law, one with an offset, one that bends), each weighted by how well it fits; --details adds those of
each method. Backtests fit the smallest sizes and predict the larger ones; laws are in order of how well they predict.

With D= and S= it predicts at points (S, D): it fits surfaces in size and tokens to all trainings with known tokens (see
surface) and averages over their forms; where size and tokens vary together, it uses a law in one of them near the line
of the runs. Intervals are widened where backtests missed.

For sweeps (see surface) frontier=true takes the best of the runs of each size and as many tokens. Weights of runs count
in predictions at S and D, and in the law by each method, but not in the average over forms along S.

With joint=true the intervals of the averaged predictions for all points of one law, and those of single forms, hold
together with 95 % probability (runs of one budget err together): each of T is one of 1 - .05 / T.

register=NAME writes the averaged predictions to the store as a forecast that never changes, for one family on one text
and only for models that are not measured on it yet. `forecasts` scores it once they are.

axis=QUANTITY@TEXT, as in axis=cross_entropy@stdlib, predicts without S: from what a model scores on that text, given as
x= or by models that are on that text and not on this one. It is a regression of measured y on x, averaged over forms.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="items",
    theme="predict",
    examples=(
        "python -m rbpx predict",
        "python -m rbpx predict dataset=stdlib S='[1e7,1e8]' method='[ols,offset]'",
        "python -m rbpx predict S='[1e9,7e9]' D='[2e11,2e12]' --format json",
        "python -m rbpx predict model=ladder dataset=stdlib S=1e7 register=before_the_10m",
        "python -m rbpx predict dataset=pydoc axis=cross_entropy@stdlib x=2.9",
    ),
    title="Backtest and prediction",
    sizes=3,
    draws=True,
    keys=(
        *("k", "axis", "x", "S", "D", "joint", "size_by", "last", "ties", "resamples", "seed", "laws", "method"),
        *("register", "delta", "objective", "E", "pin", "frontier", "outliers"),
    ),
)
