"""Parameters of a law in size and their uncertainty, from its points and their resamples.

Shapes: N sizes, B resamples of the documents.
"""

from dataclasses import dataclass, replace

import numpy as np

from rbpx.laws.intervals.bootstrap import Moments, moments
from rbpx.laws.intervals.resampled import Resampled
from rbpx.laws.names import Method
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.numeric.side_by_side import Searching
from rbpx.laws.power.regression import Regression, refit, regress
from rbpx.laws.power.uncertainty import Uncertainty, uncertainty
from rbpx.status import Status


@dataclass(frozen=True, eq=False)
class FoundLaw:
    """A law that was found.

    Attributes:
        ln_S_ref: of the geometric mean of the sizes.
        x_N: ln(S / S_ref).
        ln_y_N: logarithms of the values.
        regression: of ln y on x.
        spread: its uncertainty.
        sigma_N: standard deviation of each ln y; None unless it weighs.
        has_interval: not where resamples were given, of which too few are usable.
    """

    ln_S_ref: float
    x_N: Floats
    ln_y_N: Floats
    regression: Regression
    spread: Uncertainty
    sigma_N: Floats | None
    has_interval: bool


def estimate(S_N: Floats, y_N: Floats, resampled: Resampled | None, method: Method) -> Searching[FoundLaw | Status]:
    """The law, or the status that says why there is none: no_variation where all y are equal."""
    reason = doubt(S_N, y_N, method)
    if reason is not None:
        return reason
    if np.all(y_N == y_N[0]):
        return Status.no_variation
    ln_S_ref = float(np.log(S_N).mean())
    x_N, ln_y_N = np.log(S_N) - ln_S_ref, np.log(y_N)
    used = resampled if resampled is not None and resampled.suffices else None
    sigma_N = None
    if method is Method.weighted:
        # The standard deviation of equal values is rounding, not 0.
        if used is None or not np.all(np.ptp(used.ln_y_BN, axis=0) > 0):
            return Status.no_variances
        sigma_N = np.sqrt(np.diag(used.covariance_NN))
    regression = yield from regress(x_N, ln_y_N, method, sigma_N)
    if not regression.converged:
        return Status.not_converged
    spread = yield from _spread(regression, method, x_N, used)
    return FoundLaw(ln_S_ref, x_N, ln_y_N, regression, spread, sigma_N, resampled is None or spread.knows_text)


def _spread(regression: Regression, method: Method, x_N: Floats, resampled: Resampled | None) -> Searching[Uncertainty]:
    """The uncertainty of a regression; resamples whose refit does not converge are left out."""
    if resampled is None:
        return uncertainty(regression, None, x_N)
    if regression.is_linear(method):  # mean and covariance of the refits, without these
        L_PN = regression.sensitivity_PN
        text: Moments | None = Moments(L_PN @ resampled.mean_N - regression.theta_P, resampled.covariance_of(L_PN))
        return uncertainty(regression, (text, resampled), x_N)
    theta_BP = yield from refit(regression, method, x_N, resampled.ln_y_BN)
    ended_B = np.isfinite(theta_BP).all(axis=1)
    text = moments(regression.theta_P, theta_BP[ended_B])
    if not ended_B.all():
        ended = Resampled.of_logarithms(resampled.ln_y_BN[ended_B])
        resampled = replace(ended, n_documents=resampled.n_documents)
    return uncertainty(regression, (text, resampled), x_N)


def doubt(S_N: Floats, y_N: Floats, method: Method) -> Status | None:
    """Why no law can be fitted to these points."""
    if len(set(S_N.tolist())) < (4 if method is Method.offset else 3):
        return Status.too_few_sizes
    if not np.all((y_N > 0) & np.isfinite(y_N)):
        return Status.not_positive
    return None
