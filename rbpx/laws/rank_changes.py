"""What measuring again moves: pairs of ranks of the same tokens in, how many moved and what that shifts out.

Shapes: B resamples of the documents. A token moves if its rank does, under one tie rule; it changes if the number of
greater or of equal logits does, which it may without moving.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.stats import norm
from scipy.stats import t as student_t

from rbpx.laws.uncertainty import LEVEL, MIN_RESAMPLES
from rbpx.laws.units import Estimate

Floats = npt.NDArray[np.float64]

SAME_SHARE: Final = 1e-3  # of the tokens may change
SAME_NATS: Final = 1e-4  # a log-probability may move by


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
        n_gained: by k, tokens that were none and are hits now.
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
        """Whether two measurements are the same but for rounding: 1 token in 1,000 changed, logprob by 1e-4 at most."""
        return self.n_changed <= SAME_SHARE * self.n_tokens and self.largest_logprob_move <= SAME_NATS


@dataclass(frozen=True)
class Shift:
    """A quantity before and after a change, of the measurement or of a choice; the difference is after less before."""

    before: float
    after: float
    difference: Estimate


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


def shift(before: float, after: float, before_B: Floats, after_B: Floats, n_documents: int) -> Shift:
    """The difference of a quantity with its interval (`estimate`), the same documents drawn on both sides.

    There is no interval where no resample differs: a change that was seen in no document has a frequency that these
    documents do not tell.

    Args:
        before: the quantity.
        after: the same afterwards.
        before_B: of the resampled documents, shape [B]; NaN where they have no token.
        after_B: of the same.
        n_documents: that were drawn from.
    """
    difference_B = after_B - before_B
    found = estimate(after - before, difference_B, n_documents)
    if not np.any(difference_B[np.isfinite(difference_B)] != 0):
        found = Estimate(found.value, None, None)
    return Shift(before, after, found)


def estimate(value: float, resampled_B: Floats, n_documents: int) -> Estimate:
    """A quantity with a 95 % interval from its resamples; none for one document, or fewer than 20 with a token.

    The expanded percentile interval: the quantiles lie as far out as Student's t with n - 1 degrees of freedom says, as
    the resamples of n documents spread too little by sqrt((n - 1) / n).

    Source:
        T. C. Hesterberg, What Teachers Should Know about the Bootstrap, arXiv 1411.5279.
    """
    usable = resampled_B[np.isfinite(resampled_B)]
    if not math.isfinite(value):
        return Estimate(None, None, None)
    if n_documents < 2 or len(usable) < MIN_RESAMPLES:
        return Estimate(value, None, None)
    far = math.sqrt(n_documents / (n_documents - 1)) * student_t.ppf((1 + LEVEL) / 2, n_documents - 1)
    tail = float(norm.cdf(-far))
    lo, hi = np.quantile(usable, [tail, 1 - tail])
    return Estimate(value, float(lo), float(hi))
