"""Accuracy, exact match at k, perplexity and bits per byte of the items of a task.

Shows for each model the accuracy: the share of items whose right choice has the highest log-likelihood, or, without
choices, whose target greedy decoding gives. With k= it shows exact match at k, the share of items whose target tokens
all have a rank of at most k.

The scores are those of lm-evaluation-harness: acc_norm and acc_bytes divide log-likelihoods by characters or bytes;
chance is what guessing gets; perplexity is exp of the mean nats of a whole target; with protocol=harness a text is one
item, with word and byte perplexity. Of equally likely choices the first counts, in greedy decoding ties are right;
n_tied counts the items that a tie decides.

Beside exact match stand its values if the hits of an item were independent (the mean of RBP_k^n over items of n
tokens), or correlated as measured (rho). --details has the law of emergence under each, and under the correlation that
fits best. Intervals are over items.
"""

from rbpx.config.keys.laws import Counted
from rbpx.config.keys.output import Drawn
from rbpx.config.keys.tasks import Slices
from rbpx.questions.registry import Analysis


class ItemsKeys(Counted, Slices, Drawn):
    """Keys of items."""


ANALYSIS = Analysis(
    place=50,
    theme="tasks",
    examples=(
        "python -m rbpx items dataset=lambada",
        "python -m rbpx items dataset=mmlu slices=domain --format csv",
        "python -m rbpx items dataset=arc_easy k='[1,10]'",
    ),
    plain=(
        *("kind", "source", "family", "dataset", "variant", "revision", "size", "non_embedding_params"),
        *("slice", "k", "n_items", "chance", "acc", "acc_lo", "acc_hi", "acc_stderr", "acc_norm", "perplexity"),
        *("bits_per_byte", "measured", "independent", "rho", "run_id", "ties"),
    ),
    kinds=("items", "exact_match"),
    title="Items of tasks",
    draws=True,
    tokens=True,
    across=True,
    without_tokens=("downstream", "imported accuracies"),
    lacking="items looks at the items of tasks, and store={store} has none; measure some, as of dataset=lambada, or a "
    "text with protocol=harness",
)
