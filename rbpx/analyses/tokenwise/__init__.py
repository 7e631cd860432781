"""Which tokens are right, learned from pass and fail alone."""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    order=220,
    summary="which tokens are right, learned from pass and fail alone",
    help="""\
Forgets the tokens of the largest model and keeps which sequences of N tokens passed. Learns from that, and from
features of each token (position, frequency of its id, log-probability and rank under the next smaller model),
how likely each token is a hit, by the unbiased risk of aggregate observations (arXiv 2306.11343). Judged on
documents that were left out, against the true hits: AUC, log loss, calibration; beside it what every token's
own label would have taught, each token taken for its sequence, and no features at all. Name two sizes to choose
the models.""",
    examples=(
        "python -m rbpx tokenwise dataset=pydoc k=10",
        "python -m rbpx tokenwise size='[200k,1.2m]' n='[5,10]' --format json",
    ),
    title="Hits learned from outcomes",
    sizes=2,
    tokens=True,
)
