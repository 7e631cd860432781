"""Whether one distribution of ranks, its parameters laws in S, gives all the laws.

Fits each form of the distribution of ranks to several sizes at once, with its parameters on lines in ln S, and
derives -ln RBP_k, H(P) and cross-entropy of a larger one. The form that comes closest at sizes below the largest, each
predicted from those below it, is chosen. The largest, which has no part in the choice, is predicted from all others and
judges: a form closes the laws if each measured value lies within the interval of its prediction, for RBP_k up to the
largest k whose law stands. Forms with two kinds of tokens have a cross-entropy of their own: the mean entropy of the
kinds. Separate laws, one for each quantity, stand beside them for comparison.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="ranks",
    examples=("python -m rbpx closure dataset=pydoc", "python -m rbpx closure k='[1,10,100]' --format json"),
    title="One distribution for all laws",
    sizes=4,
    draws=True,
    tokens=True,
    keys=("k", "ties", "resamples", "seed"),
)
