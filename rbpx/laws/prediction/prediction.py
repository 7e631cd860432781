"""Predictions at sizes that were not fitted, by one law or over the forms that it may have, and scores of forecasts.

No ladder of a few sizes says which form a law has, and far outside the sizes the form is what matters. So each form of
`rbpx.laws.forms.candidates` is fitted, with independent and with correlated scatter of the models, and the predictions
are averaged with weights by how well the forms fit (Bayesian model averaging).

A level is reached at the size at which a new model is as likely below it as above it, by that average. The interval has
the sizes at which the level lies inside the 95 % interval of the prediction. A single form would say exactly where,
though another that fits as well says that the level is never reached.

Predictions and scores are on the scale of ln y, on which intervals are about even.

Shapes: B series, N sizes, T other sizes, L levels, G components (a form with its E or bend, and a correlation).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.forms.candidates import FormFits, Shape, fit_forms, form_grid, given_constants, means_of_sizes
from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import LEVEL, Estimate, Z, of_share
from rbpx.laws.intervals.misfit import Departure
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.power.predictor import Prediction, outside
from rbpx.laws.priors import FixedValues


def along(fit: PowerLaw, n: int) -> list[Prediction]:
    """The predictions of a law that has numbers at n sizes from its smallest to its largest, evenly spaced in ln S."""
    return [fit.predict(float(S)) for S in np.geomspace(min(fit.S), max(fit.S), n)]


@dataclass(frozen=True)
class Score:
    """How one forecast did.

    Attributes:
        error: (predicted - measured) / measured.
        in_sd: (ln measured - ln predicted) over the sd that the interval stands for, its width / (2 * 1.96).
        is_inside: whether the interval contains the measured value.
        interval_score: width of the interval in ln y, plus 2 / 0.05 times how far the measured value lies outside it;
            the less the better, so neither a wide interval nor one that misses pays.
    """

    error: float
    in_sd: float
    is_inside: bool
    interval_score: float


def score(y: float, lo: float, hi: float, measured: float) -> Score | None:
    """Score one forecast; None where a value is 0, not finite or of another sign, which has no logarithm.

    Args:
        y: the prediction.
        lo: lower end of its 95 % interval.
        hi: upper end.
        measured: what the model showed.

    Source:
        T. Gneiting, A. E. Raftery, Strictly Proper Scoring Rules, Prediction, and Estimation, JASA 102, 2007, eq. 43.
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
    """The share of intervals that contained what was measured, with an interval; all None without any.

    The quantities of one model err together, so the interval is one for as many forecasts as there are models; it is
    too wide where they err apart.

    Args:
        inside: of each forecast.
        models: which model each was about.
    """
    if not inside:
        return Estimate()
    n = len(set(models))
    return of_share(n * sum(inside) / len(inside), n)


COMBINED: Final = "combined"  # the method of an answer over all forms
WITHOUT_LARGEST: Final = "without_largest"  # of one without the largest runs, which the others do not foretell
MIN_SIZES: Final = 3


def tails_of(p: float) -> tuple[float, float, float]:
    """Those of the median and of both ends of an interval that leaves out p."""
    return 0.5, p / 2, 1 - p / 2


TAILS: Final = tails_of(1 - LEVEL)
SEARCHED: Final = 1e6  # times outside the sizes; farther than any ladder says anything
_STEP: Final = math.log(10) / 10  # of the search, in ln S
_CLOSE: Final = 1e-12  # in ln S
_DEPARTS: Final = ((Departure.end, 0.2), (Departure.scatter, 0.1))  # prior weights
_FEWEST_TO_DEPART: Final = 4  # sizes; of three, no departure can be told
_MOST_TO_DEPART: Final = 32  # sizes; among more, the last two or their scatter hardly move a law


def average_forms(
    S: ArrayLike,
    y: ArrayLike,
    targets: Sequence[float],
    given: Sequence[FixedValues] = (),
    each_form: bool = True,
    p: float = 1 - LEVEL,
) -> list[Prediction] | None:
    """Predict y at each target over the forms of a law.

    Args:
        S: sizes, shape [N], positive; equal ones are replicates.
        y: the quantity at each, shape [N]; where all are negative, |y| has the law.
        targets: sizes to predict.
        given: values of the constants that are given, `rbpx.laws.power.fixed_parameters.values_of`.
        each_form: whether to say what each form counts and says alone.
        p: how much each interval leaves out.

    Returns:
        A prediction for each target; None below 3 different sizes, or where a y is 0, not finite or of another sign. It
        does not include document sampling: a new model is measured on the same documents.
    """
    fits = fit_over_forms(S, y, given)
    if fits is None:
        return None
    mixture, sizes = fits.at(np.log(np.asarray(targets, dtype=np.float64))), np.asarray(S, dtype=np.float64).tolist()
    sign = -1.0 if np.asarray(y)[0] < 0 else 1.0

    def answers(mixture: TMixture) -> list[Prediction]:
        found = []
        for S_new, (y, *ends) in zip(targets, (sign * _ends(mixture, p)[0]).tolist(), strict=True):
            lo, hi = sorted(ends) if np.all(np.isfinite(ends)) else (None, None)
            found.append(Prediction(S_new, y, lo, hi, outside(S_new, sizes)))
        return found

    if not each_form:
        return answers(mixture)
    shape_G, weight_RF = fits.grid.shape_G, fits.weight_BRF[0]
    weights: dict[str, float] = {shape: float(weight_RF[:, fits.grid.shape_F == shape].sum()) for shape in Shape}
    correlated = float(weight_RF[[scatter.is_correlated for scatter in fits.grid.scatters]].sum())
    within: dict[str, list[Prediction]] = {
        shape: answers(mixture.only(shape_G == shape)) for shape, weight in weights.items() if weight > 0
    }
    return [
        replace(each, weights=weights, correlated=correlated, within={shape: of[t] for shape, of in within.items()})
        for t, each in enumerate(answers(mixture))
    ]


