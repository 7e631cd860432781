"""Whether the exponents of cross-entropy and -ln RBP_k agree, and those of families on one text.

Compares the exponents of the laws in S of each family and text: the exponent of -ln RBP_1 minus that of cross-entropy,
from the law of their ratio, so that what both share cancels; and how alpha of -ln RBP_k changes with ln k up to
k = 100. Then gives the mean of both over all families and texts, with an interval for other families, texts and models:
a model that is off its law on one text is so on the others, so texts of the same models are not independent. Where
tokens are known, gives the same for the tokens that improve with size by `learning`, and for all others. With a file
of published slopes (columns dataset, family, k (a number or CE) and slope), compares these instead.

Families that were measured alike on one text (protocol, dtype, source) also get each law with an exponent that they
share and constants of their own, y = C_f S^-alpha, and y = E + C_f S^-alpha with a shared E, beside their own exponents
and the test that these are equal. Families that were trained alike err alike at the same size: `rho` is the mean
correlation of their residuals, `worth` the number of independent families that they amount to, and the interval counts
what they share at a size once. Where two families have the same sizes (two trainings of one shape, seeds, reruns),
their difference is pure scatter, and the law is tested against it: misfit that all trainings share is not scatter, and
more models do not average it out. Elsewhere the curvature and the runs of the residuals are tested. Narrow with family=
or source= to the families that belong together. Kept in `fits` as law pooled, the quantity in params.loss.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="regimes",
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
