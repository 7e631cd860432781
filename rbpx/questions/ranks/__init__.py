"""The distribution of the ranks: the lognormal, its rivals, and whether all laws follow from one.

Fits to the ranks of each run the published lognormal (arXiv 2510.20387, appendix D) and five distributions over 1..V,
and says whether the ranks are lognormal. From four sizes on, it tests whether one distribution, its parameters laws in
S, gives all the laws.

Fits are by maximum likelihood, the published one to ranks from 2 up. --details adds mu and sigma against S, and the
laws that a distribution implies for RBP_k and cross-entropy. Each of three forms (lognormal, truncated power law, and
easy tokens of geometric ranks beside hard ones of a power law) is fitted to several sizes, and derives -ln RBP_k, H(P)
and cross-entropy of a larger one. The form that predicts best below the largest size is chosen; the largest judges: a
form closes the laws if each measured value lies within the interval of its prediction, for RBP_k up to the largest k
whose law stands.
"""

from rbpx.config.keys.laws import Counted
from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class RanksKeys(Counted, Drawn):
    """Keys of ranks."""


ANALYSIS = Analysis(
    place=150,
    examples=("python -m rbpx ranks dataset=pydoc", "python -m rbpx ranks k='[1,10,100]' ties=optimistic --format csv"),
    plain=(
        *("kind", "source", "family", "dataset", "variant", "revision", "size", "non_embedding_params"),
        *("distribution", "law", "k", "aic", "distance", "mu", "sigma", "alpha", "alpha_lo", "alpha_hi", "level"),
        *("closes", "error", "status", "ties", "fit_id"),
    ),
    kinds=("distribution", "closure", "form"),
    title="The distribution of the ranks",
    on_card=True,
    draws=True,
    tokens=True,
)