def fit_over_forms(S: ArrayLike, y: ArrayLike, given: Sequence[FixedValues] = ()) -> FormFits | None:
    """Every form fitted to |y| at sizes in any order; None as in `average_forms`."""
    S_N, y_N = np.asarray(S, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(np.unique(S_N)) < MIN_SIZES or not np.all(np.isfinite(y_N)) or not (np.all(y_N > 0) or np.all(y_N < 0)):
        return None
    return fit_batch(S_N, np.abs(y_N)[None], given)


def predict_batch(S: ArrayLike, y_BN: ArrayLike, S_new: float) -> Floats:
    """As `average_forms` for B series at the same sizes: median, lower and upper end, shape [B, 3].

    Args:
        S: sizes, shape [N]; equal ones are replicates.
        y_BN: the quantity of each series, positive, shape [B, N].
        S_new: the size to predict.
    """
    return _ends(fit_batch(S, y_BN).at(np.log([S_new])))[:, 0]


def fit_batch(S: ArrayLike, y: ArrayLike, given: Sequence[FixedValues] = ()) -> FormFits:
    """Every form fitted to B series [B, N] at the same sizes."""
    S_N, ln_y_BN, own_B = means_of_sizes(np.asarray(S, dtype=np.float64), np.log(np.asarray(y, dtype=np.float64)))
    departs = _DEPARTS if _FEWEST_TO_DEPART <= len(S_N) <= _MOST_TO_DEPART else ()
    grid = form_grid(tuple(np.log(S_N).tolist()), given_constants(given, float(np.exp(ln_y_BN.min()))), departs)
    return fit_forms(grid, ln_y_BN, own_B)


def _ends(mixture: TMixture, p: float = 1 - LEVEL) -> Floats:
    """Median and both ends of the interval of y, in the last axis."""
    with np.errstate(over="ignore"):  # an end beyond any float is infinite
        return np.asarray(np.exp(mixture.quantiles(tails_of(p))))


@dataclass(frozen=True)
class Reached:
    """Where a level is reached, natural logarithms of S; None where that is not within what was searched.

    Attributes:
        ln_S: the smallest size at which a new model is more likely below the level than above it.
        ln_lo: the smallest size at which the level is inside the 95 % interval of a new model.
        ln_hi: the largest.
    """

    ln_S: float | None
    ln_lo: float | None
    ln_hi: float | None


def reach_over_forms(S: ArrayLike, y: ArrayLike, levels: Sequence[float]) -> list[Reached] | None:
    """Where y falls to each level, from a millionth of the smallest size to a million times the largest.

    Args:
        S: sizes, shape [N], positive; equal ones are replicates.
        y: the quantity at each, shape [N], falling with S on the whole.
        levels: values of y, positive.

    Returns:
        One a level; None where `rbpx.laws.prediction.prediction.average_forms` has no prediction, or y is negative.
    """
    from scipy.optimize.elementwise import find_root  # which other questions need not wait for

    fits = fit_over_forms(S, y)
    if fits is None or np.any(np.asarray(y) < 0):
        return None
    far, x_N, ln_level_L = math.log(SEARCHED), fits.grid.x_N, np.log(levels)
    x_T = np.arange(x_N[0] - far, x_N[-1] + far + _STEP, _STEP)
    mixture = fits.at(x_T)
    t_L3 = np.array([_passed(mixture.below(ln_level)[0]) for ln_level in ln_level_L])
    # All that lie between two sizes are searched at once.
    at_L3, ln_S_L3 = (t_L3 > 0) & (t_L3 < len(x_T)), np.full(t_L3.shape, math.nan)
    t_R, (level_R, tail_R) = t_L3[at_L3], np.nonzero(at_L3)
    ln_S_L3[at_L3] = find_root(
        lambda x, *of: fits.at(x).below(of[0])[0] - of[1],
        (x_T[t_R - 1], x_T[t_R]),
        args=(ln_level_L[level_R], np.array(TAILS)[tail_R]),
        tolerances={"xatol": _CLOSE},
    ).x
    return [Reached(*(None if math.isnan(ln_S) else ln_S for ln_S in row)) for row in ln_S_L3.tolist()]


def _passed(below_T: Floats) -> list[int]:
    """The size before which the probability of less than a level passes each of the tails; 0 or T where none is.

    It rises with S, but need not do so throughout: the first size that is as likely below as above the level, the first
    at which the level is inside the interval, and the one behind the last.
    """
    middle, lower, upper = TAILS
    firsts = [int(np.argmax(np.append(below_T >= tail, True))) for tail in (middle, lower)]
    return [*firsts, len(below_T) - int(np.argmax(np.append(below_T[::-1] < upper, True)))]
