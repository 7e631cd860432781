"""Laws in size of the share of windows of hits, for each length N or all, and where one reaches a share.

If hits were independent with -ln RBP_k = C S^(-alpha), then -ln p_{N,k} = C N S^(-alpha).

Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7; intervals of sizes by Fieller, Biometrika 1940. Shapes: M
sizes, N window lengths, B replicates of the documents.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, Replicates, document_t, fieller, from_half_width, student_t
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.predicted import FAR
from rbpx.laws.prediction.prediction import COMBINED
from rbpx.status import Status, first_of

EQUATION: Final = "-ln p_N = C * N * S^(-alpha), ordinary least squares of ln(-ln p_N) - ln N on ln S, 0 < p_N < 1"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eqs. 6-8"


@dataclass(frozen=True, eq=False)
class WindowLaw:
    """The law of all window lengths: its numbers, and further keys of its record."""

    fit: PowerLaw
    params: dict[str, Any]


def fit_windows(S: Floats, p_M: Floats, p_BM: Floats | None = None, n_effective: float | None = None) -> PowerLaw:
    """Fits -ln p_N = C_N * S^(-alpha_N) at one length N, as figure 7 of the paper; C_N includes N."""
    return fit_power_law(S, neg_ln(p_M), None if p_BM is None else Replicates.of(neg_ln(p_BM), n_effective))


def fit_joint(
    S: Floats,
    lengths: Sequence[int],
    p_MN: Floats,
    p_BMN: Floats | None = None,
    n_effective: float | None = None,
) -> WindowLaw:
    """Fits -ln p_N = C * N * S^(-alpha) to all sizes and window lengths with 0 < p < 1, with equal weights.

    Sizes are the units that scatter: the line is that of their means of ln(-ln p) - ln N, weighted by their numbers of
    points. R2 is of ln(-ln p) and r2_p of p, over the points. Replicates in which one is 0, 1 or NaN are left out.
    """
    ln_N_N, ln_y_MN = np.log(lengths), _ln_neg_ln(p_MN)
    used_MN = np.isfinite(ln_y_MN)
    n_M = used_MN.sum(axis=1)
    fitted_M = n_M > 0

    def means(ln_y_MN: Floats) -> Floats:
        """Means of ln(-ln p) - ln N over the points of a size, [..., M]."""
        left_MN = np.where(used_MN, ln_y_MN - ln_N_N, 0.0)
        return np.asarray(left_MN.sum(axis=-1)[..., fitted_M] / n_M[fitted_M])

    replicates = None
    if p_BMN is not None:
        replicates = Replicates.of_logarithms(means(_ln_neg_ln(p_BMN)), n_effective)
    counts, y_M = n_M[fitted_M].astype(np.float64) if fitted_M.any() else None, np.exp(means(ln_y_MN))
    fit = fit_power_law(S[fitted_M], y_M, replicates, backtests=False, weight_N=counts)
    status = fit.status or Status.ok
    if status is Status.too_few_sizes and len(set(S.tolist())) > 2:
        status = Status.not_positive
    params: dict[str, Any] = {"S": S.tolist(), "lengths": list(lengths), "p": _listed(p_MN), "interval": fit.interval}
    params |= {"equation": EQUATION, "source": SOURCE, "n_left_out": int((~used_MN).sum()), "n_sizes": len(y_M)}
    fit = replace(fit, aic=None, bic=None, n_points=int(used_MN.sum()), status=status)
    if fit.regression is None:
        return WindowLaw(fit, params)
    (ln_C_ref, alpha), ln_S_ref, about = fit.regression.theta_P.tolist(), math.log(fit.S_ref), fit.uncertainty
    ln_C = ln_C_ref + alpha * ln_S_ref
    of_alpha, of_ln_C = (
        from_half_width(at, math.inf if about is None else about.half_width(np.array(of_P)))
        for at, of_P in ((alpha, [0.0, 1.0]), (ln_C, [1.0, ln_S_ref]))
    )
    C = of_ln_C.exp()
    ln_law_MN = ln_C + ln_N_N - alpha * np.log(S)[:, None]
    r2, r2_p = (
        1 - float(((of_MN - law_MN)[used_MN] ** 2).sum() / (len(of_MN[used_MN]) * of_MN[used_MN].var()))
        for of_MN, law_MN in ((ln_y_MN, ln_law_MN), (p_MN, np.exp(-np.exp(ln_law_MN))))
    )
    fit = replace(fit, C=C, alpha=replace(of_alpha, stderr=fit.alpha.stderr), r2=Estimate(r2))
    return WindowLaw(fit, params | {"C_lo": C.lo, "C_hi": C.hi, "r2_p": r2_p})


def _listed(values_MN: Floats) -> list[list[float | None]]:
    return [[float(v) if math.isfinite(v) else None for v in row] for row in values_MN]


def _ln_neg_ln(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(neg_ln(p)))


def crossing(fit: PowerLaw, share: float) -> dict[str, Any]:
    """The size at which a law reaches a share, S = (C / -ln share)^(1 / alpha).

    The interval has the sizes at which the share lies within that of the law; where that set falls in two, the part
    with positive alpha is kept. All is None where the law has no numbers or does not rise. `beyond` is more than 10
    times outside the sizes.
    """
    alpha, status, theta_P, about = fit.alpha, first_of([fit.status]), fit.theta_P, fit.uncertainty
    if alpha.value is None or alpha.stderr is None or theta_P is None:
        return _at(share, Estimate(), status if alpha.stderr is None else Status.not_positive)
    if alpha.value <= 0:
        return _at(share, Estimate(), Status.unreachable)
    ln_S_ref, height, lo, hi = math.log(fit.S_ref), float(theta_P[0]) - math.log(-math.log(share)), None, None
    if about is not None:
        # the covariance, times the square of the greater of the t that its two parts would take
        t = max(student_t(about.dof), document_t(about.n_effective) if about.knows_text else 0.0)
        lo, hi = fieller(height, alpha.value, t**2 * (about.scatter**2 * about.spread_PP + about.text_PP))
    ln_S = Estimate(height / alpha.value, lo, hi).through(lambda each: ln_S_ref + each)
    return _at(share, ln_S, status, outside(ln_S.value, fit.S) > math.log(FAR))


def average_crossing(at: dict[str, Any], fit: PowerLaw, ln_S: Estimate) -> dict[str, Any]:
    """The crossing of a law outside the sizes, by the prediction over forms, with that of the law beside it.

    ln_S may be None with a known end: no size reaches the share with a probability above one half.
    """
    is_beyond = ln_S.value is None or outside(ln_S.value, fit.S) > math.log(FAR)
    return _at(at["share"], ln_S, first_of([fit.status]), is_beyond) | {"method": COMBINED, "law": at}


def outside(ln_S: float | None, S: Sequence[float]) -> float:
    """How far a size lies outside the others, in ln S; 0 or less within them."""
    return 0.0 if ln_S is None else max(ln_S - math.log(max(S)), math.log(min(S)) - ln_S)


def _at(share: float, ln_S: Estimate, status: Status, is_beyond: bool = False) -> dict[str, Any]:
    status = first_of([status, Status.beyond]) if is_beyond else status
    S, ends = ln_S.exp(), {"ln_S": ln_S.value, "ln_lo": ln_S.lo, "ln_hi": ln_S.hi}
    at: dict[str, Any] = {"share": share, **ends, "status": status, "is_beyond": is_beyond, "law": None}
    return at | {"S": S.value, "lo": S.lo, "hi": S.hi, "method": "law"}
