"""What passing and failing sequences say about single tokens: their law, and which of them are hits.

A benchmark reports for each sequence of N tokens whether all of it was right. If tokens are independent, a
sequence passes with probability exp(-C N S^-alpha), so C, alpha and RBP_k of single tokens can be recovered by
maximum likelihood (arXiv 2510.20387, eqs. 5 to 8). Give a file of your own rows, with columns model, S (or
non_embedding_params), n (tokens of a sequence), passed (true or false; or a count, with trials), and optionally
k and group (task or document, resampled whole). Without a file, cuts the documents in the store into sequences
and compares what is recovered with the tokens themselves: hits cluster, so the bias grows with N, and two
corrections are shown: r, the correlation of two hits of a sequence, as measured on the tokens, or fitted, one for all
sizes and N, the number of hits beta-binomial. Two sizes are enough. --details has the law of each N, the sequences with
the RBP_k that each law implies, and the learners.

Then learns which tokens of the largest model are hits from nothing but those outcomes and features of each token
(position, frequency of its id, log-probability and rank under the next smaller model), by the unbiased risk of
aggregate observations (arXiv 2306.11343), and judges it on held-out documents against the true hits: AUC, log loss,
calibration. Beside it stand a learner that is given the true label of every token, one that labels each token with the
outcome of its sequence, and one without features. size= with two sizes chooses the models.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="learning",
    theme="tasks",
    examples=(
        "python -m rbpx outcomes FILE.csv",
        "python -m rbpx outcomes dataset=pydoc k=10 n='[1,2,5,10]'",
    ),
    title="From outcomes to tokens",
    sizes=2,
    tokens=True,
    file="FILE.csv",
    keys=("k", "n", "ties", "resamples", "seed"),
)
