"""The distribution of the ranks: the lognormal, its rivals and the laws that follow.

Fits the published lognormal (ranks from 2 up, arXiv 2510.20387, appendix D) and seven distributions over 1..V
to the ranks of each run by maximum likelihood: lognormal, power law, truncated power law, Zipf-Mandelbrot,
Weibull, negative binomial, and a lognormal with extra mass at rank 1. Shows how far each is behind the best,
mu and sigma against S, and the laws that a distribution implies for RBP_k and cross-entropy beside the measured
ones.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="gaps",
    examples=("python -m rbpx ranks dataset=pydoc", "python -m rbpx ranks k='[1,10,100]' ties=optimistic --format csv"),
    title="The distribution of the ranks",
    draws=True,
    tokens=True,
    keys=("k", "ties", "resamples", "seed"),
)
