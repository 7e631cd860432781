"""How fast N tokens in a row become right, measured and predicted.

p_{N,k} is the share of windows of N consecutive tokens whose ranks are all at most k; if tokens were independent, -ln
p_{N,k} = C N S^-alpha (arXiv 2510.20387, eqs. 6 to 8). Shows how many times as often windows are right.

--details adds for each k the law of each N, with the size at which RBP_k^N is one half by the law of RBP_k, and the law
of all N; for a single k also every window and a prediction corrected for dependence.
"""

from rbpx.config.keys.laws import Along, Counted, N
from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class EmergenceKeys(N, Counted, Along, Drawn):
    """Keys of emergence."""


ANALYSIS = Analysis(
    place=130,
    examples=("python -m rbpx emergence dataset=pydoc", "python -m rbpx emergence k=1 n='[1,2,5,10,50]' --format csv"),
    plain=(
        *("kind", "k", "n", "source", "family", "dataset", "variant", "revision", "size"),
        *("non_embedding_params", "training_tokens", "p", "p_lo", "p_hi", "n_windows", "p_independent"),
        *("C", "alpha", "alpha_lo", "alpha_hi", "r2", "status", "ties", "fit_id"),
    ),
    title="Emergence: N tokens in a row",
    sizes=3,
    draws=True,
)
