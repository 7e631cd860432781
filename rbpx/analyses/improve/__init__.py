"""Which tokens improve with size.

Takes the slope of the nats (-logprob) of each occurrence of a token on ln S over all sizes. Shows for each token id
the mean slope with an interval over documents, nats and RBP_k (k= gives one, default 1) at the smallest and the
largest size, and its share of the total improvement in cross-entropy; then the tokens that got worse. least= is
how often a token id must be scored to be listed, top= is how many are printed; --format csv or json gives all.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="multiplier",
    theme="tokens",
    examples=(
        "python -m rbpx improve dataset=pydoc",
        "python -m rbpx improve dataset=pydoc least=50 k=10 --format csv",
    ),
    title="Improvement by token",
    sizes=3,
    tokens=True,
    keys=("k", "ties", "least", "top"),
)
