"""Which tokens improve along an axis, and when each is learned.

Takes the slope of the nats (-logprob) of each occurrence of a token on ln x. Shows for each token id the mean slope
with an interval over documents, nats and RBP_k at the first and the last point, and its share of the total improvement
in cross-entropy; then the tokens that got worse. least= is how often a token id must be scored to be listed, top= is
how many are printed; --format csv or json gives all.

Fits to the nats of each token of a text, along D (checkpoints), S or C, a sigmoid in ln x with four numbers, start,
end, time and width (arXiv 2606.29858), and counts by kind what no sigmoid fits. Shows the spectrum of times by the nats
that they give, and the slope of cross-entropy rebuilt from it at points that were left out of the fits, beside power
laws of single tokens, a line between neighbours, and a drawn world in which every token falls as a smooth power law: a
good rebuild alone shows nothing. Sigmoids need 8 points; with fewer the rest is answered. What holds by construction is
called an identity.

From hits (rank at most k) each token has a history: never a hit, always one, learned (a miss that became a hit and
stayed one), forgotten, or unstable (changed more than once); the ids that have each most often are named, and the x
from which on states are final. Each has an interval of time too, between its last miss and its first lasting hit; the
spectrum of these is compared with RBP_k, and the exponent of −ln RBP_k with that of the tail of times.

Then: which tokens carry the slope from the last point but one to the last, by what was known of them before, token id,
position and document; how well it can be told which misses become hits over the next decade of x, scored at the last
points by what earlier ones teach; and whether several trainings learn the same tokens in the same order, beside what
noise allows. The smallest k counts for improvement, kinds, forecasts and order.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="multiplier",
    theme="tokens",
    examples=(
        "python -m rbpx learning axis=D variant=raw dataset=pydoc",
        "python -m rbpx learning dataset=pydoc least=50 k=10 --format csv",
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
