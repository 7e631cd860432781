"""Whether the exponents of cross-entropy and -ln RBP_k agree, over families and texts.

Compares the exponents of the laws in S of each family and text: the exponent of -ln RBP_1 minus that of cross-entropy,
from the law of their ratio, so that what both share cancels; and how alpha of -ln RBP_k changes with ln k up to
k = 100. Then gives the mean of both over all families and texts, with an interval for other families, texts and models:
a model that is off its law on one text is so on the others, so texts of the same models are not independent. Where
tokens are known, gives the same for the tokens that improve with size by `learning`, and for all others. With a file
of published slopes (columns dataset, family, k (a number or CE) and slope), compares these instead.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="regimes",
    examples=(
        "python -m rbpx exponents model=ladder",
        "python -m rbpx exponents FILE.csv",
    ),
    title="Whether exponents agree",
    sizes=3,
    across=True,
    file="FILE.csv",
    keys=("k", "ties", "resamples", "seed"),
    lacking="exponents needs a family with cross-entropy and RBP_k at three sizes; store={store} has none",
)
