"""Whether the exponents of cross-entropy and -ln RBP_k agree, and those of families on one text.

Compares exponents in S of each family and text: that of -ln RBP_1 minus that of cross-entropy, from the law of their
ratio, and how alpha of -ln RBP_k changes with ln k up to k = 100. The means over families and texts have intervals for
other families, texts and models. Where tokens are known, the same is given for the tokens that improve with size
(`learning`) and for the others. A file of published slopes (columns dataset, family, k (a number or CE) and slope) is
compared instead.

Families that were measured alike on one text also get laws with one exponent and constants of their own, with and
without one offset E, and a test that their exponents are equal. `rho` is the mean correlation of their residuals at one
size, `worth` the number of independent families that they amount to. Kept in `fits` as law pooled, the quantity in
params.loss. family= or source= chooses families that belong together.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    examples=(
        "python -m rbpx exponents model=ladder",
        "python -m rbpx exponents dataset=wikipedia family='[pythia,pythia-deduped]'",
        "python -m rbpx exponents FILE.csv",
    ),
    title="Whether exponents agree",
    sizes=3,
    draws=True,
    across=True,
    file="FILE.csv",
    keys=("k", "ties", "resamples", "seed"),
    lacking="exponents needs a family with cross-entropy and RBP_k, or two families with one of them on one text, "
    "at three sizes; store={store} has none",
)
