"""Cross-entropy decomposed by rank, with a law for each term.

CE = H(P) + KL(P || Q) - ln(sum S): shows error-entropy, self-alignment and confidence (arXiv 2510.04067) and the law of
each; --details adds the terms at each size and their shares.

H(P) of counted ranks is biased down: a jackknife over documents removes part of the bias, an extrapolation from halves
and quarters of the documents tends to overcorrect. The source counts ranks strictly, which is ties=optimistic.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    examples=("python -m rbpx entropy dataset=pydoc", "python -m rbpx entropy ties=optimistic --format json"),
    title="Cross-entropy taken apart",
    sizes=1,
    draws=True,
    tokens=True,
    keys=("ties", "resamples", "seed", "axis"),
)
