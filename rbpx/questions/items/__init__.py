"""Accuracy, exact match at k, perplexity and bits per byte of the items of a task.

Shows for each model on a dataset with items (a context and a target, or choices of which one is right): acc, the share
of items whose right choice has the highest log-likelihood, or, without choices, whose target is what greedy decoding
gives; acc_norm and acc_bytes, the same with log-likelihoods divided by the characters or bytes of the choice;
chance, what guessing would get, and p, how likely guessing is to do as well; perplexity, exp of the mean nats of a
whole target; bits per byte of the targets.
A text that was read with protocol=harness is one item whose target is all of it: word and byte perplexity and bits
per byte. acc, acc_norm, acc_bytes, perplexity, word and byte perplexity and bits per byte are those of
lm-evaluation-harness. Of equally likely choices the first one counts, as there; choices with the same text are
measured once, so they are always equally likely. Where logits tie, greedy decoding takes the lowest id, which ranks do
not tell: such an item counts as right. n_tied counts the items that a tie decides.

Exact match at k is the share of items whose target tokens all have a rank of at most k, and so are hits. Beside it
stands what it would be if the tokens of an item were hits independently of each other: the mean over items of RBP_k^n
with n the tokens of the item. Then come the correlation of two hits of one item, as measured (rho in csv and json),
and what exact match would be with it (beta-binomial). The law of emergence is fitted to the successes at all sizes,
each item with its own length, for hits that are independent, correlate as measured, or correlate as fits best.
slices=category or domain shows the same for each. All intervals are over items. A terminal shows the
scores, and with k= exact match too; --details adds its laws.
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
