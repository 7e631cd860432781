"""The size at which the share of windows of hits reaches a level: by a fitted law, with its interval.

Outside the sizes the answer is another (`rbpx.analyses.emergence.extrapolated`).
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.analyses.emergence.law import JointFit
from rbpx.analyses.emergence.pooled import PooledFit
from rbpx.laws.averaged import COMBINED
from rbpx.laws.bootstrap import moments
from rbpx.laws.interval import document_t, fieller, student_t
from rbpx.laws.logarithms import exp_or_none, line, neg_ln
from rbpx.laws.power_fit import LawFit, PowerLawFit
from rbpx.laws.verdict import FAR
from rbpx.status import Status, first_of

SOURCE: Final = "RBP paper, arXiv 2510.20387, eqs. 6-8, solved for S; interval by Fieller, Biometrika 1940"


@dataclass(frozen=True)
class Crossing:
    """Where p_{N,k} = share: ln_S with its 95 % interval from ln_lo to ln_hi, all of natural logarithms of S.

    An end of the interval is None if the interval has none on that side, as where alpha is not significantly
    different from 0. S, lo and hi are parameters, and None also where they are outside the range of a float. The
    numbers are None where the law has none, or does not rise towards the share. The status is that of the law, or
    beyond where S is more than 10 times outside the measured sizes: the interval assumes that the law holds there.
    is_beyond says so whatever the status.

    Where the answer is over forms, `law` is that of the law alone; ln_S may then be None with an end known: at no size
    that was searched is a model more likely than not to reach the level.
    """

    share: float
    ln_S: float | None
    ln_lo: float | None
    ln_hi: float | None
    status: Status
    is_beyond: bool = False
    law: "Crossing | None" = None

    @property
    def method(self) -> str:
        """`combined` if over forms, else `law`."""
        return "law" if self.law is None else COMBINED

    @property
    def has_numbers(self) -> bool:
        """Whether anything is known of the size."""
        return any(number is not None for number in (self.ln_S, self.ln_lo, self.ln_hi))

    @property
    def S(self) -> float | None:
        """The size, non-embedding parameters."""
        return exp_or_none(self.ln_S)

    @property
    def lo(self) -> float | None:
        """The lower end of the interval."""
        return exp_or_none(self.ln_lo)

    @property
    def hi(self) -> float | None:
        """The upper end of the interval."""
        return exp_or_none(self.ln_hi)


def windows_crossing(fit: PowerLawFit, share: float, document_covariance: ArrayLike | None = None) -> Crossing:
    """Size at which a law of one window length (`fit_windows`) reaches a share, S = (C_N / -ln share)^(1 / alpha_N).

    The interval inverts the confidence band of the regression: it contains all x = ln S with
    |ln_C_ref - alpha (x - ln S_ref) - ln(-ln share)| <= t_{n-2} se(x). Where that set falls in two, alpha could be
    negative; the half that is kept belongs to the laws of positive alpha, which reach the share from below.

    Args:
        fit: from `fit_windows`.
        share: the level q of p_{N,k}, between 0 and 1.
        document_covariance: covariance of (ln_C_ref, alpha) over resamples of the documents (`line_covariance`),
            added to that of the scatter of the sizes. It also includes the noise shared by all sizes, which the scatter
            does not show.

    Returns:
        The crossing; its status is never_crosses if alpha <= 0, else that of the fit, or beyond.

    Raises:
        ValueError: if share is not between 0 and 1, or the covariance is not 2 by 2.
    """
    if fit.theta_P is None or fit.alpha_stderr is None:
        return _nowhere(share, fit.status)
    n, spread = fit.n_points, float(np.sum((np.log(fit.S) - math.log(fit.S_ref)) ** 2))
    covariance = np.diag([fit.alpha_stderr**2 * spread / n, fit.alpha_stderr**2])
    n_documents = None if fit.uncertainty is None else fit.uncertainty.n_documents
    region = _added(covariance, document_covariance) * _widest_t(n - 2, n_documents) ** 2
    return _cross(share, fit, fit.S_ref, float(fit.theta_P[0]), region)


def pooled_crossing(fit: PooledFit, N: int, share: float) -> Crossing:
    """Size at which the pooled law reaches a share at one window length, S = (C_N / -ln share)^(1 / alpha).

    The interval contains the sizes at which the level lies within the interval of the law, over documents and models.

    Args:
        fit: from `fit_pooled`.
        N: window length, tokens.
        share: the level q of p_{N,k}, between 0 and 1.

    Returns:
        The crossing; not_positive where that window length has no constant.

    Raises:
        ValueError: if share is not between 0 and 1.
    """
    if fit.found is None:
        return _nowhere(share, fit.status)
    if N not in fit.constants:
        return _nowhere(share, Status.not_positive)
    places = [list(fit.constants).index(N), -1]
    region = None
    if fit.interval is not None:
        region = fit.found.scatter.region_PP()[np.ix_(places, places)]
    return _cross(share, fit, fit.found.S_ref, fit.found.ln_C_ref[N], region)


def joint_crossing(fit: JointFit, N: int, share: float, *, documents: bool = False) -> Crossing:
    """Size at which the joint law reaches a share at window length N, S = (C N / -ln share)^(1 / alpha).

    The interval is as in `windows_crossing`, with n_sizes - 2 degrees of freedom. It takes the law for true at this
    N, so compare with the crossing of the law of that N alone.

    Args:
        fit: from `fit_joint`.
        N: window length, tokens.
        share: the level q of p_{N,k}, between 0 and 1.
        documents: add the covariance over the resamples of the documents that the fit was given.

    Returns:
        The crossing; its status is never_crosses if alpha <= 0, else that of the fit, or beyond.

    Raises:
        ValueError: if share is not between 0 and 1, N below 1, or documents is set for a fit without resamples.
    """
    if N < 1:
        raise ValueError(f"a window has at least 1 token, got {N}")
    at = fit.constant_at_ref
    if at is None or fit.alpha_stderr is None:
        return _nowhere(share, fit.status)
    covariance = np.diag([at.ln_C_ref_stderr**2, fit.alpha_stderr**2])
    added = fit.document_22 if documents else None
    if documents and added is None:
        raise ValueError("the fit has no resamples of the documents, or too few of them can be used")
    n_documents = None if fit.document_22 is None else fit.n_documents
    region = _added(covariance, added) * _widest_t(fit.n_sizes - 2, n_documents) ** 2
    return _cross(share, fit, at.S_ref, at.ln_C_ref + math.log(N), region)


def _widest_t(dof: int, n_documents: int | None) -> float:
    """Student's t for the sum of two variances: the greater of those that each would take."""
    return max(student_t(dof), document_t(n_documents))


