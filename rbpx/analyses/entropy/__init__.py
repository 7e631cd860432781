"""Cross-entropy taken apart by rank, a law for each term."""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    order=180,
    summary="cross-entropy taken apart by rank, a law for each term",
    help="""\
CE = H(P) + KL(P || Q) - ln(sum S), error-entropy, self-alignment and confidence (arXiv 2510.04067), for each
run, with the share of each term and how it changes with S. H(P) of counted ranks is too small; a jackknife over
documents takes away a part of that, an extrapolation over halves and quarters of them tends to take away too
much. Where the two differ by less than the standard error, what is left is noise. Ranks are strict in the
source: compare with ties=optimistic.""",
    examples=("python -m rbpx entropy dataset=pydoc", "python -m rbpx entropy ties=optimistic --format json"),
    title="Cross-entropy taken apart",
    sizes=1,
    tokens=True,
)
