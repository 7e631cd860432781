"""What a variant is worth over a whole surface: the baseline with m times as much of an axis equals the variant.

Both lie on one surface f, the variant shifted along it: y_base(S, D) = f(S, D), y_variant(S, D) = f(m^a S, m^b D), with
(a, b) = (1, 0) along S, (0, 1) along D, and (1/2, 1/2) along C, which is m times the compute at the same tokens for a
parameter. The best runs of budgets then differ by the same m. ln m = ln m_0 + slope (ln C - ln C_0), C = 6 S D of the
variant, since a multiplier is extrapolated and may grow or vanish with scale.

The forms of f are mixed, with bends and misfit, as `rbpx.laws.forms.linearised` says of predictions; both sides share
the misfit, and whether the constants of f are the variant's too is averaged over in the same way and tested beside it.

Shapes: N points of both sides, B replicates of the documents, T places, P columns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from rbpx.laws.forms.linearised import Mixed, Nearby, mix
from rbpx.laws.intervals.estimate import TAILS, Estimate, Z
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import nearby, thinned
from rbpx.laws.surface.design import judge
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status, first_of, in_order

FORMS: Final = ("chinchilla", "kaplan")
BEYOND: Final = 10.0  # times the most compute that was compared
REFUSED: Final = 0.05  # a p below it says that the constants are not shared
_ALONG: Final = {Axis.S: (1.0, 0.0), Axis.D: (0.0, 1.0), Axis.C: (0.5, 0.5)}
_FEWEST: Final = 4  # runs of each side in the ranges of both
_STARTS: Final = tuple(math.log(m) for m in (0.1, 0.3, 1.0, 3.0, 10.0))
_ROUNDS: Final = 8
_CLOSE: Final = 0.005  # of ln m: a round that moves it less is the last
_MOST: Final = 1.5  # of ln m, in one round
_SD: Final = 3.0  # of ln m beforehand
_SD_SLOPE: Final = 0.3  # of its slope
_OWN: Final = 0.5  # prior weight of constants that differ
_APART: Final = (0.04, 0.15)  # by how much, of what a constant itself may be beforehand
_SAME: Final = 1e-7  # of a direction of the constants: one that is as short is none
_BETWEEN: Final = 25  # places, at which it is looked up from which compute on m is known to differ from 1
_EXACT: Final = 1e-5  # of ln y: points that lie on the law as closely test nothing


@dataclass(frozen=True)
class At:
    """The multiplier at one place.

    Attributes:
        C: compute of the variant, 6 S D.
        S: its size.
        D: its tokens.
        value: m there, with its 95 % interval.
        status: beyond where no run compared has as much compute, else ok.
    """

    C: float
    S: float
    D: float
    value: Estimate
    status: Status


@dataclass(frozen=True)
class Common:
    """Where two sets of runs are compared: the ranges of S and D that both have.

    Attributes:
        S: the least and the largest size.
        D: the fewest and the most tokens.
        n_base: points of the baseline in there.
        n_variant: of the variant.
        C: the least and the most compute of these.
        ratio: the geometric mean of their D / S.
    """

    S: tuple[float, float]
    D: tuple[float, float]
    n_base: int
    n_variant: int
    C: tuple[float, float]
    ratio: float


@dataclass(frozen=True, eq=False)
class Shift:
    """What a variant is worth over a surface.

    Attributes:
        axis: along which it is shifted.
        overall: the multiplier at the middle compute of the runs compared.
        slope: of ln m in ln C, between the least and the most compute compared; 0 where m does not change with scale.
        at: at the least, the middle and the most compute compared, and at ten times the most.
        apart: from which compute to which the interval leaves out 1 on one side: as far as the most that was compared,
            or else as far as the least; None where neither end does.
        p: of the test that both have the same constants; None where nothing is left to test it with.
        weights: of the forms, and of each with constants of the variant's own; they sum to 1.
        common: where both are compared; None where their ranges have too little in common.
        reasons: every status that holds.
    """

    axis: Axis
    overall: Estimate
    slope: Estimate
    at: tuple[At, ...]
    apart: tuple[float, float] | None
    p: float | None
    weights: dict[str, float]
    common: Common | None
    reasons: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)


def is_surface(base: Runs, variant: Runs) -> bool:
    """Whether both vary in size and in tokens, so that surfaces can be compared."""
    return all(len(runs.S_N) > 0 and not judge(runs.S_N, runs.D_N).is_collinear for runs in (base, variant))


def fit_shift(
    base: Runs,
    variant: Runs,
    axis: Axis,
    forms: Sequence[str] = FORMS,
    **options: Any,
) -> Shift:
    """Fit the surface that both share and the shift of the variant along it.

    Args:
        base: the baseline's runs; `y_BN` of both are of the same replicates of the documents.
        variant: the variant's.
        axis: S, D or C.
        forms: of the surface, names in `rbpx.laws.surface.fit.FORMS`.
        options: objective and delta of `fit_surface`.

    Returns:
        The multiplier. Without numbers its status is not_positive, too_few_sizes, collinear_design (either side does
        not vary in both axes), unsupported (fewer than 4 runs of a side in the ranges of both) or no_trend (the surface
        does not fall along the axis). With numbers: families_differ where the constants are not shared (p < .05).

    Source:
        The ratio of compute at equal loss is the "effective compute" of arXiv 2403.05812, section 2.
    """
    y = np.concatenate([base.y_N, variant.y_N])
    if not np.all((y > 0) & np.isfinite(y)):
        return _without(axis, Status.not_positive)
    if not is_surface(base, variant):
        return _without(axis, Status.collinear_design)
    base, variant = (runs.only(thinned(runs)) for runs in (base, variant))
    common = _common(base, variant)
    if common is None:
        return _without(axis, Status.unsupported)
    pair = _Pair.of(base, variant, axis, common)
    by_start = [pair.fit(forms[0], start, 0.0, options) for start in _STARTS]
    known = [(fit.objective, start) for fit, start in zip(by_start, _STARTS, strict=True) if fit.objective is not None]
    if not known:
        return _without(axis, first_of(reason for fit in by_start for reason in fit.reasons), common)
    ln_m, slope = min(known)[1], 0.0
    for _ in range(_ROUNDS):
        fits = [fit for fit in (pair.fit(form, ln_m, slope, options) for form in forms) if fit.surface is not None]
        ways = pair.ways(fits, ln_m, slope)
        if not ways:
            return _without(axis, Status.no_trend, common)
        mixed = mix(ways, pair.x_NA(ln_m, slope), None, pair.ln_y_N, pair.both.group_N)
        found_T = mixed.mixture.quantiles([0.5])[:, 0]
        moved = float(np.clip(found_T[_MIDDLE] - ln_m, -_MOST, _MOST))
        if abs(moved) < _CLOSE:
            break
        ln_m, slope = ln_m + moved, float(np.clip(found_T[_SLOPE], -_SD_SLOPE, _SD_SLOPE))
    p = pair.p_of_shared(ways)
    refused = [Status.families_differ] if p is not None and p < REFUSED else []
    return pair.told(mixed, ways[0], p, in_order(refused))


_LEAST, _MIDDLE, _GREATEST, _BEYOND = range(4)
_PLACES: Final = 4
_SLOPE: Final = -1


@dataclass(frozen=True, eq=False)
class _Pair:
    """Both sides as points of one surface.

    Attributes:
        both: all points; runs of the two sides are different ones.
        variant_N: 1 for those of the variant, 0 for the baseline's.
        axis: of the shift.
        common: where they are compared.
    """

    both: Runs
    variant_N: Floats
    axis: Axis
    common: Common

    @classmethod
    def of(cls, base: Runs, variant: Runs, axis: Axis, common: Common) -> "_Pair":
        y_BN = None
        if base.y_BN is not None and variant.y_BN is not None and len(base.y_BN) == len(variant.y_BN):
            y_BN = np.hstack([base.y_BN, variant.y_BN])
        S, D, y = (np.concatenate([getattr(runs, name) for runs in (base, variant)]) for name in ("S_N", "D_N", "y_N"))
        groups = np.concatenate([base.group_N, variant.group_N + base.n_groups])
        is_variant = np.repeat([0.0, 1.0], [len(base.y_N), len(variant.y_N)])
        return cls(Runs.of(S, D, y, groups=groups, y_replicates=y_BN), is_variant, axis, common)

    @property
    def ln_y_N(self) -> Floats:
        return np.asarray(np.log(self.both.y_N))

    @property
    def ln_C_T(self) -> Floats:
        """Compute of the least, the middle, the greatest that is compared, and ten times that; then even steps."""
        least, most = np.log(self.common.C)
        named = [least, (least + most) / 2, most, most + math.log(BEYOND)]
        return np.append(named, np.linspace(least, most, _BETWEEN))

    @property
    def about_N(self) -> Floats:
        """Ln C about the middle."""
        return np.asarray(np.log(self.both.along(Axis.C)) - self.ln_C_T[_MIDDLE])

    def places(self) -> tuple[Floats, Floats]:
        """S and D of the places, at the mean tokens for a parameter of the runs compared."""
        S_T = np.exp((self.ln_C_T - math.log(6 * self.common.ratio)) / 2)
        return S_T, S_T * self.common.ratio

    def x_NA(self, ln_m: float, slope: float) -> Floats:
        """Logarithms of S and D where the points lie on the surface of the baseline."""
        moved_N = self.variant_N * (ln_m + slope * self.about_N)
        return np.log(np.column_stack([self.both.S_N, self.both.D_N])) + moved_N[:, None] * _ALONG[self.axis]

    def fit(self, form: str, ln_m: float, slope: float, options: dict[str, Any]) -> Surface:
        """The surface of all points, those of the variant shifted."""
        S_N, D_N = np.exp(self.x_NA(ln_m, slope)).T
        return fit_surface(Runs.of(S_N, D_N, self.both.y_N, groups=self.both.group_N), form, n_replicates=0, **options)

    def ways(self, fits: Sequence[Surface], ln_m: float, slope: float) -> list[Nearby]:
        """Each form with shared constants and with the variant's own, for ln m at the places and its slope.

        The columns are those of the constants, of ln m and of its slope, then of how far the variant's constants are
        from the baseline's. Forms that do not fall along the axis have no multiplier.
        """
        ways, away_T = [], self.ln_C_T - self.ln_C_T[_MIDDLE]
        ln_m_T = ln_m + slope * away_T
        x_TA = np.log(np.column_stack(self.places())) + ln_m_T[:, None] * _ALONG[self.axis]
        S_T, D_T = np.exp(x_TA).T
        there = Runs.of(S_T, D_T, np.ones(len(x_TA)))
        for fit in fits:
            if fit.surface is None:
                continue
            of = nearby(fit.form, fit.surface, 1.0, fit.runs, there)
            along_N, along_T = (each @ _ALONG[self.axis] for each in (of.slope_NA, of.slope_TA))
            if not (np.all(along_T < 0) and np.any(along_N < 0)):
                continue
            of_m_NP = (self.variant_N * along_N)[:, None] * np.column_stack(
                [np.full(len(along_N), _SD), _SD_SLOPE * self.about_N]
            )
            zero_TP, of_m_TP = np.zeros(of.J_TP.shape), np.column_stack([np.full(len(away_T), _SD), _SD_SLOPE * away_T])
            here = replace(of, ln_y_T=np.append(ln_m_T, slope), slope_TA=np.zeros((len(away_T) + 1, 2)))
            for apart in (0.0, *_APART):
                own_NP, own_TP = apart * self.variant_N[:, None] * of.J_NP, apart * of.J_TP / along_T[:, None]
                J_TP = np.hstack([zero_TP, of_m_TP, own_TP])
                rise_P = (J_TP[_GREATEST] - J_TP[_LEAST]) / (away_T[_GREATEST] - away_T[_LEAST])
                name, prior = (f"{fit.form}, own", _OWN / len(_APART)) if apart else (fit.form, 1 - _OWN)
                J_NP = np.hstack([of.J_NP, of_m_NP, own_NP])
                ways.append(replace(here, name=name, prior=prior, J_NP=J_NP, J_TP=np.vstack([J_TP, rise_P])))
        return ways

    def p_of_shared(self, ways: Sequence[Nearby]) -> float | None:
        """The F test of shared constants against own ones, linear about the optimum of the form that fits best.

        Of the checkpoints of a run the last one counts.
        """
        last_N = self._last()
        n_ways = 1 + len(_APART)
        left = [(self.ln_y_N - shared.ln_y_N)[last_N] for shared in ways[::n_ways]]
        explained = [_left(way.J_NP[last_N], left[at // n_ways]) for at, way in enumerate(ways)]
        best = n_ways * min(range(len(left)), key=lambda at: explained[n_ways * at][0])
        (few, of_few), (many, of_many) = explained[best], explained[best + n_ways - 1]
        dof = len(last_N) - of_many
        if of_many == of_few or dof <= 0 or few <= _EXACT**2 * len(last_N):
            return None
        ratio = (few - many) / (of_many - of_few) / (many / dof)
        return float(fdtrc(of_many - of_few, dof, max(ratio, 0.0)))

    def _last(self) -> NDArray[np.intp]:
        order = np.lexsort((self.both.D_N, self.both.group_N))
        ends = np.append(np.diff(self.both.group_N[order]) > 0, True)
        return np.asarray(order[ends])

    def told(self, mixed: Mixed, way: Nearby, p: float | None, reasons: tuple[Status, ...]) -> Shift:
        """The numbers, their intervals widened by what other documents change."""
        mixture = mixed.mixture
        middle_T, lo_T, hi_T = mixture.quantiles((0.5, *TAILS)).T
        if self.both.y_BN is not None:
            change_BN = np.log(self.both.y_BN) - self.ln_y_N
            change_BT = change_BN @ np.linalg.pinv(way.J_NP).T @ way.J_TP.T
            variance_T = change_BT.var(axis=0, ddof=1)
            sd_T = (hi_T - lo_T) / (2 * Z)
            middle_T, lo_T, hi_T = (
                mixture.widened(np.sqrt(1 + variance_T / sd_T**2), middle_T).quantiles((0.5, *TAILS)).T
            )
        m = [Estimate(*ends).exp() for ends in zip(middle_T, lo_T, hi_T, strict=True)]
        slope = Estimate(float(middle_T[_SLOPE]), float(lo_T[_SLOPE]), float(hi_T[_SLOPE]))
        where = zip(*(each.tolist()[:_PLACES] for each in (np.exp(self.ln_C_T), *self.places())), m, strict=False)
        at = tuple(
            At(C, S, D, value, Status.beyond if place == _BEYOND else Status.ok)
            for place, (C, S, D, value) in enumerate(where)
        )
        between = slice(_PLACES, _SLOPE)
        C_T = np.exp(self.ln_C_T[_PLACES:])
        C_T[[0, -1]] = self.common.C  # free of rounding
        apart = _apart(C_T, np.sign(lo_T[between]) * (lo_T * hi_T > 0)[between])
        return Shift(self.axis, m[_MIDDLE], slope, at, apart, p, mixed.weights, self.common, reasons)


def _apart(C_T: Floats, side_T: Floats) -> tuple[float, float] | None:
    """The compute over which m is on one side of 1 (side 1 or -1, 0 for neither), from the most or the least of it."""
    for order in (slice(None, None, -1), slice(None)):
        C, side = C_T[order], side_T[order]
        n = int(np.append(side != side[0], True).argmax())
        if side[0] != 0:
            first, last = sorted((float(C[0]), float(C[n - 1])))
            return first, last
    return None


def _left(J_NP: Floats, left_N: Floats) -> tuple[float, int]:
    """The sum of squares that some columns do not explain, and how many of them are independent."""
    length_P = np.linalg.norm(J_NP, axis=0)
    J_NP = J_NP[:, length_P > 0] / length_P[length_P > 0]
    turned_NP, size_P, _ = np.linalg.svd(J_NP, full_matrices=False)
    turned_NP = turned_NP[:, size_P > _SAME * size_P.max()]
    rest_N = left_N - turned_NP @ (turned_NP.T @ left_N)
    return float(rest_N @ rest_N), turned_NP.shape[1]


def _common(base: Runs, variant: Runs) -> Common | None:
    """The ranges of both, and the runs in there; None where fewer than 4 of a side are."""
    S, D = (
        (max(float(of.min()) for of in each), min(float(of.max()) for of in each))
        for each in ((base.S_N, variant.S_N), (base.D_N, variant.D_N))
    )
    inside = [
        (runs.S_N >= S[0]) & (runs.S_N <= S[1]) & (runs.D_N >= D[0]) & (runs.D_N <= D[1]) for runs in (base, variant)
    ]
    if min(int(each.sum()) for each in inside) < _FEWEST:
        return None
    C = np.concatenate([runs.along(Axis.C)[of] for runs, of in zip((base, variant), inside, strict=True)])
    ratio = np.concatenate([(runs.D_N / runs.S_N)[of] for runs, of in zip((base, variant), inside, strict=True)])
    if C.max() <= C.min():
        return None
    n_base, n_variant = (int(each.sum()) for each in inside)
    return Common(S, D, n_base, n_variant, (float(C.min()), float(C.max())), float(np.exp(np.log(ratio).mean())))


def _without(axis: Axis, status: Status, common: Common | None = None) -> Shift:
    return Shift(axis, Estimate(), Estimate(), (), None, None, {}, common, (status,))
