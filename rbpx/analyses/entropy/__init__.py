"""Cross-entropy decomposed by rank, with a law for each term.

CE = H(P) + KL(P || Q) - ln(sum S): error-entropy, self-alignment and confidence (arXiv 2510.04067) of each run,
with the share of each term and how it changes with S. H(P) of counted ranks is biased down: a jackknife over
documents removes part of the bias, an extrapolation from halves and quarters of the documents tends to
overcorrect. Where the two differ by less than the standard error, what is left is noise. The source counts
ranks strictly: compare with ties=optimistic.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="closure",
    examples=("python -m rbpx entropy dataset=pydoc", "python -m rbpx entropy ties=optimistic --format json"),
    title="Cross-entropy taken apart",
    sizes=1,
    draws=True,
    in_report=True,
    tokens=True,
    keys=("ties", "resamples", "seed", "axis"),
)
