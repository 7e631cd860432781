"""When each token is learned along an axis.

Fits to the nats of each token of a text, along D (checkpoints), S or C, a sigmoid in ln x with four numbers, start,
end, time and width (arXiv 2606.29858), and counts by kind what no sigmoid fits. Shows the spectrum of times by the nats
that they give, and the slope of cross-entropy rebuilt from it at points that were left out of the fits, beside power
laws of single tokens, a line between neighbours, and a drawn world in which every token falls as a smooth power law: a
good rebuild alone shows nothing. Sigmoids need 8 points; with fewer the rest is answered. What holds by construction is
called an identity.

From hits (rank at most k) each token has an interval of time, between its last miss and its first lasting hit; the
spectrum of these is compared with RBP_k, and the exponent of −ln RBP_k with that of the tail of times.

Then: which tokens carry the slope from the last point but one to the last, by what was known of them before, token id,
position and document; how well it can be told which misses become hits over the next decade of x, scored at the last
points by what earlier ones teach; and whether several trainings learn the same tokens in the same order, beside what
noise allows. The smallest k counts for kinds, forecasts and order.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="improve",
    theme="tokens",
    examples=(
        "python -m rbpx learning axis=D variant=raw dataset=pydoc",
        "python -m rbpx learning dataset=pydoc k='[1,10]'",
        "python -m rbpx learning axis=D size=25k --format json",
    ),
    title="When tokens are learned",
    sizes=3,
    draws=True,
    tokens=True,
    across=True,
    keys=("k", "ties", "axis", "resamples", "seed", "least", "top"),
)
