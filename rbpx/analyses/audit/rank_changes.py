"""Changes of the ranks when a run is measured again: how many tokens move, and how far.

A token moves if its rank does, under one tie rule; it changes if the number of greater or of equal logits does, which
it may without moving.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]

SAME_SHARE: Final = 1e-3  # this share of the tokens may change
SAME_NATS: Final = 1e-4  # a log-probability may move by this much


@dataclass(frozen=True)
class Allowance:
    """How far a measurement may be from another.

    Attributes:
        share: of its tokens may change.
        nats: that a log-probability may move by.
    """

    share: float
    nats: float

    def holds(self, moves: "Moves") -> bool:
        """Whether a measurement is within it."""
        return moves.n_changed <= self.share * moves.n_tokens and moves.largest_logprob_move <= self.nats


@dataclass(frozen=True)
class Moves:
    """How the tokens of one run moved when they were measured again.

    Attributes:
        n_tokens: compared.
        n_changed: those whose number of greater or of equal logits differs.
        n_moved: those whose rank differs.
        median_move: of the ranks that moved, in ranks; None where none did.
        largest_move: the same.
        largest_logprob_move: nats, of all tokens.
        n_lost: by k, tokens that were hits (rank at most k) and no longer are.
        n_gained: by k, tokens that were not hits and are now.
    """

    n_tokens: int
    n_changed: int
    n_moved: int
    median_move: float | None
    largest_move: float | None
    largest_logprob_move: float
    n_lost: dict[int, int]
    n_gained: dict[int, int]

    @property
    def is_same(self) -> bool:
        """Whether two measurements agree up to rounding: 1 token in 1,000 changed, logprob by 1e-4 at most."""
        return Allowance(SAME_SHARE, SAME_NATS).holds(self)

    @property
    def share_changed(self) -> float:
        """The share of the tokens that changed."""
        return self.n_changed / self.n_tokens


def engine_allowance(share: float, nats: float, tolerance: float) -> Allowance:
    """How far the run of another engine may be from float32.

    Two right implementations in one precision round independently, so they are about as far from float32 as each other.

    Args:
        share: of the tokens that the engine's precision changes in a run of rbpx; 0 for float32, where two runs may
            differ too.
        nats: how far it moves a log-probability there.
        tolerance: how many times as much is allowed.
    """
    return Allowance(tolerance * max(SAME_SHARE, share), tolerance * max(SAME_NATS, nats))


def count_moves(pairs: pa.Table, k_grid: Sequence[int]) -> Moves:
    """Count how ranks moved.

    Args:
        pairs: rank, rank_again, n_tokens, n_changed, largest_logprob_move (query `rank_pairs`), no rank missing.
        k_grid: the k of RBP.
    """
    rank, again = pairs["rank"].to_numpy(), pairs["rank_again"].to_numpy()
    n_tokens = pairs["n_tokens"].to_numpy()
    moved = np.repeat(np.abs(again - rank), n_tokens)
    moved = moved[moved > 0]
    return Moves(
        n_tokens=int(n_tokens.sum()),
        n_changed=int(pairs["n_changed"].to_numpy().sum()),
        n_moved=len(moved),
        median_move=float(np.median(moved)) if len(moved) else None,
        largest_move=float(moved.max()) if len(moved) else None,
        largest_logprob_move=float(pairs["largest_logprob_move"].to_numpy().max()),
        n_lost={k: int(n_tokens[(rank <= k) & (again > k)].sum()) for k in k_grid},
        n_gained={k: int(n_tokens[(rank > k) & (again <= k)].sum()) for k in k_grid},
    )
