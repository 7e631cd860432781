"""Pass@k against k: how often k attempts at an item succeed, from probabilities or counts.

Shows pass@k, 1 - C(n - c, k) / C(n, k), at k= attempts, with intervals over items and samples.

--details adds its exponent by least squares and by the left tail of a beta distribution of p, pass@k predicted at a
hundred times the samples with a backtest, and laws in S. Where p of the items reaches down to 0 as p^(a-1), the share
that fails k attempts falls as k^-a (arXiv 2502.17578). p is the probability of the exact reference answer at
temperature 1, a lower bound where several answers are right. Or counts are imported, of any temperature: item,
n_samples and n_correct.
"""

from rbpx.config.keys.laws import Along, Counted
from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class AttemptsKeys(Counted, Along, Drawn):
    """Keys of attempts."""


ANALYSIS = Analysis(
    place=60,
    theme="tasks",
    examples=(
        "python -m rbpx attempts dataset=python_identifiers",
        "python -m rbpx attempts source=NAME k='[1,100,10000]'",
        "python -m rbpx attempts axis=D family=ladder --format csv",
    ),
    plain=(
        *("kind", "source", "family", "dataset", "variant", "revision", "size", "non_embedding_params"),
        *("training_tokens", "k", "n_items", "n_samples", "passes", "passes_lo", "passes_hi", "way", "how"),
        *("alpha", "alpha_lo", "alpha_hi", "b", "status", "ties", "fit_id"),
    ),
    title="Attempts",
    draws=True,
    small=True,
    lacking="attempts looks at items, and store={store} has none; measure some, as of dataset=python_identifiers, "
    "or import counts: python -m rbpx import FILE.csv source=NAME, with columns item, n_samples and n_correct",
)
