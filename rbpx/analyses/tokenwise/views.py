"""Shows learners of token hits as a table: what each learned from and how good its chances are, at each k."""

from collections.abc import Iterator
from typing import Final

from rbpx.analyses.question import Question, each, one_by_one
from rbpx.analyses.tokenwise.analysis import FOLDS, Learner, TokenwiseResult, analyse, keep
from rbpx.display.view import Table, View, decimal, state, text, whole, with_ends
from rbpx.display.vocabulary import decimals

_Row = tuple[int, float, Learner]


@one_by_one
def tables(result: TokenwiseResult) -> Iterator[Table]:
    """How well the hits of held-out tokens are predicted at each k, by what was learned from."""
    smaller, run = result.group.runs[-2:]
    note = (
        f"Logistic models of P(hit), learned from {FOLDS - 1} of {FOLDS} parts of the documents and judged on the "
        "tokens of the remaining part; intervals over documents."
    )
    title = f"Hits of {run.size}, with features from {smaller.size}"
    yield LEARNERS.table(title, result.learners, result.group.title, note=note)


LEARNERS: Final = View[_Row](
    "learners",
    text("k", "k", lambda row: str(row[0])),
    text(
        "learned from", "learner", lambda row: row[2].name,
        "outcomes: which sequences of N tokens passed; naive: each token with the outcome of its sequence; "
        "constant: outcomes, without features; tokens: the true hits, the ceiling",
    ),
    whole("N", "n", lambda row: row[2].n),
    with_ends(
        "AUC", "auc", lambda row: None if row[2].name == "constant" else row[2].judgement["auc"], decimals(3),
        "not known for a constant, which ranks nothing within a fold",
    ),
    with_ends(
        "loss", "log_loss_nats", lambda row: row[2].judgement["log_loss_nats"], means="log loss, nats", ends_spare=4
    ),
    decimal("est.", "told_nats", lambda row: row[2].told_nats, means="loss, estimated from outcomes", spare=3),
    with_ends(
        "excess", "excess", lambda row: row[2].judgement["excess"], decimals(3),
        "mean predicted chance minus RBP_k, the true share of hits", 1, 5,
    ),
    decimal("RBP_k", "rbp", lambda row: row[1], 3, spare=2),
    state(lambda row: row[2].status),
)  # fmt: skip
QUESTION = Question(each(analyse), keep, tables)
