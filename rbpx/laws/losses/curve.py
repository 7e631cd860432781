"""Fits y = E_y + K (x - E_x)^kappa to losses of the same models on two texts, by errors in variables.

Both losses err: of model i there are ln x_i and ln y_i, off a point (w, ln f(e^w)) of the curve by errors whose
covariance is C but for a factor (`rbpx.laws.losses.noise`). The curve makes the sum of the squared distances, measured
by C, of all points from their nearest points on it as small as possible: the likelihood of all w and constants. With r
the distance and m = d ln f / dw at the nearest point, r = (ln y - ln f - m (ln x - w)) / sqrt(C_yy - 2 m C_xy + m^2
C_xx), and dr = -d(ln f) / sqrt(...) by a constant, since the error there is normal to the curve.

Where x = E_x + A S^-a and y = E_y + B S^-b, kappa = b / a and K = B A^-kappa.

Shapes: N models, B replicates of the documents, P constants in the order (level, kappa, E_x, E_y).

Source:
    D. Brandfonbrener et al., Loss-to-Loss Prediction: Scaling Laws for All Datasets, arXiv 2411.12925, eq. 5; for errors
    in variables W. A. Fuller, Measurement Error Models, 1987, section 3.2.
"""  # noqa: E501

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from rbpx.laws.families.series import crossing
from rbpx.laws.intervals.estimate import Estimate, document_t, few_documents, from_stderr, student_t
from rbpx.laws.losses.noise import Noise
from rbpx.laws.numeric import Floats, exp_or_none, line
from rbpx.status import Status, in_order

CONSTANTS: Final = ("K", "kappa", "E_x", "E_y")
FEWEST: Final = 5  # models: one more than constants
_KAPPA: Final = (0.02, 50.0)  # a curve beyond is a step
_LARGEST: Final = 0.999  # of the smallest x or y: what E may be
_SHARES: Final = (0.0, 0.3, 0.6, 0.9)  # of these, where the search starts
_DESCENTS: Final = 4  # from the best of the starts
_STEPS: Final = 100  # of a descent
_FEET: Final = 12  # steps to the nearest points at first
_FEET_ON: Final = 3  # from those of the last constants
_GAIN: Final = 1e-12  # of the sum of squares: a step that gains less is the last
_AT_BOUND: Final = 1e-6  # of the smallest x or y: below it E is 0
_FARTHEST_K: Final = 1.0  # in ln K: the first step of the search for an end
_EXACT: Final = 1e-9  # of ln y: scatter below it is rounding


