"""A bin of ranks, and its columns in tables."""

from dataclasses import dataclass
from typing import Final

from rbpx.display.column import Column, magnitude, whole


@dataclass(frozen=True)
class RankBin:
    """Tokens with a rank from the first to the last of a bin."""

    first_rank: int
    last_rank: int
    n_tokens: int

    @property
    def rank(self) -> float:
        """The geometric mean of the first and the last."""
        return float((self.first_rank * self.last_rank) ** 0.5)


BINS: Final[tuple[Column[RankBin], ...]] = (
    whole("ranks from", "first_rank", lambda found: found.first_rank),
    whole("to", "last_rank", lambda found: found.last_rank),
    magnitude("middle", "rank", lambda found: found.rank, "geometric mean of the ranks"),
    whole("tokens", "n_tokens", lambda found: found.n_tokens),
)
"""The columns of a table of bins, which has more of its own."""
