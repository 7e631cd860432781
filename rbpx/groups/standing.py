"""Where the law of RBP_k stands: a fitted law in, whether it holds at its k, and up to which k of a grid, out."""

from collections.abc import Iterable
from typing import Final

from rbpx.groups.fits import Law
from rbpx.laws.bootstrap import MOST_LEFT_OUT
from rbpx.status import Status

__all__ = ["largest_standing", "stands", "supported"]

_AGAINST: Final = {Status.bends, Status.not_monotone, Status.backtest_failed, Status.barely_determined}


def stands(law: Law) -> bool:
    """Whether a law holds: a trend that is significant, also over resamples, and no doubt about its form.

    0 < RBP_k < 1 at every size, in nearly all resamples too, the interval of alpha lies above 0, and the points do not
    bend, turn round, defy the backtest or leave alpha open (`rbpx.laws.verdict`).
    """
    params = law.fit.params
    left_out, n_resamples = params.get("n_resamples_left_out", 0), params.get("n_resamples", 1)
    falls = law.fit.alpha_lo is not None and law.fit.alpha_lo > 0
    return falls and not _AGAINST & set(params.get("reasons", ())) and left_out <= MOST_LEFT_OUT * n_resamples


def supported(laws: Iterable[Law]) -> int | None:
    """The largest k, of laws in order of k, up to which every law stands; None if not the first."""
    reach = None
    for law in laws:
        if not stands(law):
            break
        reach = law.k
    return reach


def largest_standing(laws: Iterable[Law]) -> int | None:
    """The largest k at which a law stands, whatever smaller k say; None where none does."""
    return max((law.k for law in laws if law.k is not None and stands(law)), default=None)
