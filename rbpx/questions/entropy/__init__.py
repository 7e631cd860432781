"""Cross-entropy decomposed by rank, with a law for each term.

CE = H(P) + KL(P || Q) - ln(sum S): gives error-entropy, self-alignment and confidence (arXiv 2510.04067) of each run,
and the law of each term; --details has the terms at each size, and their shares of CE. H(P) of counted ranks is biased
downwards: a jackknife over documents removes part of the bias, and an extrapolation from halves and quarters of the
documents tends to overcorrect. If both differ by less than the standard error, the remaining bias is within the noise.
The source counts ranks strictly, which is ties=optimistic.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="ranks",
    examples=("python -m rbpx entropy dataset=pydoc", "python -m rbpx entropy ties=optimistic --format json"),
    title="Cross-entropy taken apart",
    sizes=1,
    draws=True,
    tokens=True,
    keys=("ties", "resamples", "seed", "axis"),
)
