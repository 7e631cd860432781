"""Which tokens are right, learned from pass and fail alone.

Discards the ranks of the largest model's tokens and keeps only which sequences of N tokens passed. From that,
and from features of each token (position, frequency of its id, log-probability and rank under the next smaller
model), learns how likely each token is a hit, by the unbiased risk of aggregate observations (arXiv
2306.11343). The learner is evaluated on held-out documents against the true hits: AUC, log loss, calibration. Beside
it stand a learner that is given the true label of every token, one that labels each token with the outcome of its
sequence, and one without features. Name two sizes to choose the models.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="outcomes",
    theme="tokens",
    examples=(
        "python -m rbpx tokenwise dataset=pydoc k=10",
        "python -m rbpx tokenwise size='[200k,1.2m]' n='[5,10]' --format json",
    ),
    title="Hits learned from outcomes",
    sizes=2,
    tokens=True,
    keys=("k", "n", "ties", "seed"),
)
