"""Says in sentences when tokens are learned."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.analyses.learning.analysis import Learning
from rbpx.analyses.learning.losses import World
from rbpx.analyses.question import one_by_one
from rbpx.laws.learning.kinds import Kind

KINDS: Final = {
    Kind.known: "always known",
    Kind.turns: "not monotone",
    Kind.learned: "learned",
    Kind.before: "learned before",
    Kind.after: "learned after",
    Kind.forgotten: "forgotten",
    Kind.never: "never learned",
}
"""Each kind of `Kind` in a word or two."""


@one_by_one
def sentences(result: Learning) -> Iterator[str]:
    """What was found of one group."""
    if result.losses is not None:
        measured, drawn = result.losses.worlds
        yield _rebuilt(measured, drawn)


def _rebuilt(measured: World, drawn: World) -> str:
    r2 = {world.name: world.r2["sigmoid"].value for world in (measured, drawn)}
    return f"R2 {r2}"


__all__ = ["KINDS", "Sequence", "sentences"]