@dataclass(frozen=True, eq=False)
class LossPoints:
    """Losses of the same models on two texts.

    Attributes:
        ln_x_N: of one.
        ln_y_N: of the other.
        C_22: the covariance of their errors, but for a factor.
        least_x: the smallest x that E_x has to lie below, where more models are known than these.
    """

    ln_x_N: Floats
    ln_y_N: Floats
    C_22: Floats
    least_x: float = math.inf

    @property
    def most(self) -> tuple[float, float]:
        """What E_x and E_y have to lie below."""
        return _LARGEST * min(math.exp(self.ln_x_N.min()), self.least_x), _LARGEST * math.exp(self.ln_y_N.min())


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve with the distances of points from it.

    Attributes:
        theta_P: ln(f - E_y) at ln(x - E_x) = centre, kappa, E_x, E_y.
        centre: the middle of ln(x - E_x).
        w_N: ln x of the nearest point of each model.
        r_N: distances.
        J_NP: derivatives of ln f there by theta, over the sd of the errors.
    """

    theta_P: Floats
    centre: float
    w_N: Floats
    r_N: Floats
    J_NP: Floats

    @property
    def squares(self) -> float:
        """Sum of the squared distances."""
        return float(self.r_N @ self.r_N)

    @property
    def ln_K(self) -> float:
        """The constant, at x - E_x = 1."""
        return float(self.theta_P[0] - self.theta_P[1] * self.centre)

    def ln_at(self, ln_x: Floats) -> Floats:
        """Ln y of the curve."""
        return _law(self.theta_P, self.centre, ln_x)[0]


def _law(theta_P: Floats, centre: float, w: Floats) -> tuple[Floats, Floats, Floats]:
    """The law at ln x as ln f, its slope there, and its derivatives by theta."""
    level, kappa, E_x, E_y = theta_P.tolist()
    x = np.exp(w)
    above = x - E_x
    u = np.log(above) - centre
    ln_power = level + kappa * u
    ln_f = np.logaddexp(ln_power, math.log(E_y)) if E_y > 0 else ln_power
    share = np.exp(ln_power - ln_f)
    J = np.stack([share, share * u, -share * kappa / above, np.exp(-ln_f)], axis=-1)
    return ln_f, share * kappa * x / above, J


def _at(points: LossPoints, theta_P: Floats, centre: float, w_N: Floats, feet: int) -> Curve:
    """The curve of some constants, with the nearest point of each model, sought from w."""
    (xx, xy), (_, yy) = points.C_22.tolist()
    floor = math.log(theta_P[2]) + 1e-6 if theta_P[2] > 0 else -math.inf
    with np.errstate(all="ignore"):  # a step too far has no finite distance, and is not taken
        for _ in range(feet):
            ln_f_N, m_N, _ = _law(theta_P, centre, w_N)
            off_N = points.ln_y_N - ln_f_N - m_N * (points.ln_x_N - w_N)
            w_N = np.maximum(points.ln_x_N - off_N / (yy - 2 * m_N * xy + m_N**2 * xx) * (xy - m_N * xx), floor)
        ln_f_N, m_N, J_NP = _law(theta_P, centre, w_N)
        sd_N = np.sqrt(yy - 2 * m_N * xy + m_N**2 * xx)
        r_N = (points.ln_y_N - ln_f_N - m_N * (points.ln_x_N - w_N)) / sd_N
        return Curve(theta_P, centre, w_N, r_N, J_NP / sd_N[:, None])


def _descend(points: LossPoints, start: Curve, *kept: int) -> Curve:
    """Levenberg's and Marquardt's search within the bounds.

    Args:
        points: of the models.
        start: where it begins.
        kept: places of constants that stay as they are.
    """
    lower_P = np.array([-math.inf, _KAPPA[0], 0.0, 0.0])
    upper_P = np.array([math.inf, _KAPPA[1], *points.most])
    theta_P = np.clip(start.theta_P, lower_P, upper_P)
    curve = _at(points, theta_P, start.centre, start.w_N, _FEET)
    if not math.isfinite(curve.squares):
        curve = _at(points, theta_P, start.centre, points.ln_x_N, 0)
    free_P = np.array([place not in kept for place in range(4)])
    damping = 1e-3
    for _ in range(_STEPS):
        if not math.isfinite(curve.squares + float(np.abs(curve.J_NP).max())):
            break
        gradient_P = curve.J_NP.T @ curve.r_N  # of half the squares, downwards
        held_P = ((curve.theta_P <= lower_P) & (gradient_P < 0)) | ((curve.theta_P >= upper_P) & (gradient_P > 0))
        moves = np.flatnonzero(free_P & ~held_P)
        if not len(moves):
            break
        A = curve.J_NP[:, moves].T @ curve.J_NP[:, moves]
        closer, gained = curve, 0.0
        while damping < 1e12:
            damped = A + damping * np.diag(np.diag(A) + 1e-300)
            theta_P = curve.theta_P.copy()
            theta_P[moves] += np.linalg.lstsq(damped, gradient_P[moves])[0]
            tried = _at(points, np.clip(theta_P, lower_P, upper_P), curve.centre, curve.w_N, _FEET_ON)
            gained = curve.squares - tried.squares
            if gained > 0:
                closer, damping = tried, damping / 10
                break
            damping *= 4
        if gained <= _GAIN * curve.squares:
            return closer
        curve = closer
    return curve


def fit_curve(points: LossPoints) -> Curve:
    """The best curve, from several starts."""
    starts = []
    most_x, most_y = points.most
    x_N, y_N = np.exp(points.ln_x_N), np.exp(points.ln_y_N)
    for share_x, share_y in product(_SHARES, _SHARES):
        E_x, E_y = share_x * most_x, share_y * most_y
        u_N, z_N = np.log(x_N - E_x), np.log(y_N - E_y)
        level, falls = line(u_N, z_N).tolist()
        theta_P = np.array([level, min(max(-falls, _KAPPA[0]), _KAPPA[1]), E_x, E_y])
        starts.append(_at(points, theta_P, float(u_N.mean()), points.ln_x_N, _FEET))
    starts.sort(key=lambda curve: curve.squares if math.isfinite(curve.squares) else math.inf)
    return min((_descend(points, start) for start in starts[:_DESCENTS]), key=lambda curve: curve.squares)


@dataclass(frozen=True, eq=False)
class LossFit:
    """The constants of a curve with their intervals.

    Attributes:
        n: how many models.
        noise: the covariance that was taken for given.
        constants: K, kappa, E_x and E_y by name; without numbers for fewer than 5 models.
        slope: of a straight line of ln y by ln x, with the same errors.
        curve: the best one; None for fewer than 5 models.
        scatter: standard deviation of ln y about the curve, at the x that were measured.
        at_bound: constants that are best at 0.
        reasons: every status that holds for them.
    """

    n: int
    noise: Noise
    constants: Mapping[str, Estimate]
    slope: Estimate
    curve: Curve | None
    scatter: float | None
    at_bound: tuple[str, ...]
    reasons: tuple[Status, ...]

    @property
    def times_off(self) -> float | None:
        """How many times as far off as by the covariance alone models lie; None without a curve."""
        return None if self.curve is None else math.sqrt(self.curve.squares / (self.n - 4))


def fit_losses(
    points: LossPoints, noise: Noise, z_BN2: Floats | None = None, n_documents: int | None = None
) -> LossFit:
    """Fit a curve, with profile intervals of its constants that documents widen.

    Distances are scaled by their own scatter, Student's t of n - 4: the covariance gives their shape alone.

    Args:
        points: of the models.
        noise: whose covariance they have.
        z_BN2: ln x and ln y under resampled documents; None where there are none.
        n_documents: that were resampled.
    """
    n = len(points.ln_x_N)
    none = dict.fromkeys(CONSTANTS, Estimate())
    if n < 3 or np.ptp(points.ln_x_N) == 0:
        return LossFit(n, noise, none, Estimate(), None, None, (), (Status.too_few_sizes,))
    slope, doubts = _slope(points, z_BN2, n_documents)
    if n < FEWEST:
        return LossFit(n, noise, none, slope, None, None, (), in_order([*doubts, Status.too_few_sizes]))
    best = fit_curve(points)
    if not math.isfinite(best.squares):
        return LossFit(n, noise, none, slope, None, None, (), in_order([*doubts, Status.not_converged]))
    most = points.most
    bounded = [best.theta_P[place] <= _AT_BOUND * most[place - 2] for place in (2, 3)]
    at_bound = tuple(name for name, is_so in zip(CONSTANTS[2:], bounded, strict=True) if is_so)
    constants = _intervals(points, best, z_BN2, n_documents)
    kappa = constants["kappa"]
    is_at_top = any(best.theta_P[place] >= most[place - 2] for place in (2, 3))
    if is_at_top or kappa.ends is None or kappa.ends[1] - kappa.ends[0] >= (kappa.value or 0.0):
        doubts.append(Status.barely_determined)
    off_N = points.ln_y_N - best.ln_at(points.ln_x_N)
    scatter = float(np.sqrt(off_N @ off_N / (n - 4)))
    doubts += [Status.at_bound] if at_bound else []
    return LossFit(n, noise, constants, slope, best, scatter, at_bound, in_order(doubts))


def kappa_of(points: LossPoints, noise: Noise) -> float:
    """The exponent alone, with errors of another covariance."""
    return float(fit_curve(LossPoints(points.ln_x_N, points.ln_y_N, noise.C_22, points.least_x)).theta_P[1])


def rise_of(ln_x_N: Floats, ln_y_N: Floats) -> tuple[float, Estimate]:
    """The slope of ln y by ln x as measured, and with its interval."""
    level, falls = line(ln_x_N, ln_y_N).tolist()
    about_N = ln_x_N - ln_x_N.mean()
    left_N = ln_y_N - level + falls * about_N
    dof = len(ln_x_N) - 2
    sd = math.sqrt(float(left_N @ left_N) / dof / float(about_N @ about_N))
    return -falls, from_stderr(-falls, sd, dof)


def _slope(points: LossPoints, z_BN2: Floats | None, n_documents: int | None) -> tuple[Estimate, list[Status]]:
    """The slope of the straight line, and no_trend where ln y does not rise with ln x."""
    n, x_N = len(points.ln_x_N), points.ln_x_N
    rise, as_measured = rise_of(x_N, points.ln_y_N)
    rises = as_measured.lo is not None and as_measured.lo > 0
    if rise <= 0:
        return as_measured, [Status.no_trend]
    start = np.array([points.ln_y_N.mean(), rise, 0.0, 0.0])
    straight = _descend(points, _at(points, start, float(x_N.mean()), x_N, _FEET), 2, 3)
    cov = np.linalg.pinv(straight.J_NP[:, :2].T @ straight.J_NP[:, :2])
    half = student_t(n - 2) * math.sqrt(straight.squares / (n - 2) * float(cov[1, 1]))
    half = math.hypot(half, _over_documents(straight, [0, 1], z_BN2, n_documents)[1])
    kappa = float(straight.theta_P[1])
    return Estimate(kappa, kappa - half, kappa + half), [] if rises else [Status.no_trend]


def _intervals(points: LossPoints, best: Curve, z_BN2: Floats | None, n_documents: int | None) -> dict[str, Estimate]:
    """Profile intervals: where the best curve that keeps a constant is t^2 times the scatter worse; then documents."""
    n, most = len(points.ln_x_N), points.most
    free = [place for place in range(4) if place < 2 or best.theta_P[place] > _AT_BOUND * most[place - 2]]
    of_K = _at(points, np.array([best.ln_K, *best.theta_P[1:]]), 0.0, best.w_N, _FEET_ON)  # whose level is ln K
    limit = best.squares * (1 + student_t(n - 4) ** 2 / (n - 4))
    centres = [best.ln_K, *best.theta_P[1:].tolist()]
    bounds = [(-700.0, 700.0), _KAPPA, (0.0, most[0]), (0.0, most[1])]
    found = {}
    for place, (name, (least, largest)) in enumerate(zip(CONSTANTS, bounds, strict=True)):
        start = of_K if place == 0 else best
        moved = _over_documents(start, free, z_BN2, n_documents)
        half = moved[place] if place in free else 0.0
        ends: list[float | None] = []
        for side, last in ((-1, least), (1, largest)):
            end = _end(points, start, place, limit, side, last)
            known = end is not None or (name.startswith("E") and side < 0)
            reach = abs((least if end is None else end) - centres[place])
            ends.append(centres[place] + side * math.hypot(reach, half) if known else None)
        lo, hi = ends
        if name.startswith("E"):
            lo = max(lo or 0.0, 0.0)
        of_place = (centres[place], lo, hi)
        found[name] = Estimate(*map(exp_or_none, of_place)) if place == 0 else Estimate(*of_place)
    return found


def _end(points: LossPoints, start: Curve, place: int, limit: float, side: int, last: float) -> float | None:
    """Where the profile of a constant passes the limit; None where it stays below it as far as the bound."""
    centre, near = float(start.theta_P[place]), start
    scale = float(np.abs(points.ln_y_N).max())
    if math.sqrt(start.squares) <= _EXACT * max(scale, 1.0) * math.sqrt(float(points.C_22.max())):
        return centre
    known = {centre: math.sqrt(start.squares) - math.sqrt(limit)}

    def over(value: float) -> float:
        nonlocal near
        if value not in known:
            near = _descend(points, _moved(points, near, place, value), place)
            known[value] = math.sqrt(near.squares) - math.sqrt(limit)
        return known[value]

    _, rest = _ridge(start, place)
    step = math.sqrt((limit - start.squares) / max(float(rest @ rest), 1e-300))
    step = min(step, 0.5 * abs(last - centre)) if place else min(step, _FARTHEST_K)
    return None if step == 0 else crossing(over, centre, side * step, last)


def _moved(points: LossPoints, near: Curve, place: int, value: float) -> Curve:
    """Where to look for the best curve that has a constant of that value: E along the ridge, the rest on a line."""
    along_P, _ = _ridge(near, place)
    theta_P = near.theta_P + along_P * (value - near.theta_P[place])
    theta_P[2:] = np.clip(theta_P[2:], 0.0, points.most)
    u_N = np.log(np.exp(points.ln_x_N) - theta_P[2]) - near.centre
    z_N = np.log(np.exp(points.ln_y_N) - theta_P[3])
    if place == 0:
        theta_P[:2] = value, float(u_N @ (z_N - value)) / float(u_N @ u_N)
    elif place == 1:
        theta_P[:2] = float((z_N - value * u_N).mean()), value
    else:
        level, falls = line(u_N, z_N).tolist()
        theta_P[:2] = level + falls * float(u_N.mean()), -falls
    return replace(near, theta_P=theta_P, w_N=points.ln_x_N)


def _ridge(curve: Curve, place: int) -> tuple[Floats, Floats]:
    """How all constants go with one along the best curves that keep it, and what of its derivatives they leave."""
    others = [other for other in range(4) if other != place]
    along_P = np.ones(4)
    along_P[others] = -np.linalg.pinv(curve.J_NP[:, others]) @ curve.J_NP[:, place]
    return along_P, curve.J_NP @ along_P


def _over_documents(curve: Curve, free: list[int], z_BN2: Floats | None, n_documents: int | None) -> Floats:
    """Half of the interval over documents of each constant: by how much a replicate moves it, linearised."""
    half_P = np.zeros(4)
    if z_BN2 is None or len(z_BN2) < 2:
        return half_P
    _, m_N, J_NP = _law(curve.theta_P, curve.centre, curve.w_N)
    sd_N = J_NP[:, 0] / curve.J_NP[:, 0]
    about_BN2 = z_BN2 - z_BN2.mean(axis=0)
    moved_BN = (about_BN2[..., 1] - m_N * about_BN2[..., 0]) / sd_N
    theta_BP = moved_BN @ np.linalg.pinv(curve.J_NP[:, free]).T
    half_P[free] = document_t(n_documents) * np.sqrt(few_documents(n_documents) * theta_BP.var(axis=0, ddof=1))
    return half_P
