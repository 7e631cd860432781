"""Estimates a variant's multiplier over a loss surface: a baseline with m times as much of an axis equals the variant.

y_base(S, D) = f(S, D), y_variant(S, D) = f(m^a S, m^b D), with (a, b) = (1, 0) along S, (0, 1) along D, and (1/2, 1/2)
along C, which is m times the compute at the same tokens per parameter. ln m = ln m_0 + slope (ln C - ln C_0), C = 6 S D
of the variant. Forms of f are averaged (`rbpx.laws.forms.linearised`), and so is whether both sides share their
constants.

Shapes: N points of both sides, B bootstrap replicates of the documents, T places, P columns.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from scipy.special import fdtrc

from rbpx.laws.forms.linearised import LinearisedForm, average_linearised
from rbpx.laws.intervals.estimate import NO_ESTIMATE, TAILS, Estimate, Z
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import linearise, thin_checkpoints
from rbpx.laws.surface.design import judge_design
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status, first_of

FORMS: Final = ("chinchilla", "kaplan")
BEYOND: Final = 10.0  # times the most compute that was compared
REFUSED: Final = 0.05  # below this p, the constants are not shared
_ALONG: Final = {Axis.S: (1.0, 0.0), Axis.D: (0.0, 1.0), Axis.C: (0.5, 0.5)}
_FEWEST: Final = 4  # runs of each side in the ranges of both
_STARTS: Final = tuple(math.log(m) for m in (0.1, 0.3, 1.0, 3.0, 10.0))
_ROUNDS: Final = 8
_CLOSE: Final = 0.005  # of ln m: the iteration ends at a smaller change
_MOST: Final = 1.5  # change of ln m in one round
_SD: Final = 3.0  # prior sd of ln m
_SD_SLOPE: Final = 0.3  # prior sd of its slope
_OWN: Final = 0.5  # prior weight of constants that differ
_APART: Final = (0.04, 0.15)  # prior sds of the difference, relative to those of the constants
_SAME: Final = 1e-7  # relative singular value below which a direction of the constants is ignored
_EXACT: Final = 1e-5  # of ln y: points that lie closer to the law cannot test it
_N: Final = 25  # places at which m is compared with 1
_NAMED: Final = (0, _N // 2, _N - 1, _N)  # indices of the least, the middle and the greatest, and of the one beyond
_LEAST, _MIDDLE, _GREATEST, _BEYOND = _NAMED
_SLOPE: Final = -1  # index of the slope, after the places


@dataclass(frozen=True)
class MultiplierAt:
    """The multiplier of the variant at compute C = 6 S D; beyond where no compared run has as much, else ok."""

    C: float
    S: float
    D: float
    value: Estimate
    status: Status


@dataclass(frozen=True, eq=False)
class Shift:
    """The multiplier of a variant over a surface.

    Attributes:
        common: the ranges of S and D that both have, `n_base` and `n_variant` runs in there, and their range of C.
        multiplier: at the middle compute of the compared runs; `slope` of ln m in ln C.
        at: at the least, the middle and the most compute compared, and at ten times the most.
        apart: range of compute, from the most or else the least compared, over which the interval excludes 1.
        p: of the test that both have the same constants.
        weights: of the forms, and of each with constants of the variant's own.
    """

    reasons: tuple[Status, ...]
    common: Mapping[str, float] = field(default_factory=dict)
    multiplier: Estimate = NO_ESTIMATE
    slope: Estimate = NO_ESTIMATE
    at: tuple[MultiplierAt, ...] = ()
    apart: tuple[float, float] | None = None
    p: float | None = None
    weights: Mapping[str, float] = field(default_factory=dict)


def is_surface(base: Runs, variant: Runs) -> bool:
    """Whether both vary in size and in tokens."""
    return all(len(runs.S_N) > 0 and not judge_design(runs.S_N, runs.D_N).is_collinear for runs in (base, variant))


def fit_shift(base: Runs, variant: Runs, axis: Axis, **options: Any) -> Shift:
    """Fits the shared surface and the shift of the variant along S, D or C.

    Replicates of both sides are of the same documents; `options` are the objective and delta of `fit_surface`. Without
    numbers the status says why: beyond with fewer than 4 runs of a side in the ranges of both, no_trend where the
    surface does not fall along the axis. With numbers: families_differ where the constants are not shared (p < .05).

    Source:
        The ratio of compute at equal loss is the "effective compute" of arXiv 2403.05812, section 2.
    """
    y = np.concatenate([base.y_N, variant.y_N])
    if not np.all((y > 0) & np.isfinite(y)):
        return Shift((Status.not_positive,))
    if not is_surface(base, variant):
        return Shift((Status.collinear_design,))
    base, variant = (runs.only(thin_checkpoints(runs)) for runs in (base, variant))
    pair = _paired(base, variant, axis)
    if pair is None:
        return Shift((Status.beyond,))
    by_start = [pair.fit(FORMS[0], start, 0.0, options) for start in _STARTS]
    known = [(fit.objective, start) for fit, start in zip(by_start, _STARTS, strict=True) if fit.objective is not None]
    if not known:
        return Shift((first_of(reason for fit in by_start for reason in fit.reasons),), pair.common)
    ln_m, slope = min(known)[1], 0.0
    for _ in range(_ROUNDS):
        ways = [way for form in FORMS for way in pair.ways(pair.fit(form, ln_m, slope, options), ln_m, slope)]
        if not ways:
            return Shift((Status.no_trend,), pair.common)
        mixed = average_linearised(ways, pair.x_NA(ln_m, slope), None, pair.ln_y_N, pair.both.group_N)
        found_T = mixed.mixture.quantiles([0.5])[:, 0]
        moved = float(np.clip(found_T[_MIDDLE] - ln_m, -_MOST, _MOST))
        if abs(moved) < _CLOSE:
            break
        ln_m, slope = ln_m + moved, float(np.clip(found_T[_SLOPE], -_SD_SLOPE, _SD_SLOPE))
    p, mixture = pair.p_of_shared(ways), mixed.mixture
    middle_T, lo_T, hi_T = mixture.quantiles((0.5, *TAILS)).T
    if pair.both.y_BN is not None:  # widen by the variance over documents
        change_BT = (np.log(pair.both.y_BN) - pair.ln_y_N) @ np.linalg.pinv(ways[0].J_NP).T @ ways[0].J_TP.T
        wider_T = np.sqrt(1 + change_BT.var(axis=0, ddof=1) / ((hi_T - lo_T) / (2 * Z)) ** 2)
        middle_T, lo_T, hi_T = mixture.widened(wider_T, middle_T).quantiles((0.5, *TAILS)).T
    ln_m_T = [Estimate(*ends) for ends in zip(*(each.tolist() for each in (middle_T, lo_T, hi_T)), strict=True)]
    C_T, (S_T, D_T) = np.exp(pair.ln_C_T), np.exp(pair.x_TA).T
    C_T[[_LEAST, _GREATEST]] = pair.common["C_from"], pair.common["C_to"]  # exact
    at = [
        MultiplierAt(
            float(C_T[T]), float(S_T[T]), float(D_T[T]), ln_m_T[T].exp(), Status.beyond if T == _BEYOND else Status.ok
        )
        for T in _NAMED
    ]
    apart = _apart(C_T[:_N], (np.sign(lo_T) * (lo_T * hi_T > 0))[:_N])
    refused = (Status.families_differ,) if p is not None and p < REFUSED else ()
    return Shift(refused, pair.common, ln_m_T[_MIDDLE].exp(), ln_m_T[_SLOPE], tuple(at), apart, p, mixed.weights)


@dataclass(frozen=True, eq=False)
class _TwoSides:
    """Both sides as points of one surface, at T compute steps over the compared range and ten times its most.

    Attributes:
        variant_N: 1 for points of the variant, 0 for the baseline's.
        along: share of ln m that moves ln S and ln D.
        x_TA: ln S and ln D at the mean tokens per parameter of the compared runs.
    """

    both: Runs
    variant_N: Floats
    along: tuple[float, float]
    common: Mapping[str, float]
    ln_C_T: Floats
    x_TA: Floats

    @property
    def ln_y_N(self) -> Floats:
        return np.asarray(np.log(self.both.y_N))

    @property
    def about_N(self) -> Floats:
        return np.asarray(np.log(self.both.along(Axis.C)) - self.ln_C_T[_MIDDLE])

    def x_NA(self, ln_m: float, slope: float) -> Floats:
        moved_N = self.variant_N * (ln_m + slope * self.about_N)
        return np.log(np.column_stack([self.both.S_N, self.both.D_N])) + moved_N[:, None] * self.along

    def fit(self, form: str, ln_m: float, slope: float, options: dict[str, Any]) -> Surface:
        S_N, D_N = np.exp(self.x_NA(ln_m, slope)).T
        return fit_surface(Runs.of(S_N, D_N, self.both.y_N, groups=self.both.group_N), form, n_replicates=0, **options)

    def ways(self, fit: Surface, ln_m: float, slope: float) -> Iterator[LinearisedForm]:
        """A form with shared constants and with the variant's own.

        Columns: by the constants, by ln m and its slope, then by the difference of the variant's constants.
        """
        if fit.surface is None:
            return
        away_T = self.ln_C_T - self.ln_C_T[_MIDDLE]
        ln_m_T = ln_m + slope * away_T
        S_T, D_T = np.exp(self.x_TA + ln_m_T[:, None] * self.along).T
        of = linearise(fit.form, fit.surface, 1.0, fit.runs, Runs.of(S_T, D_T, np.ones(len(S_T))))
        along_N, along_T = (each @ self.along for each in (of.slope_NA, of.slope_TA))
        if not (np.all(along_T < 0) and np.any(along_N < 0)):
            return
        by_m_NP, by_m_TP = (
            np.column_stack([np.full(len(ln_C), _SD), _SD_SLOPE * ln_C]) for ln_C in (self.about_N, away_T)
        )
        by_m_NP = (self.variant_N * along_N)[:, None] * by_m_NP
        here = replace(of, ln_y_T=np.append(ln_m_T, slope), slope_TA=np.zeros((len(away_T) + 1, 2)))
        for apart in (0.0, *_APART):
            J_NP = np.hstack([of.J_NP, by_m_NP, apart * self.variant_N[:, None] * of.J_NP])
            J_TP = np.hstack([np.zeros(of.J_TP.shape), by_m_TP, apart * of.J_TP / along_T[:, None]])
            rise_P = (J_TP[_GREATEST] - J_TP[_LEAST]) / (away_T[_GREATEST] - away_T[_LEAST])
            name, prior = (f"{fit.form}, own", _OWN / len(_APART)) if apart else (fit.form, 1 - _OWN)
            yield replace(here, name=name, prior=prior, J_NP=J_NP, J_TP=np.vstack([J_TP, rise_P]))

    def p_of_shared(self, ways: Sequence[LinearisedForm]) -> float | None:
        """The F test of shared constants against own ones, linear about the optimum of the form that fits best.

        Of the checkpoints of a run the last one counts.
        """
        order = np.lexsort((self.both.D_N, self.both.group_N))
        last_N = order[np.append(np.diff(self.both.group_N[order]) > 0, True)]

        def left(way: LinearisedForm) -> tuple[float, int]:
            J_NP, left_N = way.J_NP[last_N], (self.ln_y_N - way.ln_y_N)[last_N]
            length_P = np.linalg.norm(J_NP, axis=0)
            J_NP = J_NP[:, length_P > 0] / length_P[length_P > 0]
            theta_P, _, rank, _ = np.linalg.lstsq(J_NP, left_N, rcond=_SAME)
            return float(np.sum((left_N - J_NP @ theta_P) ** 2)), int(rank)

        n_ways = 1 + len(_APART)
        (few, of_few), at = min((left(way), at) for at, way in enumerate(ways) if at % n_ways == 0)
        many, of_many = left(ways[at + n_ways - 1])
        dof = len(last_N) - of_many
        if of_many == of_few or dof <= 0 or few <= _EXACT**2 * len(last_N):
            return None
        ratio = (few - many) / (of_many - of_few) / (many / dof)
        return float(fdtrc(of_many - of_few, dof, max(ratio, 0.0)))


def _paired(base: Runs, variant: Runs, axis: Axis) -> _TwoSides | None:
    """Both sides and the ranges in which they are compared; None below 4 runs of a side in there."""
    S, D, y = (np.concatenate([getattr(runs, name) for runs in (base, variant)]) for name in ("S_N", "D_N", "y_N"))
    groups, y_BN = np.concatenate([base.group_N, variant.group_N + base.n_groups]), None
    if base.y_BN is not None and variant.y_BN is not None and len(base.y_BN) == len(variant.y_BN):
        y_BN = np.hstack([base.y_BN, variant.y_BN])
    both, is_variant_N = Runs.of(S, D, y, groups=groups, y_replicates=y_BN), np.arange(len(y)) >= len(base.y_N)
    inside_N, common = np.full(len(y), True), dict[str, float]()
    for name, of_N in (("S", S), ("D", D)):
        each = of_N[~is_variant_N], of_N[is_variant_N]
        least, most = float(max(of.min() for of in each)), float(min(of.max() for of in each))
        common |= {f"{name}_from": least, f"{name}_to": most}
        inside_N &= (of_N >= least) & (of_N <= most)
    C = both.along(Axis.C)[inside_N]
    common |= {"n_base": int(np.sum(inside_N & ~is_variant_N)), "n_variant": int(np.sum(inside_N & is_variant_N))}
    if min(common["n_base"], common["n_variant"]) < _FEWEST or np.ptp(C) <= 0:
        return None
    common |= {"C_from": float(C.min()), "C_to": float(C.max())}
    (least, most), ratio = np.log([C.min(), C.max()]).tolist(), float(np.log((D / S)[inside_N]).mean())
    ln_C_T = np.append(np.linspace(least, most, _N), most + math.log(BEYOND))
    ln_S_T = (ln_C_T - math.log(6) - ratio) / 2
    x_TA = np.column_stack([ln_S_T, ln_S_T + ratio])
    return _TwoSides(both, is_variant_N.astype(float), _ALONG[axis], common, ln_C_T, x_TA)


def _apart(C_T: Floats, side_T: Floats) -> tuple[float, float] | None:
    """The compute over which m is on one side of 1 (side 1 or -1, 0 for neither), from the most or the least of it."""
    for C, side in ((C_T[::-1], side_T[::-1]), (C_T, side_T)):
        if side[0] != 0:
            n = int(np.append(side != side[0], True).argmax())
            return float(min(C[0], C[n - 1])), float(max(C[0], C[n - 1]))
    return None
