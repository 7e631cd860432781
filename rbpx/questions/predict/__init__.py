"""What the laws predict for other sizes, and how right they were.

Predicts what a new model of size S would show on the same text, with a 95 % interval and its warnings, averaged over
forms by how well they fit. Backtests predict the larger sizes from the smallest; laws stand in the order of how well
they predict.

Forms are a power law, one with an offset and one that bends. method= asks for laws by one method too, which pass only
where their own backtests hold; --details has each form and method. With D= beside S=, surfaces are fitted to all
trainings whose tokens are known (see `surface`) and averaged; where size and tokens vary together, a law in one of
them. Weights of runs count there and in the law by each method.

register=NAME is for one family on one text and models that are not measured on it yet; `forecasts` scores it.
axis=QUANTITY@TEXT, as axis=cross_entropy@stdlib, predicts by regression on what a model shows on that text: x=, or
models that are on that text and not on this one.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    theme="predict",
    examples=(
        "python -m rbpx predict",
        "python -m rbpx predict dataset=stdlib S='[1e7,1e8]' method='[ols,offset]'",
        "python -m rbpx predict S='[1e9,7e9]' D='[2e11,2e12]' --format json",
        "python -m rbpx predict model=ladder dataset=stdlib S=1e7 register=before_the_10m",
        "python -m rbpx predict dataset=pydoc axis=cross_entropy@stdlib x=2.9",
    ),
    plain=(
        *(
            "kind",
            "law",
            "k",
            "source",
            "family",
            "dataset",
            "variant",
            "revision",
            "S",
            "D",
            "x",
            "dataset_b",
            "method",
        ),
        *("n_fitted", "y", "lo", "hi", "beyond", "measured", "error", "held", "status", "ties", "fit_id"),
    ),
    kinds=("prediction", "backtest", "none"),
    title="Backtest and prediction",
    sizes=3,
    draws=True,
    keys=(
        *("k", "axis", "x", "S", "D", "joint", "size_by", "last", "ties", "resamples", "seed", "laws", "method"),
        *("register", "delta", "objective", "E", "pin", "frontier", "outliers"),
    ),
)
