"""Fits one exponent to several families, y = E + C_f S^(-alpha), whose residuals at the same size are correlated.

Families that were trained alike err alike: the residuals of Pythia and of Pythia trained on deduplicated text correlate
by .98, so the two are worth little more than one. The interval counts an effect that a size has on all families only
once; sizes trained more than once separate misfit from scatter (`replicates`).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.families.series import SeriesLaw, fit_series, profile_ends
from rbpx.laws.intervals.estimate import LEVEL, NO_ESTIMATE, Estimate, flat, student_t
from rbpx.laws.intervals.lack_of_fit import (
    NestedTest,
    correlations,
    effective_families,
    exponents_test,
    is_rounding,
    lack_of_fit_test,
    runs_p,
    stack_families,
)
from rbpx.laws.names import Method
from rbpx.laws.numeric import exp_or_none
from rbpx.laws.power.uncertainty import shared_error
from rbpx.status import Status

EQUATIONS: Final = {Method.ols: "y = C_f * S^(-alpha)", Method.offset: "y = E + C_f * S^(-alpha), E >= 0"}
_AT_BOUND: Final = 1e-7  # of the smallest y: a smaller offset counts as 0


def fit_pooled(
    S: Sequence[ArrayLike],
    y: Sequence[ArrayLike],
    y_replicates: Sequence[ArrayLike | None] | None = None,
    method: Method = Method.ols,
    n_effective: float | None = None,
) -> dict[str, Any]:
    """Fits ln y = ln(E + C_f S^(-alpha)) to the points of several families by least squares.

    `ols` is the line with fixed effects, in closed form; `offset` is searched, with profile intervals widened by the
    effects of sizes.

    Args:
        S: non-embedding parameters of each family, F arrays of shape [N_f]; equal ones are replicates.
        y: the quantity of each, positive.
        y_replicates: the same under bootstrap replicates, from the same documents for all families, [B, N_f] each.
        method: `ols` for E = 0, or `offset`.
        n_effective: effective sample size of the documents; None where they are not counted.

    Returns:
        status: too_few_sizes (fewer than 4 different sizes for an offset), no_variation (every family is constant) or
            not_converged, without the numbers below; else bends with reasons, at_bound where E is 0, or ok.
        reasons: why it bends: the exponents differ, or the law is misfit; else the status of a law without numbers.
        alpha: the shared exponent, `alpha_lo` to `alpha_hi` its 95 % interval over models and documents.
        alpha_stderr: from the scatter of the models and the shared effects of sizes, with `alpha_dof` degrees of
            freedom.
        C: each family's constant at S = 1, in the unit of y.
        E: the shared offset with its interval; 0 for `ols`.
        residual_sd: of ln y about the law.
        residuals: ln y measured minus law, for each family in the order of its sizes.
        correlation: of the residuals of each two families about laws with their own exponents, None for fewer than 4
            shared sizes; `mean_correlation` over the pairs.
        effective_families: F / (1 + (F - 1) mean_correlation): independent families of the same worth.
        exponents: test of equal exponents; None where it is impossible.
        replicates: test of lack of fit against pure error, by sizes that families share; None where there are none.
        curvature: coefficient of (ln S)^2 common to the residuals of all families, with its 95 % interval.
        runs: `runs_p` of each family.
        verdict: what the residuals show, in words.
    """
    sizes, values = ([np.asarray(each, np.float64) for each in of] for of in (S, y))
    status = Status.no_variation if all(np.all(each == each[0]) for each in values) else Status.ok
    if method is Method.offset and len(np.unique(np.concatenate(sizes))) < 4:
        status = Status.too_few_sizes
    if status is not Status.ok:
        return {"method": method, "status": status, "reasons": (status,)}
    points, n = stack_families(sizes, values, y_replicates, n_effective), len(sizes)
    law = line = fit_series(points)
    if method is Method.offset:
        searched = fit_series(points, n_E=1)
        smallest = float(np.exp(points.ln_y_M.min()))
        at_bound = searched.theta_P[-1] <= _AT_BOUND * smallest or searched.squares >= line.squares
        law = line if at_bound else searched
    if not law.converged:
        return {"method": method, "status": Status.not_converged, "reasons": (Status.not_converged,)}
    residual_M, own_MQ, J_MP = law.residual_M, law.own_MQ, law.jacobian_MP
    value, error = float(law.theta_P[n]), shared_error(points, J_MP, residual_M, at=n)
    alpha, E = error.around(value), Estimate(0.0, 0.0, 0.0)
    if method is Method.offset:
        alpha, E = _profiled(law, line)
    of_families = [points.family_M == f for f in range(n)]
    own_M = residual_M - own_MQ @ (np.linalg.pinv(own_MQ) @ residual_M)
    matrix_FF, dof = correlations(points, own_M), len(own_M) - J_MP.shape[1]
    mean, effective = effective_families(matrix_FF)
    exponents = exponents_test(points, J_MP, own_MQ, residual_M)
    replicates, curve = lack_of_fit_test(points, own_MQ, residual_M), _curvature(law)
    runs = [runs_p(points.x_M[of], own_M[of]) if method is Method.ols else None for of in of_families]
    differ = ("exponents differ",) if exponents is not None and exponents.p < 1 - LEVEL else ()
    doubt, verdict = _judged(replicates, curve, runs)
    reasons = (*differ, *doubt)
    status = Status.at_bound if method is Method.offset and law is line else Status.ok
    return {
        "method": method,
        "status": Status.bends if reasons else status,
        "reasons": reasons,
        **flat({"alpha": alpha, "E": E}),
        "alpha_stderr": error.scatter,
        "alpha_dof": error.dof,
        "C": [exp_or_none(ln_C + value * points.ln_S_ref) for ln_C in law.theta_P[:n].tolist()],
        "residual_sd": (law.squares / dof) ** 0.5 if dof > 0 else None,
        "residuals": [residual_M[of].tolist() for of in of_families],
        "correlation": matrix_FF,
        "mean_correlation": mean,
        "effective_families": effective,
        "exponents": exponents and vars(exponents),
        "replicates": replicates and vars(replicates),
        "curvature": curve.record(),
        "runs": runs,
        "verdict": verdict,
        "equation": EQUATIONS[method],
    }


def _profiled(law: SeriesLaw, line: SeriesLaw) -> tuple[Estimate, Estimate]:
    """Alpha and E with intervals along the valley in which they trade off.

    The sum of squares may rise by t^2 times the variance that one independent point would need for the parameter's
    error; documents extend each end. At E = 0, where alpha is a slope, that variance is another one.
    """
    points, n = law.points, law.points.n_families
    if law is line:  # the offset as if it were free, at 0
        law = replace(line, theta_P=np.append(line.theta_P, 0.0), n_E=1)
    found, exact = [], is_rounding(law.residual_M, points.ln_y_M)
    for at in (n, n + 1):
        value, error = float(law.theta_P[at]), shared_error(points, law.jacobian_MP, law.residual_M, at=at)
        t = student_t(error.dof)
        ends: tuple[float | None, float | None] = (None, None)
        if math.isfinite(t):
            limit = law.squares + t**2 * error.variance_of_one
            ends = (value, value) if exact else profile_ends(law, at, t * error.scatter, limit)
        found.append((value, ends, error))
    (alpha, alpha_ends, of_alpha), (E, E_ends, of_E) = found
    t = student_t(of_E.dof)
    left = -1.0 if exact or math.isinf(t) else t**2 - (line.squares - law.squares) / of_E.variance_of_one
    if left >= 0:
        slope = float(line.theta_P[n])
        reach = math.sqrt(left) * shared_error(points, line.jacobian_MP, line.residual_M, at=n).scatter
        lo, hi = alpha_ends
        alpha_ends = None if lo is None else min(lo, slope - reach), None if hi is None else max(hi, slope + reach)

    def further(value: float, end: float | None, rest: float) -> float | None:
        return None if end is None else value + math.copysign(math.hypot(end - value, rest**0.5), end - value)

    lo, hi = (further(E, end, of_E.document_part) for end in E_ends)
    smallest = float(np.exp(points.ln_y_M.min()))
    of_E_alone = Estimate(E, None if lo is None else max(lo, 0.0), None if hi is None else min(hi, smallest))
    return Estimate(alpha, *(further(alpha, end, of_alpha.document_part) for end in alpha_ends)), of_E_alone


def _curvature(law: SeriesLaw) -> Estimate:
    """Coefficient of (ln S)^2 common to the families, beyond their own constants and exponents."""
    J_MP = np.column_stack([law.own_MQ, law.points.x_M**2])
    rank = int(np.linalg.matrix_rank(J_MP))
    if rank < J_MP.shape[1] or rank >= len(J_MP):
        return NO_ESTIMATE
    coefficients = np.linalg.pinv(J_MP) @ law.residual_M
    error = shared_error(law.points, J_MP, law.residual_M - J_MP @ coefficients, at=J_MP.shape[1] - 1)
    return error.around(float(coefficients[-1]))


def _judged(test: NestedTest | None, curve: Estimate, runs: Sequence[float | None]) -> tuple[tuple[str, ...], str]:
    """Reasons to doubt the form, and the verdict on the residuals."""
    if test is not None:
        said = (
            f"trainings of one size differ by {test.sd_rest:.2g} in ln y where the law is off by {test.sd_about:.2g} "
            f"(F = {test.F:.3g}, p = {test.p:.2g})"
        )
        return (("misfit",), f"misfit, not scatter: {said}") if test.p < 1 - LEVEL else ((), f"scatter: {said}")
    known, said = [p for p in runs if p is not None], "no size was trained twice"
    if curve.leaves_out_0:
        q = f"{curve.value:+.2g} ({curve.lo:+.2g} to {curve.hi:+.2g})"
        return ("curvature",), f"the points curve by {q} per (ln S)^2; {said}"
    if known and len(known) * min(known) < 1 - LEVEL:
        return ("runs",), f"neighbouring sizes err to the same side (p = {min(known):.2g}); {said}"
    return (), f"no misfit shows, but {said} to tell it from scatter"
