"""How RBP_k grows with k, and what a larger k is worth in size.

Fits -ln RBP_k = C k^-alpha_k to each model (arXiv 2510.20387, appendix B). With the law in S this says how many times
larger a model must be to do at k = 1 what this one does at k = 10.

k is 1 to 100 unless k= says otherwise (table 1). Where the points curve, the law is marked `bends` and the rate is
local. One law for all k and sizes, C k^-kappa S^-alpha, follows, with the range of k over which it is not rejected;
AIC, BIC and backtests compare it with its rivals.
"""

from rbpx.config.keys.laws import Along, Counted, Methods
from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class KlawKeys(Counted, Methods, Along, Drawn):
    """Keys of klaw."""


ANALYSIS = Analysis(
    place=40,
    examples=("python -m rbpx klaw", "python -m rbpx klaw dataset=stdlib k='[1,2,5,10]' --format csv"),
    plain=(
        *("law", "source", "family", "dataset", "variant", "revision", "size", "non_embedding_params"),
        *("training_tokens", "method", "n_points", "C", "alpha", "alpha_lo", "alpha_hi", "r2", "factor", "rate"),
        *("residual_autocorrelation", "status", "ties", "axis", "fit_id"),
    ),
    title="The law in k",
    draws=True,
)
