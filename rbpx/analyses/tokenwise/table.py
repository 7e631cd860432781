"""Learners of token hits: what each was told and how it was judged in, a table for each k out."""

from collections.abc import Sequence

from rbpx.analyses.tokenwise.analysis import FOLDS, Learner, TokenwiseFound
from rbpx.display.tables import UNKNOWN, console, grid, number, put, remedies, span, status_name
from rbpx.status import Status

_SEEN = {
    "outcomes": "outcomes",
    "naive": "outcomes, naive",
    "constant": "outcomes, no features",
    "tokens": "every token",
}


def show(found: Sequence[TokenwiseFound]) -> None:
    """Print for each k how well the hits of unseen tokens are told, by what was learned from."""
    screen = console()
    for each in found:
        for at in each.found:
            title = f"{each.group.title}, k = {at.k}: hits of {each.run.size}, with features from {each.smaller.size}"
            table = grid(title, ["learned from", "N", "AUC", "95 % interval", "loss", "told", "mean p"])
            untold = {learner.n for learner in at.learners if learner.name == "outcomes" and learner.judgement is None}
            for learner in at.learners:
                if learner.n in untold and learner.name != "outcomes":
                    continue  # one row says of this N that there is nothing to learn from
                table.add_row(_SEEN[learner.name], *_row(learner, at.rbp))
            table.add_section()
            table.add_row("true", "", "", "", "", "", number(at.rbp, 3))
            put(screen, table)
    screen.print(
        f"Logistic models of P(hit), learned from the passes and failures of sequences of N tokens in {FOLDS - 1} of "
        f"{FOLDS} parts of the documents and judged on the tokens of the part that was left out. Loss: log loss, nats; "
        "told: the same as the outcomes of that part tell it, without a label. Mean p: of the predicted chances, to be "
        "held against the true share of hits. Intervals are over documents. Naive: each token has the outcome of its "
        "sequence.",
        soft_wrap=True,
    )
    statuses: set[Status] = {learner.status for each in found for at in each.found for learner in at.learners}
    for line in remedies(statuses):
        screen.print(line, soft_wrap=True)


def _row(learner: Learner, rbp: float) -> list[str]:
    judged, n = learner.judgement, "" if learner.n is None else str(learner.n)
    if judged is None:
        return [n, status_name(learner.status), *[UNKNOWN] * 4]
    ranks = judged.auc if learner.name != "constant" else None  # what differs between folds is no ranking
    auc = [UNKNOWN, UNKNOWN] if ranks is None else [number(ranks.value, 3), span(ranks.lo, ranks.hi, 3)]
    losses = [number(judged.log_loss_nats.value, 3), number(learner.told_nats, 3)]
    excess = judged.excess.value
    return [n, *auc, *losses, number(None if excess is None else rbp + excess, 3)]
