"""Finds the size at which the share of windows of hits reaches a level: by a law, or over forms outside the sizes.

Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, solved for S; intervals by Fieller, Biometrika 1940.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.estimate import Estimate, document_t, fieller, student_t
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.laws.power.law import LawFit, PowerLaw
from rbpx.laws.prediction.prediction import COMBINED, Reached, reach_over_forms
from rbpx.laws.prediction.verdict import FAR
from rbpx.questions.emergence.law import JointFit
from rbpx.questions.emergence.pooled import PooledFit
from rbpx.status import Status, first_of


@dataclass(frozen=True)
class Crossing:
    """Where p_{N,k} = share: ln_S with its 95 % interval from ln_lo to ln_hi, natural logarithms of S.

    An end is None where the interval is unbounded on that side, as where alpha is not significantly different from 0.
    All three are None where the law has no numbers, or does not rise towards the share. The status is that of the law,
    or `beyond` where S is more than 10 times outside the measured sizes, as the interval assumes that the law holds
    there; is_beyond says so whatever the status.

    Where the answer is over forms, `law` is the answer of the law alone. Then ln_S may be None with an end known: at no
    size that was searched is a model more likely than not to reach the level.
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
        """`combined` where the answer is over forms, else `law`."""
        return "law" if self.law is None else COMBINED

    @property
    def has_numbers(self) -> bool:
        """Whether anything is known of the size."""
        return any(number is not None for number in (self.ln_S, self.ln_lo, self.ln_hi))

    @property
    def size(self) -> Estimate:
        """S, non-embedding parameters; None also where it is outside the range of a float."""
        return Estimate(self.ln_S, self.ln_lo, self.ln_hi).exp()

    def record(self) -> dict[str, Any]:
        """The row for programs."""
        of = {"S": self.size.value, "lo": self.size.lo, "hi": self.size.hi, "method": self.method}
        return {**vars(self), **of, "law": None if self.law is None else self.law.record()}


def windows_crossing(fit: PowerLaw, share: float) -> Crossing:
    """Size at which a law of one window length (`fit_windows`) reaches a share, S = (C_N / -ln share)^(1 / alpha_N).

    The interval inverts the confidence band of the regression: it contains all x = ln S with
    |ln_C_ref - alpha (x - ln S_ref) - ln(-ln share)| <= t_{n-2} se(x). Where that set falls in two, alpha could be
    negative; the half that is kept belongs to laws of positive alpha, which reach the share from below. Where the fit
    knows the covariance of constant and exponent over documents, that is added: the scatter of the sizes does not show
    the noise that all sizes share.

    Args:
        fit: from `fit_windows`.
        share: the level q of p_{N,k}, between 0 and 1.

    Returns:
        The crossing; its status is never_crosses if alpha <= 0, else that of the fit, or beyond.

    Raises:
        ValueError: if share is not between 0 and 1.
    """
    if fit.theta_P is None or fit.alpha.stderr is None:
        return _nowhere(share, first_of([fit.status]))
    n, spread = fit.n_points, float(np.sum((np.log(fit.S) - math.log(fit.S_ref)) ** 2))
    scatter_22 = np.diag([fit.alpha.stderr**2 * spread / n, fit.alpha.stderr**2])
    over = (None, None) if fit.uncertainty is None else (fit.uncertainty.text_PP, fit.uncertainty.n_documents)
    return _cross(share, fit, fit.S_ref, float(fit.theta_P[0]), _region(scatter_22, n - 2, *over))


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
        return _nowhere(share, first_of([fit.status]))
    if N not in fit.constants:
        return _nowhere(share, Status.not_positive)
    places = [list(fit.constants).index(N), -1]
    region = None
    if fit.interval is not None:
        region = fit.found.scatter.region_PP()[np.ix_(places, places)]
    return _cross(share, fit, fit.found.S_ref, fit.found.ln_C_ref[N], region)


