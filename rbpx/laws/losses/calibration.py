"""Predicts y from a measured x, by a regression of y on x averaged over forms, y = E_y + K (x - E_x)^kappa, E on grids.

It holds for a new x with errors like the others', so their size is not needed. A model of a new family deviates by as
much as the families do.

Shapes: N models, T new ones, R scatters, F forms, or families.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.forms.candidates import FormFits, FormGrid, LawForm, fit_forms
from rbpx.laws.forms.scatters import correlated
from rbpx.laws.intervals.estimate import TAILS, Estimate, Z, student_t
from rbpx.laws.intervals.lack_of_fit import coefficient
from rbpx.laws.numeric import Floats
from rbpx.laws.power.predicted import Prediction, extrapolation_factor
from rbpx.laws.prediction.verdict import Backtest

FEWEST: Final = 3  # models
FAR: Final = 0.5  # of the measured range of ln x: how far outside it x may lie
_SHARES: Final = np.linspace(0, 0.98, 13)[1:]  # of the smallest x or y: grid of E, beside 0
_SCATTERS: Final = {(0.0, 1.0): 0.4, (0.5, 0.8): 0.3, (0.8, 0.8): 0.3}  # rho, common share: prior weight
_EVIDENCE: Final = 0.9  # power of the likelihood, since no form or scatter is exact
_FLATNESS: Final = 0.35  # prior between uniform exponents, .5, and uniform slopes, 0
_SPAN: Final = math.log(1e3)  # the range of ln x in units of ln S, along which scatter is correlated
_MOST_CORRELATED: Final = 64  # models; with more, scatter is taken to be independent
_MOST_BACKTESTS: Final = 10  # numbers of models that are fitted


@dataclass(frozen=True, eq=False)
class Calibration:
    """The forms, fitted to the models.

    Attributes:
        fits: the place of a model is -ln(x - E_x), and ln S is -ln x, stretched.
        E_x_F: of each form.
        between: squared addition to half of an interval, in ln y, for a model of another family.
    """

    fits: FormFits
    stretch: float
    E_x_F: Floats
    between: float = 0.0

    def at(self, x: Sequence[float]) -> list[Estimate]:
        """The median and the 95 % interval of y of new models, from their measured x."""
        mixture = self.fits.at(-self.stretch * np.log(np.asarray(x, np.float64)))
        ln_T3 = mixture.quantiles((0.5, *TAILS))[0]
        middle_T, out_T2 = ln_T3[:, 0], ln_T3[:, 1:] - ln_T3[:, :1]
        out_T2 = out_T2 * self._grows(np.asarray(x, np.float64))[:, None]
        ends_T2 = middle_T[:, None] + np.sign(out_T2) * np.sqrt(out_T2**2 + self.between)
        with np.errstate(over="ignore"):  # an end beyond any number is infinite
            return [Estimate(*row) for row in np.exp(np.column_stack([middle_T, ends_T2])).tolist()]

    def along(self, least: float, largest: float, n: int = 16) -> list[tuple[float, Estimate]]:
        """The predictions at n x evenly spaced in ln x between two, each with its x."""
        x_T = np.geomspace(least, largest, n).tolist()
        return list(zip(x_T, self.at(x_T), strict=True))

    def _grows(self, x_T: Floats) -> Floats:
        """Factor on the scatter where the curve is steeper, if half of it is of x; at least 1."""
        x_N = np.exp(-self.fits.grid.x_N / self.stretch)
        mean_square = float((self._slope(x_N) ** 2).mean())
        return np.sqrt(0.5 + 0.5 * np.maximum(self._slope(x_T) ** 2 / mean_square, 1.0))

    def _slope(self, x_T: Floats) -> Floats:
        fits, alpha_RF = self.fits, self.fits.theta_BRF2[0, ..., 1]
        u_T1F = fits.grid.place(-self.stretch * np.log(x_T))[:, None]
        ln_power_TRF = fits.theta_BRF2[0, ..., 0] - alpha_RF * u_T1F
        share_TRF = 1 / (1 + fits.E_BF[0] * np.exp(-ln_power_TRF))
        above_T1F = x_T[:, None, None] - self.E_x_F
        return np.asarray((share_TRF * alpha_RF * x_T[:, None, None] / above_T1F * fits.weight_BRF[0]).sum(axis=(1, 2)))


def calibrate(x: ArrayLike, y: ArrayLike, least_x: float, family: Sequence[str] | None = None) -> Calibration | None:
    """Fits every form; None for fewer than three different x, or an x or y that is not positive.

    `least_x`, of any model, bounds E_x; `family` is None where all are of one.
    """
    x_N, y_N = np.asarray(x, np.float64), np.asarray(y, np.float64)
    known = np.concatenate([x_N, y_N, [least_x]])
    if len(np.unique(x_N)) < FEWEST or not np.all(np.isfinite(known) & (known > 0)):
        return None
    stretch = _SPAN / float(np.ptp(np.log(x_N)))
    place_N = -stretch * np.log(x_N)
    scatters = _SCATTERS if len(x_N) <= _MOST_CORRELATED else {(0.0, 1.0): 1.0}
    of_E = [(0.0, 0.5), *((share, 0.5 / len(_SHARES)) for share in _SHARES.tolist())]
    of_x_F, of_y_F, prior_F = np.array([(of_x, of_y, at * beside) for of_x, at in of_E for of_y, beside in of_E]).T
    E_x_F = of_x_F * min(least_x, float(x_N.min()))
    middle_F = -np.log(x_N[:, None] - E_x_F).mean(axis=0)
    grid = FormGrid(
        place_N,
        tuple(correlated(place_N, *each, prior) for each, prior in scatters.items()),
        np.where((of_x_F > 0) | (of_y_F > 0), LawForm.offset, LawForm.power),
        prior_F,
        of_y_F,
        lambda place_T: -np.log(np.exp(-place_T[:, None] / stretch) - E_x_F) - middle_F,
        np.empty((len(prior_F), 0, 2)),
        np.empty((len(prior_F), 0)),
        _EVIDENCE,
        _FLATNESS,
    )
    fits = fit_forms(grid, np.log(y_N)[None], np.zeros(1))
    return Calibration(fits, stretch, E_x_F, 0.0 if family is None else _between(fits, family))


def _between(fits: FormFits, family: Sequence[str]) -> float:
    """Squared addition to half of the interval of a model of a family without points.

    The scatter of all points already includes the variance of the families, as if it were known.
    """
    left_N = np.einsum("rf,rfn->n", fits.weight_BRF[0], fits.residual_BRFN[0])
    _, of_N = np.unique(family, return_inverse=True)
    n_F = np.bincount(of_N)
    if len(n_F) < 2:
        return 0.0
    mean_F = np.bincount(of_N, left_N) / n_F
    own_N = left_N - mean_F[of_N]
    dof = len(left_N) - len(n_F)
    within = float(own_N @ own_N) / dof if dof > 0 else 0.0
    variance = max(float(mean_F.var(ddof=1)) - within * float((1 / n_F).mean()), 0.0)
    return max(student_t(len(n_F) - 1) ** 2 * (1 + 1 / len(n_F)) - Z**2, 0.0) * variance


def hold_out_best(x: ArrayLike, y: ArrayLike) -> tuple[Backtest, ...]:
    """Fits the models of the largest x, from three up, and compares with each of a smaller one, at places 1 / x."""
    x_N, y_N = (np.asarray(each, np.float64) for each in (x, y))
    order = np.argsort(-x_N, kind="stable")
    x_N, y_N = x_N[order], y_N[order]
    least = float(x_N.min(initial=math.inf))
    numbers = (
        sorted({round(m) for m in np.geomspace(FEWEST, len(x_N) - 1, _MOST_BACKTESTS)}) if len(x_N) > FEWEST else []
    )
    tests = []
    for m in numbers:
        fitted = calibrate(x_N[:m], y_N[:m], least)
        tests += [] if fitted is None else _compared(m, x_N[:m], fitted.at(x_N[m:].tolist()), x_N[m:], y_N[m:])
    return tuple(tests)


def hold_out_family(x: ArrayLike, y: ArrayLike, family: Sequence[str]) -> dict[str, tuple[Backtest, ...]]:
    """Fits all families but one and compares with each model of that one; empty for fewer than two families."""
    x_N, y_N, of_N = np.asarray(x, np.float64), np.asarray(y, np.float64), np.asarray(family)
    found = {}
    for name in dict.fromkeys(family) if len(set(family)) > 1 else ():
        others = of_N != name
        fitted = calibrate(x_N[others], y_N[others], float(x_N.min()), of_N[others].tolist())
        if fitted is not None:
            at = ~others
            told = fitted.at(x_N[at].tolist())
            found[name] = tuple(_compared(int(others.sum()), x_N[others], told, x_N[at], y_N[at]))
    return found


def _compared(m: int, fitted_N: Floats, told: Sequence[Estimate], x_T: Floats, y_T: Floats) -> list[Backtest]:
    tests, places = [], (1 / fitted_N).tolist()
    for x, y, measured in zip(x_T.tolist(), told, y_T.tolist(), strict=True):
        value = y.value or 0.0
        predicted = Prediction(1 / x, value, y.lo, y.hi, extrapolation_factor(1 / x, places))
        tests.append(Backtest(m, 1 / x, predicted, measured, (value - measured) / measured))
    return tests


def rises(x: ArrayLike, y: ArrayLike) -> bool:
    """Whether ln y rises with ln x: the interval of the slope of its regression lies above 0."""
    ln_x_N, ln_y_N = np.log(np.asarray(x, np.float64)), np.log(np.asarray(y, np.float64))
    slope = coefficient(np.column_stack([np.ones(len(ln_x_N)), ln_x_N - ln_x_N.mean()]), ln_y_N, 1)
    return slope.lo is not None and slope.lo > 0


def is_far(x: float, x_N: ArrayLike) -> bool:
    """Whether an x lies outside the measured ones by more than half of their range, in ln x."""
    ln_x_N = np.log(np.asarray(x_N, np.float64))
    out = max(float(ln_x_N.min()) - math.log(x), math.log(x) - float(ln_x_N.max()))
    return out > FAR * float(np.ptp(ln_x_N))
