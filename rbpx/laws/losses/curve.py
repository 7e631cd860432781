"""Fits y = E_y + K (x - E_x)^kappa to losses of the same models on two texts, by errors in variables.

Model i lies off a point (w, ln f(e^w)) of the curve in (ln x, ln y) by errors whose covariance C is known up to a
factor (`rbpx.laws.losses.noise`). Maximum likelihood minimises the sum of squared distances r from the nearest points,
r = (ln y - ln f - m (ln x - w)) / sqrt(C_yy - 2 m C_xy + m^2 C_xx), m = d ln f / dw; dr = -d(ln f) / sqrt(...) by a
constant. Where x = E_x + A S^-a and y = E_y + B S^-b, kappa = b / a and K = B A^-kappa.

Shapes: N models, B curves or bootstrap replicates of the documents, P constants in the order (ln K, kappa, E_x, E_y).

Source:
    D. Brandfonbrener et al., Loss-to-Loss Prediction: Scaling Laws for All Datasets, arXiv 2411.12925, eq. 5; for
    errors in variables W. A. Fuller, Measurement Error Models, 1987, section 3.2.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Final

import numpy as np

from rbpx.laws.families.series import crossing
from rbpx.laws.intervals.estimate import Estimate, document_t, few_documents, student_t
from rbpx.laws.intervals.lack_of_fit import coefficient
from rbpx.laws.losses.noise import Noise
from rbpx.laws.numeric import Floats, line
from rbpx.laws.solver import LocalQuadratic, Sets, StoppingRule, minimise, squares
from rbpx.status import Status, in_order

CONSTANTS: Final = ("K", "kappa", "E_x", "E_y")
FEWEST: Final = 5  # models: one more than constants
_KAPPA: Final = (0.02, 50.0)  # bounds; a larger exponent is a step
_LARGEST: Final = 0.999  # of the smallest x or y: what E may be
_SHARES: Final = (0.0, 0.3, 0.6, 0.9)  # of these, where the search starts
_FEET: Final = 12  # steps to the nearest points
_END: Final = StoppingRule(step=1e-9, most_left=1e-9, most_steps=100)
_ROUNDING: Final = 1e-15  # of the squares: the valley is flat
_AT_BOUND: Final = 1e-6  # of the smallest x or y: below it E is 0
_FARTHEST_K: Final = 1.0  # in ln K: the first step of the search for an end
_EXACT: Final = 1e-9  # of ln y: scatter below it is rounding


@dataclass(frozen=True, eq=False)
class LossPoints:
    """Losses of the same models on two texts.

    Attributes:
        ln_x_N: on one.
        ln_y_N: on the other.
        C_22: the covariance of their errors, up to a factor.
        least_x: the smallest x of other known models, which also bounds E_x.
    """

    ln_x_N: Floats
    ln_y_N: Floats
    C_22: Floats
    least_x: float = math.inf

    @property
    def most(self) -> tuple[float, float]:
        """Upper bounds of E_x and E_y."""
        return _LARGEST * min(math.exp(self.ln_x_N.min()), self.least_x), _LARGEST * math.exp(self.ln_y_N.min())


@dataclass(frozen=True, eq=False)
class LossCurve:
    """A curve with the distances of points from it.

    Attributes:
        theta_P: ln K, kappa, E_x, E_y.
        w_N: ln x of the nearest point of each model.
        r_N: distances.
        J_PN: derivatives of ln f there by theta, over the sd of the errors.
    """

    theta_P: Floats
    w_N: Floats
    r_N: Floats
    J_PN: Floats

    @property
    def squares(self) -> float:
        """Sum of the squared distances."""
        return float(self.r_N @ self.r_N)

    def ln_at(self, ln_x: Floats) -> Floats:
        """Returns ln y of the curve."""
        return _law(self.theta_P, ln_x)[0]


def _law(theta_PB: Floats, w: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns ln f of the laws at ln x = w, its slope, and its derivatives by theta; [N], or [N, B] for B laws."""
    ln_K, kappa, E_x, E_y = theta_PB
    with np.errstate(all="ignore"):  # ln 0 = -inf is the neutral element; a step too far has no distance
        above = np.exp(w) - E_x
        u = np.log(above)
        ln_f = np.logaddexp(ln_K + kappa * u, np.log(E_y))
        share = np.exp(ln_K + kappa * u - ln_f)
        J = np.stack([share, share * u, -share * kappa / above, np.exp(-ln_f)])
        return ln_f, share * kappa * np.exp(w) / above, J


