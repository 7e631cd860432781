"""Accuracy, exact match at k, perplexity and bits per byte of the items of a task.

Shows for each model on a dataset with items (a context and a target, or choices of which one is right) acc: the share
of items whose right choice has the highest log-likelihood, or, without choices, whose target greedy decoding gives.
acc_norm and acc_bytes divide log-likelihoods by characters or bytes; chance is what guessing gets, p how likely
guessing does as well; perplexity is exp of the mean nats of a whole target. A text read with protocol=harness is one
item, with word and byte perplexity. The scores are those of lm-evaluation-harness; of equally likely choices the first
counts, as there. An item whose greedy decoding a tie decides counts as right, and n_tied counts it.

Exact match at k is the share of items whose target tokens all have a rank of at most k. Beside it stand its value if
the hits of an item were independent (the mean of RBP_k^n over items of n tokens), the measured correlation of two hits
of an item (rho), and its value with that (beta-binomial). The law of emergence is fitted under each of these, and under
the correlation that fits best. slices=category or domain shows the same for each. Intervals are over items. A terminal
shows the scores, and with k= exact match; --details adds its laws.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="klaw",
    theme="tasks",
    examples=(
        "python -m rbpx items dataset=lambada",
        "python -m rbpx items dataset=mmlu slices=domain --format csv",
        "python -m rbpx items dataset=arc_easy k='[1,10]'",
    ),
    title="Items of tasks",
    draws=True,
    tokens=True,
    across=True,
    keys=("k", "ties", "resamples", "seed", "slices"),
    lacking="items looks at the items of tasks, and store={store} has none; measure some, as of dataset=lambada, or a "
    "text with protocol=harness",
)
