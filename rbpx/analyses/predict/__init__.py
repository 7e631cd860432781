"""What the laws predict for other sizes, and how right they were."""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    order=130,
    summary="what the laws predict for other sizes, and how right they were",
    help="""\
Fits every law to the smallest sizes and compares it with the larger ones, on the same tokens, so that laws can
be ranked by how well they predict. Then extrapolates each to the sizes S with a 95 % interval for a new model,
and says how far outside the fitted sizes that is.""",
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
