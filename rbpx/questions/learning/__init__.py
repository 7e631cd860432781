"""Which tokens improve along an axis, and when each is learned.

Shows for each token id the mean slope of its nats on ln x, with an interval over documents, and its share of the
improvement in cross-entropy; then the tokens that got worse. csv and json have all.

From hits (rank at most k) each token has a history: never, always, learned (a miss that became a lasting hit),
forgotten, or unstable (changed more than once). The spectrum of the times of learned tokens is compared with RBP_k.
"""

from rbpx.config.keys.laws import Along, Counted
from rbpx.config.keys.output import Drawn
from rbpx.config.keys.tasks import Listed
from rbpx.questions.registry import Analysis


class LearningKeys(Listed, Counted, Along, Drawn):
    """Keys of learning."""


ANALYSIS = Analysis(
    place=210,
    theme="tokens",
    examples=(
        "python -m rbpx learning axis=D variant=raw dataset=pydoc",
        "python -m rbpx learning dataset=pydoc least=50 k=10 --format csv",
        "python -m rbpx learning axis=D size=25k --format json",
    ),
    plain=(
        *("kind", "source", "family", "dataset", "variant", "revision", "k", "text", "token_id", "n_tokens"),
        *("slope", "slope_lo", "slope_hi", "smallest_nats", "largest_nats", "smallest_rbp"),
        *("largest_rbp", "share", "trend", "x", "learned", "status", "ties", "axis"),
    ),
    kinds=("token", "point", "tokens", "group"),
    title="When tokens are learned",
    sizes=3,
    draws=True,
    tokens=True,
    across=True,
)
