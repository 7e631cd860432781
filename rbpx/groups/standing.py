"""Where the law of RBP_k stands: a fitted law in, whether it holds at its k, and up to which k of a grid, out."""

from collections.abc import Iterable
from typing import Final

from rbpx.groups.fits import Law
from rbpx.laws.bootstrap import MOST_LEFT_OUT
from rbpx.status import Status

_AGAINST: Final = {Status.bends, Status.not_monotone, Status.backtest_failed, Status.barely_determined}


def stands(law: Law) -> bool:
    """Whether a law holds: a trend that is significant, also over resamples, and no doubt about its form.

    0 < RBP_k < 1 at every size, in nearly all resamples too, the interval of alpha lies above 0, and the points do not
    bend, turn round, defy the backtest or leave alpha open (`rbpx.laws.verdict`).
    """
    fit = law.fit
    falls = fit.alpha_lo is not None and fit.alpha_lo > 0
    few = fit.n_resamples_left_out <= MOST_LEFT_OUT * (fit.n_resamples or 0)
    return falls and few and not _AGAINST & set(fit.reasons or ())


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
