"""One exponent for several families, y = E + C_f S^(-alpha), whose residuals at the same size go together.

Families that were trained alike err alike: the residuals of Pythia and of Pythia trained on deduplicated text correlate
by .98, so both say little more than one. The interval counts what each size says once (`size_effects`); where sizes
were trained more than once, misfit is told apart from scatter (`replicates`).
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.families.shared_offset import SharedLaw, fit_line, fit_offset, profile_ends
from rbpx.laws.intervals.estimate import LEVEL, Estimate, student_t
from rbpx.laws.intervals.lack_of_fit import (
    NestedTest,
    Stacked,
    correlations,
    effective_families,
    exponents_test,
    is_rounding,
    lack_of_fit_test,
    runs_p,
    stack,
)
from rbpx.laws.names import Method
from rbpx.laws.numeric import exp_or_none
from rbpx.laws.power.uncertainty import SharedError, shared_error
from rbpx.status import Status

EQUATIONS: Final = {Method.ols: "y = C_f * S^(-alpha)", Method.offset: "y = E + C_f * S^(-alpha), E >= 0"}
_ALPHA_LEVEL: Final = 1 - LEVEL


@dataclass(frozen=True, kw_only=True)
class PooledFit:
    """A law with one exponent for F families; None where a number is unknown.

    Attributes:
        method: `ols` for E = 0, `offset`.
        alpha: the shared exponent.
        alpha_stderr: from the scatter of the models, with the effects that sizes have on all families.
        alpha_dof: its degrees of freedom.
        alpha_lo: lower end of the 95 % interval, with models and documents.
        alpha_hi: upper end.
        C: each family's constant at S = 1, in the unit of y.
        E: the shared offset; 0 for `ols`.
        E_lo: lower end of its 95 % interval.
        E_hi: upper end.
        residual_sd: of ln y about the law.
        residuals: ln y measured minus law, for each family in the order of its sizes.
        correlation: of the residuals of each two families about laws with their own exponents, None for fewer than 4
            shared sizes.
        mean_correlation: of the pairs.
        effective_families: F / (1 + (F - 1) mean_correlation): independent families of the same worth.
        exponents: test of equal exponents; None where there is nothing to test with.
        replicates: test of lack of fit against pure error, by sizes that families share; None where there are none.
        curvature: coefficient of (ln S)^2 that the residuals of all families have in common, with its 95 % interval.
        runs: for each family how probable residuals as smooth are under scatter (`runs_p`).
        status: bends where the exponents differ or the law is misfit, else of the fit.
        reasons: why, in words; empty where the law stands.
    """

    method: Method
    alpha: float | None = None
    alpha_stderr: float | None = None
    alpha_dof: float | None = None
    alpha_lo: float | None = None
    alpha_hi: float | None = None
    C: tuple[float | None, ...]
    E: float | None = None
    E_lo: float | None = None
    E_hi: float | None = None
    residual_sd: float | None = None
    residuals: tuple[tuple[float, ...], ...] = ()
    correlation: tuple[tuple[float | None, ...], ...]
    mean_correlation: float | None = None
    effective_families: float | None = None
    exponents: NestedTest | None = None
    replicates: NestedTest | None = None
    curvature: Estimate = field(default_factory=Estimate)
    runs: tuple[float | None, ...]
    status: Status
    reasons: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """What the residuals are, in words."""
        return _judged(self.replicates, self.curvature, self.runs)[1]

    def record(self) -> dict[str, Any]:
        """As plain values."""
        plain = {**asdict(self), "curvature": self.curvature.record(), "verdict": self.verdict}
        return plain | {"method": self.method.value, "status": self.status.value, "equation": EQUATIONS[self.method]}


def fit_pooled(
    S: Sequence[ArrayLike],
    y: Sequence[ArrayLike],
    y_replicates: Sequence[ArrayLike | None] | None = None,
    method: Method = Method.ols,
    n_documents: int | None = None,
) -> PooledFit:
    """Fit ln y = ln(E + C_f S^(-alpha)) to the points of several families by least squares.

    `ols` is the line with fixed effects, in closed form; `offset` is searched, its intervals follow the
    profile of the sum of squares, widened by the effects of sizes.

    Args:
        S: non-embedding parameters of each family, F arrays of shape [N_f]; equal ones are replicates.
        y: the quantity of each, positive.
        y_replicates: the same under B replicates, the same documents for all families, shape [B, N_f] each.
        method: `ols` or `offset`.
        n_documents: that were resampled; None where they are not counted.

    Returns:
        The fit. Its status is too_few_sizes where a family has fewer than 3 different sizes (4 different ones in all
        for an offset), not_positive for a y that is not positive and finite, no_variation where every family stays the
        same, not_converged, at_bound where E is 0; bends where there are reasons to doubt it.

    Raises:
        ValueError: fewer than two families, another method, or sizes that are not positive.
    """
    if method not in EQUATIONS:
        raise ValueError(f"a pooled law is fitted by ols or offset, not {method}")
    sizes, values = ([np.asarray(each, np.float64) for each in of] for of in (S, y))
    if len(sizes) < 2:
        raise ValueError(f"a pooled law needs two families, got {len(sizes)}")
    if any(np.any(~(each > 0)) for each in sizes):
        raise ValueError("sizes have to be positive")
    fewest = 4 if method is Method.offset else 3
    if min(len(np.unique(each)) for each in sizes) < 3 or len(np.unique(np.concatenate(sizes))) < fewest:
        return _without_numbers(method, len(sizes), Status.too_few_sizes)
    if any(np.any(~(each > 0) | ~np.isfinite(each)) for each in values):
        return _without_numbers(method, len(sizes), Status.not_positive)
    if all(np.all(each == each[0]) for each in values):
        return _without_numbers(method, len(sizes), Status.no_variation)
    points = stack(sizes, values, y_replicates, n_documents)
    law = fit_line(points) if method is Method.ols else fit_offset(points)
    if not law.converged:
        return _without_numbers(method, len(sizes), Status.not_converged)
    return _with_numbers(points, law, method)


def _with_numbers(points: Stacked, law: SharedLaw, method: Method) -> PooledFit:
    n, dof = points.n_families, len(points.x_M) - law.jacobian_MP.shape[1]
    error = shared_error(points, law.jacobian_MP, law.residual_M, at=n)
    alpha, E = error.around(law.alpha), Estimate(0.0, 0.0, 0.0)
    if method is Method.offset:
        alpha, E = _profiled(points, law)
    own_M = law.residual_M - law.own_MQ @ (np.linalg.pinv(law.own_MQ) @ law.residual_M)
    matrix_FF = correlations(points, own_M)
    mean, effective = effective_families(matrix_FF)
    exponents = exponents_test(points, law.jacobian_MP, law.own_MQ, law.residual_M)
    replicates = lack_of_fit_test(points, law.own_MQ, law.residual_M)
    curve = _curvature(points, law)
    runs = tuple(runs_p(points.x_M[of], own_M[of]) for of in _families(points)) if method is Method.ols else (None,) * n
    reasons = []
    if exponents is not None and exponents.p < _ALPHA_LEVEL:
        reasons.append("exponents differ")
    doubt, _ = _judged(replicates, curve, runs)
    if doubt:
        reasons.append(doubt)
    status = Status.at_bound if law.at_bound else Status.ok
    return PooledFit(
        method=method,
        alpha=law.alpha,
        alpha_stderr=error.scatter,
        alpha_dof=error.dof,
        alpha_lo=alpha.lo,
        alpha_hi=alpha.hi,
        C=tuple(exp_or_none(float(ln_C) + law.alpha * points.ln_S_ref) for ln_C in law.ln_C_F),
        E=law.E,
        E_lo=E.lo,
        E_hi=E.hi,
        residual_sd=(law.squares / dof) ** 0.5 if dof > 0 else None,
        residuals=tuple(tuple(law.residual_M[of].tolist()) for of in _families(points)),
        correlation=tuple(map(tuple, matrix_FF)),
        mean_correlation=mean,
        effective_families=effective,
        exponents=exponents,
        replicates=replicates,
        curvature=curve,
        runs=runs,
        status=Status.bends if reasons else status,
        reasons=tuple(reasons),
    )


def _profiled(points: Stacked, law: SharedLaw) -> tuple[Estimate, Estimate]:
    """Intervals of alpha and E along the valley in which they trade off.

    The sum of squares may rise by t^2 times the variance that one point would need to have, were all independent, for
    the parameter to have the error that it has; documents add to each end. That variance is another one on the edge
    E = 0, where alpha is a slope: as far as E = 0 is allowed, alpha may be as far from that slope as is left over.
    """
    n, exact = points.n_families, is_rounding(law.residual_M, points.ln_y_M)
    free_MP = law.jacobian_MP
    if law.at_bound:  # the offset as if it were free, at 0
        free_MP = np.column_stack([free_MP, np.exp(law.residual_M - points.ln_y_M)])
    errors = [shared_error(points, free_MP, law.residual_M, at=at) for at in (n, n + 1)]
    ends: list[tuple[float | None, float | None]] = []
    for name, each in zip(("alpha", "E"), errors, strict=True):
        value, t = float(getattr(law, name)), student_t(each.dof)
        if math.isfinite(t) and not exact:
            ends.append(profile_ends(points, law, name, t * each.scatter, law.squares + t**2 * each.variance_of_one))
        else:
            ends.append((value, value) if math.isfinite(t) else (None, None))
    ends[0] = _with_edge(points, law, errors[1], ends[0]) if not exact else ends[0]
    alpha, E = (
        Estimate(value, *(None if end is None else _further(value, end, each.beside_scatter) for end in pair))
        for value, pair, each in zip((law.alpha, law.E), ends, errors, strict=True)
    )
    return alpha, Estimate(E.value, None if E.lo is None else max(E.lo, 0.0), E.hi)


def _with_edge(
    points: Stacked, law: SharedLaw, of_E: SharedError, ends: tuple[float | None, float | None]
) -> tuple[float | None, float | None]:
    """The ends of alpha, with those of the laws without an offset that the data allow."""
    line, t = fit_line(points), student_t(of_E.dof)
    if not math.isfinite(t) or line.squares - law.squares > t**2 * of_E.variance_of_one:
        return ends
    left = t**2 - (line.squares - law.squares) / of_E.variance_of_one
    reach = math.sqrt(left) * shared_error(points, line.jacobian_MP, line.residual_M, at=points.n_families).scatter
    lo, hi = ends
    return None if lo is None else min(lo, line.alpha - reach), None if hi is None else max(hi, line.alpha + reach)


def _further(value: float, end: float, rest: float) -> float:
    reach = abs(end - value)
    return end + math.copysign(math.sqrt(reach**2 + rest) - reach, end - value)


def _families(points: Stacked) -> list[NDArray[np.bool_]]:
    return [points.family_M == f for f in range(points.n_families)]


def _curvature(points: Stacked, law: SharedLaw) -> Estimate:
    """The coefficient of (ln S)^2 that the families have in common, beside their own constants and exponents."""
    J_MP = np.column_stack([law.own_MQ, points.x_M**2])
    rank = int(np.linalg.matrix_rank(J_MP))
    if rank < J_MP.shape[1] or rank >= len(J_MP):
        return Estimate()
    coefficients = np.linalg.pinv(J_MP) @ law.residual_M
    error = shared_error(points, J_MP, law.residual_M - J_MP @ coefficients, at=J_MP.shape[1] - 1)
    return error.around(float(coefficients[-1]))


def _judged(test: NestedTest | None, curve: Estimate, runs: Sequence[float | None]) -> tuple[str, str]:
    """A reason to doubt the form, empty where there is none, and what the residuals are."""
    if test is not None:
        compared = (
            f"trainings of one size differ by {test.sd_rest:.2g} in ln y where the law is off by {test.sd_about:.2g}"
        )
        words = f"{compared} (F = {test.F:.3g}, p = {test.p:.2g})"
        if test.p < _ALPHA_LEVEL:
            return "misfit", f"misfit, not scatter: {words}"
        return "", f"scatter: {words}"
    if curve.leaves_out_0:
        q = f"{curve.value:+.2g} ({curve.lo:+.2g} to {curve.hi:+.2g})"
        return "curvature", f"the points curve by {q} per (ln S)^2; no size was trained twice"
    known = [p for p in runs if p is not None]
    if known and len(known) * min(known) < _ALPHA_LEVEL:
        return "runs", f"neighbouring sizes err to the same side (p = {min(known):.2g}); no size was trained twice"
    return "", "no misfit shows, but no size was trained twice to tell it from scatter"


def _without_numbers(method: Method, n_families: int, status: Status) -> PooledFit:
    nothing: tuple[None, ...] = (None,) * n_families
    pairs = (nothing,) * n_families
    return PooledFit(method=method, C=nothing, correlation=pairs, runs=nothing, status=status, reasons=(status.value,))
