"""Up to which k the law stands, and the noise that ends it."""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    order=110,
    summary="up to which k the law stands, and the noise that ends it",
    help="""\
Fits -ln RBP_k = C S^-alpha at every k up to the vocabulary (arXiv 2510.20387, section 3.3, figure 6) and sets
beside it the noise of a small count of misses: binomial, and from the choice of documents. The law stands up to
the largest k whose alpha is told from 0, and every smaller k with it.""",
    examples=("python -m rbpx regimes dataset=pydoc", "python -m rbpx regimes k='[1,10,100,1000]' --format json"),
    title="How far k reaches",
    sizes=3,
)
