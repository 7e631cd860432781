"""Which tokens improve along an axis, and when each is learned.

Shows for each token id the mean slope of its nats on ln x, with an interval over documents, and its share of the
improvement in cross-entropy; then the tokens that got worse. least= is how often a token id must be scored to be
listed, top= how many are printed; csv and json have all.

Fits to the nats of each token, along D (checkpoints), S or C, a sigmoid in ln x (arXiv 2606.29858); it needs 8 points.
Shows the spectrum of times by the nats that they give, and the slope of cross-entropy rebuilt from it at points that
were left out, beside simpler rivals and a simulated world in which every token falls as a smooth power law.

From hits (rank at most k) each token has a history: never, always, learned (a miss that became a lasting hit),
forgotten, or unstable (changed more than once). The spectrum of the times of learned tokens is compared with RBP_k.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="multiplier",
    theme="tokens",
    examples=(
        "python -m rbpx learning axis=D variant=raw dataset=pydoc",
        "python -m rbpx learning dataset=pydoc least=50 k=10 --format csv",
        "python -m rbpx learning axis=D size=25k --format json",
    ),
    title="When tokens are learned",
    sizes=3,
    draws=True,
    tokens=True,
    across=True,
    keys=("k", "ties", "axis", "resamples", "seed", "least", "top"),
)
