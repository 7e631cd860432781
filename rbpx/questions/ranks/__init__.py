"""The distribution of the ranks: the lognormal, its rivals, and whether all laws follow from one.

Fits the published lognormal (ranks from 2 up, arXiv 2510.20387, appendix D) and seven distributions over 1..V
to the ranks of each run by maximum likelihood: lognormal, power law, truncated power law, Zipf-Mandelbrot, Weibull,
negative binomial, and an inflated lognormal, with extra mass at rank 1. Says whether the ranks are lognormal, and
compares them by AIC; --details has the distance of each from the best, mu and sigma against S, and the laws of RBP_k
and cross-entropy that a distribution implies, next to the measured ones.

With four sizes or more it also tests closure: whether one distribution, its parameters laws in S, implies all the laws.
Each of 14 forms is fitted to several sizes at once, and predicts -ln RBP_k, H(P) and cross-entropy of a larger one. The
form with the smallest error at sizes below the largest, each predicted from those below it, is chosen. The largest,
which has no part in the choice, is predicted from all others: a form closes the laws if each measured value lies within
the interval of its prediction, for RBP_k up to the largest k whose law stands. Forms with two kinds of tokens have a
cross-entropy of their own: the mean entropy of the kinds. Separate laws, one for each quantity, are the baseline.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="gaps",
    examples=("python -m rbpx ranks dataset=pydoc", "python -m rbpx ranks k='[1,10,100]' ties=optimistic --format csv"),
    title="The distribution of the ranks",
    draws=True,
    tokens=True,
    keys=("k", "ties", "resamples", "seed"),
)
