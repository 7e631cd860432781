"""Cross-entropy decomposed by rank, with a law for each term.

CE = H(P) + KL(P || Q) - ln(sum S): shows error-entropy, self-alignment and confidence (arXiv 2510.04067) and the law of
each; --details adds the terms at each size and their shares.

H(P) of counted ranks is biased down: a jackknife over documents removes part of the bias, an extrapolation from halves
and quarters of the documents tends to overcorrect. The source counts ranks strictly, which is ties=optimistic.
"""

from rbpx.config.keys.laws import Along, Resampled, TieRule
from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class EntropyKeys(TieRule, Resampled, Along, Drawn):
    """Keys of entropy."""


ANALYSIS = Analysis(
    place=160,
    examples=("python -m rbpx entropy dataset=pydoc", "python -m rbpx entropy ties=optimistic --format json"),
    plain=(
        *("kind", "source", "family", "dataset", "variant", "revision", "size", "non_embedding_params"),
        *("training_tokens", "law", "cross_entropy_nats", "error_entropy_nats"),
        *("self_alignment_nats", "confidence_nats", "error_entropy_jackknife_nats", "C", "alpha"),
        *("alpha_lo", "alpha_hi", "r2", "status", "ties", "axis", "fit_id"),
    ),
    title="Cross-entropy taken apart",
    sizes=1,
    draws=True,
    tokens=True,
)
