"""How the median rank of the true token falls with size."""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    order=185,
    summary="how the median rank of the true token falls with size",
    help="""\
Half of all tokens have a rank of at most the median. Fits median = C S^-alpha to the runs of each group, by least
squares of logarithms, and keeps the law in `fits` under the name median_rank.""",
    examples=("python -m rbpx medians dataset=pydoc", "python -m rbpx medians ties=mid --format csv"),
    title="The median rank",
    sizes=3,
    tokens=True,
    keys=("ties",),
)
