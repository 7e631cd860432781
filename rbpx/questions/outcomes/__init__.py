"""What passing and failing sequences say about single tokens: their law, and which of them are hits.

If tokens are independent, a sequence of N passes with probability exp(-C N S^-alpha), so maximum likelihood recovers C,
alpha and RBP_k of single tokens (arXiv 2510.20387, eqs. 5 to 8).

A benchmark reports for each sequence whether all of it was right. Documents are cut into sequences, and the result
compared with their tokens. Hits cluster, so the bias grows with N; two corrections use the correlation of two hits, as
measured or fitted. --details has the law of each N and the sequences. Then it learns which tokens of the largest model
are hits from those outcomes and features of each token (position, frequency, log-probability and rank under the next
smaller model; arXiv 2306.11343), and judges it on held-out documents by AUC, log loss and calibration. size= with two
sizes chooses the models.
"""

from rbpx.config.keys.laws import Counted, N
from rbpx.config.keys.output import QuestionKeys
from rbpx.questions.registry import Analysis


class OutcomesKeys(N, Counted, QuestionKeys):
    """Keys of outcomes."""


ANALYSIS = Analysis(
    place=220,
    theme="tasks",
    examples=("python -m rbpx outcomes dataset=pydoc k=10 n='[1,2,5,10]'",),
    plain=(
        *("kind", "k", "n", "correction", "source", "family", "dataset", "variant", "revision", "size"),
        *("non_embedding_params", "n_sequences", "n_passed", "rbp", "C", "alpha", "alpha_lo", "alpha_hi"),
        *("r", "auc", "log_loss_nats", "status", "ties", "fit_id"),
    ),
    title="From outcomes to tokens",
    sizes=2,
    tokens=True,
)