def joint_crossing(fit: JointFit, N: int, share: float) -> Crossing:
    """Size at which the joint law reaches a share at window length N, S = (C N / -ln share)^(1 / alpha).

    The interval is as in `windows_crossing`, with n_sizes - 2 degrees of freedom. It takes the law for true at this
    N, so compare with the crossing of the law of that N alone.

    Args:
        fit: from `fit_joint`.
        N: window length, tokens.
        share: the level q of p_{N,k}, between 0 and 1.

    Returns:
        The crossing; its status is never_crosses if alpha <= 0, else that of the fit, or beyond.

    Raises:
        ValueError: if share is not between 0 and 1, or N below 1.
    """
    if N < 1:
        raise ValueError(f"a window has at least 1 token, got {N}")
    at = fit.constant_at_ref
    if at is None or fit.alpha.stderr is None:
        return _nowhere(share, first_of([fit.status]))
    scatter_22 = np.diag([at.ln_C_ref_stderr**2, fit.alpha.stderr**2])
    region_22 = _region(scatter_22, fit.n_sizes - 2, fit.document_22, fit.n_documents)
    return _cross(share, fit, at.S_ref, at.ln_C_ref + math.log(N), region_22)


def _region(scatter_22: Floats, dof: int, document_22: Floats | None, n_documents: int | None) -> Floats:
    """Covariance of (ln_C_ref, alpha) times the square of the greater of the t that its two parts would take."""
    if document_22 is None:
        return scatter_22 * student_t(dof) ** 2
    return np.asarray((scatter_22 + document_22) * max(student_t(dof), document_t(n_documents)) ** 2)


def _cross(share: float, fit: LawFit, S_ref: float, ln_C_ref: float, region: Floats | None) -> Crossing:
    """Where one law reaches a share, by its constant at S_ref and the region of its constant and exponent."""
    if not 0 < share < 1:
        raise ValueError(f"a share to cross lies between 0 and 1, got {share}")
    if fit.alpha.value is None or fit.alpha.value <= 0:
        return _nowhere(share, Status.never_crosses)
    ln_S_ref, height = math.log(S_ref), ln_C_ref - math.log(-math.log(share))
    ln_S = ln_S_ref + height / fit.alpha.value
    lo, hi = (None, None) if region is None else fieller(height, fit.alpha.value, region)
    ends = [None if end is None else ln_S_ref + end for end in (lo, hi)]
    is_beyond = _outside(ln_S, fit.S) > math.log(FAR)
    reasons = [fit.status, *([Status.beyond] if is_beyond else [])]
    return Crossing(share, ln_S, ends[0], ends[1], first_of(reasons), is_beyond)


def _nowhere(share: float, status: Status) -> Crossing:
    return Crossing(share, None, None, None, status)


def _outside(ln_S: float, S: ArrayLike) -> float:
    """How far a size lies outside the others, in ln S; 0 or less within them."""
    ln_S_M = np.log(S)
    return max(ln_S - float(ln_S_M.max()), float(ln_S_M.min()) - ln_S)


class Extrapolation:
    """Extrapolates the shares of one window length over forms, once for all laws and levels, when first asked.

    Within the sizes any form that fits the points reaches a level at about the same size, so the law answers, with its
    interval over documents and models. Outside them the form decides, so the answer is over forms, like that of
    `predict`: the size of a new model, measured on the same documents.
    """

    def __init__(self, S: ArrayLike, p_M: ArrayLike, levels: Sequence[float]) -> None:
        """Take the points.

        Args:
            S: sizes, shape [M].
            p_M: shares of windows of hits, shape [M]; with one of 0 or 1 nothing can be extrapolated over forms.
            levels: shares to reach.
        """
        self._S_M, self._y_M, self._levels = np.asarray(S, dtype=np.float64), neg_ln(p_M), levels

    @cached_property
    def _reached(self) -> dict[float, Reached]:
        found = reach_over_forms(self._S_M, self._y_M, [-math.log(level) for level in self._levels])
        return dict(zip(self._levels, found or (), strict=False))

    def of(self, law: Crossing, status: Status) -> Crossing:
        """The crossing over forms where that of a law with this status lies outside the sizes; else the law's."""
        if law.ln_S is None or _outside(law.ln_S, self._S_M) <= 0 or law.share not in self._reached:
            return law
        reached = self._reached[law.share]
        is_beyond = reached.ln_S is None or _outside(reached.ln_S, self._S_M) > math.log(FAR)
        reasons = [status, *([Status.beyond] if is_beyond else [])]
        return Crossing(law.share, reached.ln_S, reached.ln_lo, reached.ln_hi, first_of(reasons), is_beyond, law)
