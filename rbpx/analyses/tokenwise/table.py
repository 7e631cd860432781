"""Learners of token hits: what each learned from and how it was judged in, a table for each k out."""

from collections.abc import Sequence

from rbpx.analyses.tokenwise.analysis import FOLDS, Learner, TokenwiseResult
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, span
from rbpx.display.tables import console, grid, print_notes, put

_SEEN = {
    "outcomes": "outcomes",
    "naive": "outcomes, naive",
    "constant": "outcomes, constant",
    "tokens": "every token",
}


def show(results: Sequence[TokenwiseResult]) -> None:
    """Print how well the hits of held-out tokens are predicted at each k, by what was learned from."""
    screen = console()
    for each in results:
        title = f"{each.group.title}: hits of {each.run.size}, with features from {each.smaller.size}"
        table = grid(title, ["k", "learned from", "N", "AUC", "95 % interval", "loss", "est.", "mean p"], left=2)
        for at in each.by_k:
            table.add_section()
            table.add_row(str(at.k), "true hits", "", "", "", "", "", number(at.rbp, 3))
            without = {learner.n for learner in at.learners if learner.name == "outcomes" and learner.judgement is None}
            for learner in at.learners:
                if learner.n in without and learner.name != "outcomes":
                    continue  # one row says that there is nothing to learn from at this N
                table.add_row("", _SEEN[learner.name], *_row(learner, at.rbp))
        put(screen, table)
    print_notes(
        screen,
        f"Logistic models of P(hit), learned from the passes and failures of sequences of N tokens in {FOLDS - 1} of "
        f"{FOLDS} parts of the documents and judged on the tokens of the part that was left out. Loss: log loss, nats; "
        "est.: the same, estimated from the outcomes of that part without a label of any token. Mean p: mean predicted "
        "chance, to be compared with the true share of hits. Intervals are over documents. Naive: each token is given "
        "the outcome of its sequence.",
        (learner.status for each in results for at in each.by_k for learner in at.learners),
    )


def _row(learner: Learner, rbp: float) -> list[str]:
    judged, n = learner.judgement, "" if learner.n is None else str(learner.n)
    if judged is None:
        return [n, status_name(learner.status), *[UNKNOWN] * 4]
    ranks = judged.auc if learner.name != "constant" else None  # constants that differ between folds rank nothing
    auc = [UNKNOWN, UNKNOWN] if ranks is None else [number(ranks.value, 3), span(ranks.lo, ranks.hi, 3)]
    losses = [number(judged.log_loss_nats.value, 3), number(learner.told_nats, 3)]
    excess = judged.excess.value
    return [n, *auc, *losses, number(None if excess is None else rbp + excess, 3)]