def line_covariance(S: ArrayLike, p_resampled: ArrayLike, n_documents: int | None = None) -> NDArray[np.float64] | None:
    """Covariance of (ln_C_ref, alpha) of `fit_windows` over resamples of the documents.

    Args:
        S: sizes, shape [M].
        p_resampled: shares of windows of hits, shape [B, M]; rows with a share of 0, 1 or NaN are left out.
        n_documents: that were resampled; None where they are not counted.

    Returns:
        Shape [2, 2], or None if fewer than 20 rows are left.

    Raises:
        ValueError: if a value is not a share, or shapes disagree.
    """
    x_M, y_BM = np.log(np.asarray(S, dtype=np.float64)), neg_ln(p_resampled)
    if y_BM.ndim != 2 or y_BM.shape[1:] != x_M.shape:
        raise ValueError(f"p_resampled has shape {y_BM.shape}, expected [B, {len(x_M)}]")
    ln_y_BM = np.log(y_BM[np.all((y_BM > 0) & np.isfinite(y_BM), axis=1)])
    documents = moments(np.zeros(2), line(x_M, ln_y_BM), n_documents)
    return None if documents is None else documents.covariance_PP


def _added(scatter: NDArray[np.float64], added: ArrayLike | None) -> NDArray[np.float64]:
    covariance = scatter if added is None else scatter + np.asarray(added, dtype=np.float64)
    if covariance.shape != (2, 2):
        raise ValueError(f"the covariance of (ln_C_ref, alpha) is 2 by 2, got shape {covariance.shape}")
    return covariance


def _cross(share: float, fit: LawFit, S_ref: float, ln_C_ref: float, region: NDArray[np.float64] | None) -> Crossing:
    """Where one law reaches a share, by its constant at S_ref and the region of its constant and exponent."""
    level, alpha = _level(share), fit.alpha
    if alpha is None or alpha <= 0:
        return _nowhere(share, Status.never_crosses)
    ln_S_ref, ln_sizes = math.log(S_ref), np.log(fit.S)
    ln_S = ln_S_ref + (ln_C_ref - level) / alpha
    lo, hi = (None, None) if region is None else fieller(ln_C_ref - level, alpha, region)
    ends = [None if end is None else ln_S_ref + end for end in (lo, hi)]
    outside = max(ln_S - float(ln_sizes.max()), float(ln_sizes.min()) - ln_S)
    reasons = [fit.status, *([Status.beyond] if outside > math.log(FAR) else [])]
    return Crossing(share, ln_S, ends[0], ends[1], first_of(reasons), Status.beyond in reasons)


def _level(share: float) -> float:
    """ln(-ln share)."""
    if not 0 < share < 1:
        raise ValueError(f"a share to cross lies between 0 and 1, got {share}")
    return math.log(-math.log(share))


def _nowhere(share: float, status: Status) -> Crossing:
    _level(share)
    return Crossing(share, None, None, None, status)
