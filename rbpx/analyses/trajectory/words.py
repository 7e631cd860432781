"""Along training in sentences."""

from collections.abc import Sequence

from rbpx.analyses.trajectory.analysis import Trajectories
from rbpx.analyses.trajectory.tokens import TokenHistories
from rbpx.counts import number_of
from rbpx.display.numbers import short
from rbpx.laws.trajectory.histories import History


def sentences(results: Sequence[Trajectories]) -> list[str]:
    """How many trainings have several points, what is left out, and how many tokens changed along each."""
    found = []
    for of in results:
        left_out = {"finished models": of.group.n_other, "checkpoints with the weights of another": of.group.n_same}
        named = ", ".join(f"{n} {what}" for what, n in left_out.items() if n)
        n_trainings = number_of(len({law.name for law in of.laws}), "training")
        found.append(f"{n_trainings} with several points{f'; left out: {named}' if named else ''}.")
        found += [_changed(tokens) for tokens in of.histories]
    return found


def _changed(tokens: TokenHistories) -> str:
    along, x = ("sizes", "S") if tokens.along == "size" else (f"the training of {tokens.of}", "D")
    learned, forgotten, unstable = (
        f"{tokens.shares[history]:.1%}" for history in (History.learned, History.forgotten, History.unstable)
    )
    return (
        f"Along {along}, {learned} of {tokens.n_tokens:,} tokens were learned at k = {tokens.k}, {forgotten} "
        f"forgotten, {unstable} changed more than once; half never change from {x} = {short(tokens.half_settled)} on."
    )
