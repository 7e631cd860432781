"""Predicts a law at other sizes by model averaging, finds sizes that reach a level, and scores forecasts.

All is in ln y, where intervals are nearly symmetric.

Shapes: B series, N sizes, T other sizes, L levels, G components (a form with its E or bend, and a scatter).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.forms.candidates import FormFits, LawForm, fit_forms, form_grid, given_constants, means_of_sizes
from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import LEVEL, Estimate, Z, of_share
from rbpx.laws.intervals.misfit import Departure
from rbpx.laws.numeric import Floats
from rbpx.laws.power.predicted import Prediction, extrapolation_factor
from rbpx.laws.priors import FixedValues


@dataclass(frozen=True)
class Score:
    """Errors of one forecast.

    Attributes:
        in_sd: (ln measured - ln predicted) over the width of the interval / (2 * 1.96).
        interval_score: width in ln y, plus 2 / 0.05 times the distance of the measured value from the interval.
    """

    error: float
    in_sd: float
    is_inside: bool
    interval_score: float


def score(y: float, lo: float, hi: float, measured: float) -> Score | None:
    """Scores a forecast y with a 95 % interval; None where a value is 0, not finite or of another sign.

    Source:
        T. Gneiting, A. E. Raftery, JASA 102, 2007, eq. 43.
    """
    values = (y, lo, hi, measured)
    signs = {math.copysign(1.0, value) for value in values if value != 0 and math.isfinite(value)}
    if len(signs) != 1 or not all(value != 0 and math.isfinite(value) for value in values) or lo == hi:
        return None
    ln_y, ln_measured = math.log(abs(y)), math.log(abs(measured))
    ln_lo, ln_hi = sorted((math.log(abs(lo)), math.log(abs(hi))))
    width = ln_hi - ln_lo
    outside = max(ln_lo - ln_measured, ln_measured - ln_hi, 0.0)
    return Score(
        error=(y - measured) / measured,
        in_sd=(ln_measured - ln_y) * 2 * Z / width,
        is_inside=lo <= measured <= hi,
        interval_score=width + 2 / (1 - LEVEL) * outside,
    )


def coverage(inside: Sequence[bool], models: Sequence[Hashable]) -> Estimate:
    """The share of intervals that held, with its interval; each model counts once."""
    if not inside:
        return Estimate()
    n = len(set(models))
    return of_share(n * sum(inside) / len(inside), n)


COMBINED: Final = "combined"  # method name of model averaging
WITHOUT_LARGEST: Final = "without_largest"  # the same without the largest runs, which deviate
MIN_SIZES: Final = 3


def tails_of(p: float) -> tuple[float, float, float]:
    """The probabilities below the median and below both ends of an interval at level 1 - p."""
    return 0.5, p / 2, 1 - p / 2


TAILS: Final = tails_of(1 - LEVEL)
SEARCHED: Final = 1e6  # extrapolation factor
_STEP: Final = math.log(10) / 10  # of the search, in ln S
_CLOSE: Final = 1e-12  # in ln S
_DEPARTS: Final = ((Departure.end, 0.2), (Departure.scatter, 0.1))  # prior weights
_FEWEST_TO_DEPART: Final = 4  # sizes; three show no departure
_MOST_TO_DEPART: Final = 32  # sizes; with more, the last two hardly move a law


def average_forms(
    S: ArrayLike,
    y: ArrayLike,
    targets: Sequence[float],
    given: Sequence[FixedValues] = (),
    each_form: bool = True,
    p: float = 1 - LEVEL,
) -> list[Prediction] | None:
    """Predicts y of a new model on the same documents at each target, by model averaging over the forms of a law.

    If all y are negative, |y| has the law. None below 3 different sizes, or where a y is 0, not finite or of another
    sign.
    """
    fits = fit_all_forms(S, y, given)
    if fits is None:
        return None
    mixture, sizes = fits.at(np.log(np.asarray(targets, dtype=np.float64))), np.asarray(S, dtype=np.float64).tolist()
    sign = -1.0 if np.asarray(y)[0] < 0 else 1.0

    def answers(mixture: TMixture) -> list[Prediction]:
        found = []
        for S_new, (y, *ends) in zip(targets, (sign * _ends(mixture, p)[0]).tolist(), strict=True):
            lo, hi = sorted(ends) if np.all(np.isfinite(ends)) else (None, None)
            found.append(Prediction(S_new, y, lo, hi, extrapolation_factor(S_new, sizes)))
        return found

    if not each_form:
        return answers(mixture)
    shape_G, weight_RF = fits.grid.shape_G, fits.weight_BRF[0]
    weights: dict[str, float] = {shape: float(weight_RF[:, fits.grid.shape_F == shape].sum()) for shape in LawForm}
    correlated = float(weight_RF[[scatter.is_correlated for scatter in fits.grid.scatters]].sum())
    within: dict[str, list[Prediction]] = {
        shape: answers(mixture.only(shape_G == shape)) for shape, weight in weights.items() if weight > 0
    }
    return [
        replace(each, weights=weights, correlated=correlated, within={shape: of[t] for shape, of in within.items()})
        for t, each in enumerate(answers(mixture))
    ]


def fit_all_forms(S: ArrayLike, y: ArrayLike, given: Sequence[FixedValues] = ()) -> FormFits | None:
    """Fits every form to |y|; None as in `average_forms`."""
    S_N, y_N = np.asarray(S, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(np.unique(S_N)) < MIN_SIZES or not np.all(np.isfinite(y_N)) or not (np.all(y_N > 0) or np.all(y_N < 0)):
        return None
    return fit_batch(S_N, np.abs(y_N)[None], given)


def fit_batch(S: ArrayLike, y: ArrayLike, given: Sequence[FixedValues] = ()) -> FormFits:
    """Fits every form to B series, [B, N], at the same sizes."""
    S_N, ln_y_BN, own_B = means_of_sizes(np.asarray(S, dtype=np.float64), np.log(np.asarray(y, dtype=np.float64)))
    departs = _DEPARTS if _FEWEST_TO_DEPART <= len(S_N) <= _MOST_TO_DEPART else ()
    grid = form_grid(tuple(np.log(S_N).tolist()), given_constants(given, float(np.exp(ln_y_BN.min()))), departs)
    return fit_forms(grid, ln_y_BN, own_B)


def _ends(mixture: TMixture, p: float = 1 - LEVEL) -> Floats:
    with np.errstate(over="ignore"):  # ends beyond any float are infinite
        return np.asarray(np.exp(mixture.quantiles(tails_of(p))))


def find_crossings(S: ArrayLike, y: ArrayLike, levels: Sequence[float]) -> list[Estimate] | None:
    """Finds where y falls to each level, as ln S; None of what lies a million times outside the sizes or farther.

    A new model of that size is as likely below the level as above it; the ends are of the sizes whose 95 % prediction
    interval contains the level. Levels and y are positive, and y decreases with S overall.
    """
    from scipy.optimize.elementwise import find_root  # imported late for speed

    fits = fit_all_forms(S, y)
    if fits is None or np.any(np.asarray(y) < 0):
        return None
    far, x_N, ln_level_L = math.log(SEARCHED), fits.grid.x_N, np.log(levels)
    x_T = np.arange(x_N[0] - far, x_N[-1] + far + _STEP, _STEP)
    mixture = fits.at(x_T)
    t_L3 = np.array([_passed(mixture.below(ln_level)[0]) for ln_level in ln_level_L])
    # One call searches all that lie between two sizes.
    at_L3, ln_S_L3 = (t_L3 > 0) & (t_L3 < len(x_T)), np.full(t_L3.shape, math.nan)
    t_R, (level_R, tail_R) = t_L3[at_L3], np.nonzero(at_L3)
    ln_S_L3[at_L3] = find_root(
        lambda x, *of: fits.at(x).below(of[0])[0] - of[1],
        (x_T[t_R - 1], x_T[t_R]),
        args=(ln_level_L[level_R], np.array(TAILS)[tail_R]),
        tolerances={"xatol": _CLOSE},
    ).x
    return [Estimate(*(None if math.isnan(ln_S) else ln_S for ln_S in row)) for row in ln_S_L3.tolist()]


def _passed(below_T: Floats) -> list[int]:
    middle, lower, upper = TAILS
    firsts = [int(np.argmax(np.append(below_T >= tail, True))) for tail in (middle, lower)]
    return [*firsts, len(below_T) - int(np.argmax(np.append(below_T[::-1] < upper, True)))]
