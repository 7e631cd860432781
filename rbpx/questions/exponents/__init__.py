"""Whether the exponents of cross-entropy and -ln RBP_k agree, for each family and text.

Shows the exponent in S of -ln RBP_1 minus that of cross-entropy, from the law of their ratio, and how alpha of -ln
RBP_k changes with ln k up to k = 100, with intervals over documents and models.
"""

from rbpx.config.keys.laws import Counted
from rbpx.config.keys.output import QuestionKeys
from rbpx.questions.registry import Analysis


class ExponentsKeys(Counted, QuestionKeys):
    """Keys of exponents."""


ANALYSIS = Analysis(
    place=30,
    examples=(
        "python -m rbpx exponents model=ladder",
        "python -m rbpx exponents dataset=wikipedia family='[pythia,pythia-deduped]'",
    ),
    plain=(
        *("source", "family", "dataset", "variant", "revision", "protocol", "dtype"),
        *("alpha_cross_entropy", "alpha_*", "difference", "difference_lo", "difference_hi", "drift"),
        *("drift_lo", "drift_hi", "ties"),
    ),
    title="Whether exponents agree",
    sizes=3,
    in_report=True,
    across=True,
    lacking="exponents needs a family with cross-entropy and RBP_k at three sizes; store={store} has none",
)
