"""What the laws predict for other sizes, and how right they were."""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    order=130,
    summary="what the laws predict for other sizes, and how right they were",
    help="""\
What a new model of size S would show on the same text, with a 95 % interval, and what speaks against it. The
answer to take is the combined one: a prediction over forms (a power law, one with an offset, one that bends),
weighted by how well each fits. Beside it stands the law by each method. Backtests fit the smallest sizes and
compare with the larger ones, on the same tokens, so that laws can be ranked by how well they predict.""",
    examples=("python -m rbpx predict", "python -m rbpx predict dataset=stdlib S='[1e7,1e8]' method='[ols,offset]'"),
    title="Backtest and prediction",
    sizes=3,
    keys=(
        "k",
        "S",
        "ties",
        "resamples",
        "laws",
        "method",
    ),
)