def _distances(points: LossPoints, theta_PB: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns ln x of the nearest points and the distances from these, [N, B], and the derivatives there, [P, N, B]."""
    (xx, xy), (_, yy) = points.C_22.tolist()
    ln_x_N1, ln_y_N1 = points.ln_x_N[:, None], points.ln_y_N[:, None]
    with np.errstate(all="ignore"):
        floor_B, w_NB = np.log(theta_PB[2]) + 1e-6, ln_x_N1 + 0 * theta_PB[0]
        for step in range(_FEET + 1):
            ln_f_NB, m_NB, J_PNB = _law(theta_PB, w_NB)
            off_NB, variance_NB = ln_y_N1 - ln_f_NB - m_NB * (ln_x_N1 - w_NB), yy - 2 * m_NB * xy + m_NB**2 * xx
            if step < _FEET:
                w_NB = np.maximum(ln_x_N1 - off_NB / variance_NB * (xy - m_NB * xx), floor_B)
        return w_NB, off_NB / np.sqrt(variance_NB), J_PNB / np.sqrt(variance_NB)


def _search(points: LossPoints, start_PB: Floats, *held: int) -> LossCurve:
    """The best curve of several searches, with the constants at the indices `held` fixed."""
    bound_2P = np.array([[-math.inf, _KAPPA[0], 0.0, 0.0], [math.inf, _KAPPA[1], *points.most]])
    lower_PB, upper_PB = (np.repeat(bound_P[:, None], start_PB.shape[1], axis=1) for bound_P in bound_2P)
    start_PB = np.clip(start_PB, lower_PB, upper_PB)
    lower_PB[list(held)] = upper_PB[list(held)] = start_PB[list(held)]

    def objective(theta_PB: Floats, _: Sets) -> LocalQuadratic:
        r_NB, J_PNB = _distances(points, theta_PB)[1:]
        at = squares(r_NB, -J_PNB)
        value_B = np.where(np.isfinite(at.value_B), at.value_B, np.inf)
        return replace(at, value_B=value_B, rounding_B=_ROUNDING * value_B)

    found = minimise(objective, start_PB, lower_PB, upper_PB, _END)
    theta_P = found.theta_PB[:, found.best]
    w_NB, r_NB, J_PNB = _distances(points, theta_P[:, None])
    return LossCurve(theta_P, w_NB[:, 0], r_NB[:, 0], J_PNB[..., 0])


def fit_curve(points: LossPoints) -> LossCurve:
    """Fits the curve, from several starts."""
    starts = [[*_through(points, *E), *E] for E in _offsets(points)]
    return _search(points, np.array(starts).T)


def _offsets(points: LossPoints) -> list[tuple[float, float]]:
    return [(of_x * points.most[0], of_y * points.most[1]) for of_x, of_y in product(_SHARES, _SHARES)]


def _through(points: LossPoints, E_x: float, E_y: float, place: int | None = None, held: float = 0.0) -> list[float]:
    """Ln K and kappa of the line through the logarithms; `place` 0 or 1 holds one of them fixed."""
    u_N, z_N = np.log(np.exp(points.ln_x_N) - E_x), np.log(np.exp(points.ln_y_N) - E_y)
    if place == 0:
        return [held, float(u_N @ (z_N - held)) / float(u_N @ u_N)]
    level, falls = line(u_N, z_N).tolist()
    kappa = held if place == 1 else min(max(-falls, _KAPPA[0]), _KAPPA[1])
    return [level - kappa * float(u_N.mean()), kappa]


@dataclass(frozen=True, eq=False)
class LossFit:
    """The constants of a curve with their intervals.

    Attributes:
        constants: K, kappa, E_x and E_y by name; without numbers, and without `curve`, for fewer than 5 models.
        slope: of a straight line of ln y in ln x, with the same errors.
        scatter: standard deviation of ln y about the curve, at the measured x.
        at_bound: constants whose best value is 0.
        reasons: every status that holds.
    """

    n: int
    noise: Noise
    constants: Mapping[str, Estimate]
    slope: Estimate
    curve: LossCurve | None
    scatter: float | None
    at_bound: tuple[str, ...]
    reasons: tuple[Status, ...]

    @property
    def times_off(self) -> float | None:
        """Standard deviation of the distances, in units of the covariance; None without a curve."""
        return None if self.curve is None else math.sqrt(self.curve.squares / (self.n - 4))


def fit_losses(
    points: LossPoints, noise: Noise, z_BN2: Floats | None = None, n_effective: float | None = None
) -> LossFit:
    """Fits a curve; the profile intervals of its constants are widened by the documents.

    Distances are scaled by their own scatter, Student's t of n - 4. `z_BN2` are ln x and ln y under bootstrap
    replicates.
    """
    n, slope, doubts = len(points.ln_x_N), Estimate(), [Status.too_few_sizes]
    best = None
    if n >= 3 and np.ptp(points.ln_x_N) > 0:
        slope, doubts = _slope(points, z_BN2, n_effective)
        best = fit_curve(points) if n >= FEWEST else None
        failed = Status.too_few_sizes if best is None else Status.not_converged
        if best is None or not math.isfinite(best.squares):
            best, doubts = None, [*doubts, failed]
    if best is None:
        return LossFit(n, noise, dict.fromkeys(CONSTANTS, Estimate()), slope, None, None, (), in_order(doubts))
    constants, most = _intervals(points, best, z_BN2, n_effective), np.array(points.most)
    at_bound = tuple(np.array(CONSTANTS[2:])[best.theta_P[2:] <= _AT_BOUND * most].tolist())
    kappa = constants["kappa"]
    if np.any(best.theta_P[2:] >= most) or kappa.ends is None or kappa.ends[1] - kappa.ends[0] >= (kappa.value or 0.0):
        doubts.append(Status.barely_determined)
    off_N = points.ln_y_N - best.ln_at(points.ln_x_N)
    doubts += [Status.at_bound] if at_bound else []
    scatter = float(np.sqrt(off_N @ off_N / (n - 4)))
    return LossFit(n, noise, constants, slope, best, scatter, at_bound, in_order(doubts))


def kappa_of(points: LossPoints, noise: Noise) -> float:
    """Returns the exponent under another covariance of the errors."""
    return float(fit_curve(replace(points, C_22=noise.C_22)).theta_P[1])


def rise_of(ln_x_N: Floats, ln_y_N: Floats) -> Estimate:
    """Returns the slope of the regression of ln y on measured ln x, with its interval."""
    return coefficient(np.column_stack([np.ones(len(ln_x_N)), ln_x_N - ln_x_N.mean()]), ln_y_N, 1)


def _slope(points: LossPoints, z_BN2: Floats | None, n_effective: float | None) -> tuple[Estimate, list[Status]]:
    """The slope of the straight line, and no_trend where ln y does not rise with ln x."""
    as_measured = rise_of(points.ln_x_N, points.ln_y_N)
    if as_measured.value is None or as_measured.value <= 0:
        return as_measured, [Status.no_trend]
    start_PB = np.array([*_through(points, 0.0, 0.0), 0.0, 0.0])[:, None]
    straight, dof = _search(points, start_PB, 2, 3), len(points.ln_x_N) - 2
    variance = float(np.linalg.pinv(straight.J_PN[:2] @ straight.J_PN[:2].T)[1, 1])
    half = student_t(dof) * math.sqrt(straight.squares / dof * variance)
    half = math.hypot(half, _over_documents(straight, [0, 1], z_BN2, n_effective)[1])
    kappa = float(straight.theta_P[1])
    rises = as_measured.lo is not None and as_measured.lo > 0
    return Estimate(kappa, kappa - half, kappa + half), [] if rises else [Status.no_trend]


def _intervals(
    points: LossPoints, best: LossCurve, z_BN2: Floats | None, n_effective: float | None
) -> dict[str, Estimate]:
    """Profile intervals, where the best curve with a constant held is t^2 times the scatter worse; then documents."""
    most_x, most_y = points.most
    bounds = [(-700.0, 700.0), _KAPPA, (0.0, most_x), (0.0, most_y)]
    free = [place for place in range(4) if place < 2 or best.theta_P[place] > _AT_BOUND * bounds[place][1]]
    half_P, found = _over_documents(best, free, z_BN2, n_effective), {}
    for place, name in enumerate(CONSTANTS):
        value, is_E, most = float(best.theta_P[place]), name.startswith("E"), bounds[place][1]
        ends: list[float | None] = []
        for side, last in zip((-1, 1), bounds[place], strict=True):
            end = _end(points, best, place, side, last)
            end = last if end is None and is_E and side < 0 else end
            ends.append(None if end is None else value + side * math.hypot(end - value, float(half_P[place])))
        ends = [None if end is None else min(max(end, 0.0), most) for end in ends] if is_E else ends
        found[name] = Estimate(value, *ends)
    return found | {"K": found["K"].exp()}


def _end(points: LossPoints, best: LossCurve, place: int, side: int, last: float) -> float | None:
    """Where the profile of a constant passes the limit; None where it stays below it up to the bound."""
    centre, dof = float(best.theta_P[place]), len(points.ln_x_N) - 4
    limit = best.squares * (1 + student_t(dof) ** 2 / dof)
    scale = max(float(np.abs(points.ln_y_N).max()), 1.0) * math.sqrt(float(points.C_22.max()))
    if math.sqrt(best.squares) <= _EXACT * scale:
        return centre
    others = [other for other in range(4) if other != place]  # change of these along the best curves with it held
    along_P = np.ones(4)
    along_P[others] = -np.linalg.pinv(best.J_PN[others].T) @ best.J_PN[place]

    @cache
    def over(value: float) -> float:
        ridge_2 = np.clip(best.theta_P[2:] + along_P[2:] * (value - centre), 0.0, points.most)
        offsets = [ridge_2.tolist(), best.theta_P[2:].tolist(), *_offsets(points)[:: len(_SHARES) + 1]]
        start_PB = np.array([[*_through(points, E_x, E_y, place, value), E_x, E_y] for E_x, E_y in offsets]).T
        start_PB[place] = value
        return math.sqrt(_search(points, start_PB, place).squares) - math.sqrt(limit)

    rest_N = along_P @ best.J_PN
    step = math.sqrt((limit - best.squares) / max(float(rest_N @ rest_N), 1e-300))
    step = min(step, 0.5 * abs(last - centre) if place else _FARTHEST_K)
    return None if step == 0 else crossing(over, centre, side * step, last)


def _over_documents(curve: LossCurve, free: list[int], z_BN2: Floats | None, n_effective: float | None) -> Floats:
    """Half of the interval over documents of each constant, by linearised changes of each replicate."""
    half_P = np.zeros(4)
    if z_BN2 is None or len(z_BN2) < 2:
        return half_P
    _, m_N, J_PN = _law(curve.theta_P, curve.w_N)
    about_BN2 = z_BN2 - z_BN2.mean(axis=0)
    moved_BN = (about_BN2[..., 1] - m_N * about_BN2[..., 0]) * curve.J_PN[0] / J_PN[0]  # over the sd
    theta_BP = moved_BN @ np.linalg.pinv(curve.J_PN[free])
    half_P[free] = document_t(n_effective) * np.sqrt(few_documents(n_effective) * theta_BP.var(axis=0, ddof=1))
    return half_P
