"""The k at which the law holds, and the noise that ends it.

Fits -ln RBP_k = C S^-alpha at every k up to the vocabulary (arXiv 2510.20387, section 3.3, figure 6) and compares its
change with the noise of few misses.

The noise is binomial, and from document sampling. The law holds at a k where alpha is significantly above 0 and no
check of the form fails.
"""

from rbpx.config.keys.laws import Along, Counted, Methods
from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class RegimesKeys(Counted, Methods, Along, Drawn):
    """Keys of regimes."""


ANALYSIS = Analysis(
    place=20,
    examples=("python -m rbpx regimes dataset=pydoc", "python -m rbpx regimes k='[1,10,100,1000]' --format json"),
    plain=(
        *("law", "k", "source", "family", "dataset", "variant", "revision", "method", "n_points", "C", "alpha"),
        *("alpha_lo", "alpha_hi", "r2", "backtest_error", "n_misses", "signal", "binomial_sd"),
        *("document_sd", "status", "ties", "axis", "fit_id"),
    ),
    title="How far k reaches",
    sizes=3,
    draws=True,
)
