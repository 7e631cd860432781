"""What the laws predict for other sizes, and how right they were.

Predicts what a new model of size S would show on the same text, with a 95 % interval and the objections to it: over
forms (a power law, one with an offset, one that bends), each weighted by how well it fits, and with --details by each
method too. Backtests fit the smallest sizes and compare with the larger ones, on the same tokens: laws are in order
of how well they predict.

With D= beside S=, the points are (S, D): surfaces in size and tokens are fitted to all trainings whose tokens are
known (see surface), and the combined answer is over their forms; where size and tokens vary together, it is a law in
one of them near the line of the runs. Intervals are widened where backtests missed.

Of sweeps (see surface) frontier=true takes the best of the runs of each size and as many tokens. Weights of runs count
in predictions at S and D, and in the law by each method, but not in the combined answer along S.

With joint=true the intervals of the combined answers for all points of one law, and those of single forms, hold at once
in 95 %: runs of one budget err together, and each by itself may miss. Each of T is then one of 1 - .05 / T.

With register=NAME the combined answers are written into the store as a forecast, which nothing changes afterwards:
for one family on one text, and only for models that are not measured on it yet. `forecasts` scores it once they are.

axis=QUANTITY@TEXT, as axis=cross_entropy@stdlib, predicts without S: from what a model shows on that text, typed as
x= or of models that are on that text and not on this one. It is a regression of y on x as measured, over forms.
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
