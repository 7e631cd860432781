"""Which tokens improve along an axis, and when each is learned.

Takes the slope of the nats (-logprob) of each occurrence of a token on ln x. The table has for each token id the mean
slope with an interval over documents, nats and RBP_k at the first and the last point, and its share of the improvement
in cross-entropy; then the tokens that got worse. least= is how often a token id must be scored to be listed, top= is
how many are printed; --format csv or json gives all.

Fits a sigmoid in ln x to the nats of each token of a text along D (checkpoints), S or C, with start, end, time and
width (arXiv 2606.29858), and counts by kind the tokens that no sigmoid fits. Shows the spectrum of times, weighted by
nats, and the slope of cross-entropy rebuilt from it at held-out points, next to power laws of single tokens, a line
between neighbours, and a simulation in which every token falls as a smooth power law: a good rebuild alone shows
nothing. Sigmoids need 8 points; with fewer the rest is answered. What holds by construction is called an identity.

From hits (rank at most k) each token has a history: never a hit, always one, learned (a miss that became a lasting
hit), forgotten, or unstable (changed more than once). The ids with most occurrences of each are named, and the x from
which on states are final. The time of a token is an interval between its last miss and its first lasting hit; the
spectrum of these times is compared with RBP_k, and the exponent of −ln RBP_k with that of the tail of times.

Also answers which tokens carry the slope between the last two points, by earlier history, token id, position and
document; how well the misses that become hits over the next decade of x can be predicted, by models that learn from
earlier points and are scored at the last ones; and whether several trainings learn the same tokens in the same order,
compared with what noise allows. Improvement, kinds, forecasts and order use the smallest k.
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
