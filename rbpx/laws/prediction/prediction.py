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
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize.elementwise import find_root

from rbpx.laws.forms.candidates import Constants, FormFits, Shape, fit_forms
from rbpx.laws.forms.departing import predicting_grid
from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import LEVEL, Estimate, Replicates, Z, of_share
from rbpx.laws.intervals.estimate import TAILS as ENDS
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.pins import Given
from rbpx.laws.power.intervals import estimate
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.power.pinned import NOTHING
from rbpx.laws.power.predictor import Prediction, Predictor
from rbpx.laws.power.unequal import Unequal
from rbpx.status import Status


def predictor_of(
    S: ArrayLike,
    y: ArrayLike,
    replicates: Replicates | None,
    method: Method,
    sign: int = 1,
    given: Mapping[str, float] = NOTHING,
    unequal: Unequal | None = None,
) -> Predictor | None:
    """The same of the fit to these points, without the rest of it.

    Args:
        S: as in `rbpx.laws.power.law.fit_power_law`.
        y: the values; where their law is that of |y|, values of the other sign have none.
        replicates: of |y|.
        method: how ln |y| is regressed on ln S.
        sign: of the law.
        given: constants that are held.
        unequal: how runs count.
    """
    S_N, y_N = np.asarray(S, dtype=np.float64), sign * np.asarray(y, dtype=np.float64)
    found = estimate(S_N, y_N, replicates, method, given, unequal)
    S_ref = math.exp(float(np.log(S_N).mean()))
    if found is Status.no_variation:
        return Predictor(np.array([math.log(y_N[0]), 0.0]), S_ref, sign, S_N.tolist(), None)
    if isinstance(found, Status):
        return None
    about = found.spread if found.has_interval else None
    return Predictor(found.regression.theta_P, S_ref, sign, S_N.tolist(), about)


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

    The quantities of one model err together, so the interval is Wilson's for as many forecasts as there are models; it
    is too wide where they err apart.

    Args:
        inside: of each forecast.
        models: which model each was about.
    """
    if not inside:
        return Estimate()
    n = len(set(models))
    return of_share(n * sum(inside) / len(inside), n)


COMBINED: Final = "combined"  # the method of an answer over all forms
MIN_SIZES: Final = 3
TAILS: Final = (0.5, *ENDS)  # of the median and both ends of the interval
SEARCHED: Final = 1e6  # times outside the sizes; farther than any ladder says anything
_STEP: Final = math.log(10) / 10  # of the search, in ln S
_CLOSE: Final = 1e-12  # in ln S


@dataclass(frozen=True)
class Within:
    """Median and 95 % interval, None where an end is beyond any float; of `Averaged.within`, if one form counted."""

    y: float
    lo: float | None
    hi: float | None


@dataclass(frozen=True)
class Averaged:
    """What a new model of size S would show, on the same documents, over all forms.

    Attributes:
        S: the size.
        y: the median.
        lo: lower end of the 95 % interval; None where an end is beyond any float.
        hi: upper end.
        weights: of each form; they sum to 1.
        correlated: weight of scatter that is correlated between neighbouring sizes, and so between replicates.
        within: the answer of each form alone, of those that were fitted.
    """

    S: float
    y: float
    lo: float | None
    hi: float | None
    weights: dict[Shape, float]
    correlated: float
    within: dict[Shape, Within]

    def record(self) -> dict[str, Any]:
        """As JSON takes it."""
        weights = {shape.value: weight for shape, weight in self.weights.items()}
        return vars(self) | {"weights": weights, "within": {shape.value: vars(of) for shape, of in self.within.items()}}


def average_forms(
    S: ArrayLike, y: ArrayLike, targets: Sequence[float], given: Sequence[Given] = ()
) -> list[Averaged] | None:
    """Predict y at each target over the forms of a law.

    Args:
        S: sizes, shape [N], positive; equal ones are replicates.
        y: the quantity at each, shape [N]; where all are negative, |y| has the law.
        targets: sizes to predict.
        given: values of the constants that are given, `rbpx.laws.power.given.values_of`.

    Returns:
        A prediction for each target; None below 3 different sizes, or where a y is 0, not finite or of another sign. It
        does not include document sampling: a new model is measured on the same documents.
    """
    fits = fit_over_forms(S, y, given)
    if fits is None:
        return None
    shape_G, weight_G = fits.grid.shape_G, fits.weight_BG[0]
    weights = {shape: float(weight_G[shape_G == shape].sum()) for shape in Shape}
    correlated = float(weight_G[fits.grid.rho_G > 0].sum())
    mixture = fits.at(np.log(np.asarray(targets, dtype=np.float64)))
    over = _answers(mixture, y)
    within = {shape: _answers(mixture.only(shape_G == shape), y) for shape, weight in weights.items() if weight > 0}
    return [
        Averaged(
            S_new,
            **vars(over[t]),
            weights=weights,
            correlated=correlated,
            within={shape: of_shape[t] for shape, of_shape in within.items()},
        )
        for t, S_new in enumerate(targets)
    ]


def predict_over_forms(
    S: ArrayLike, y: ArrayLike, targets: Sequence[float], given: Sequence[Given] = ()
) -> list[Within] | None:
    """The median and the interval of `average_forms` alone, without what each form says; None as there."""
    fits = fit_over_forms(S, y, given)
    return None if fits is None else _answers(fits.at(np.log(np.asarray(targets, dtype=np.float64))), y)


def _answers(mixture: TMixture, y: ArrayLike) -> list[Within]:
    """The answer of a mixture at each target, with the sign of the y."""
    sign = -1.0 if np.asarray(y)[0] < 0 else 1.0
    values = (sign * _ends(mixture)[0]).tolist()
    return [Within(y, *(sorted(ends) if np.all(np.isfinite(ends)) else (None, None))) for y, *ends in values]


def fit_over_forms(S: ArrayLike, y: ArrayLike, given: Sequence[Given] = ()) -> FormFits | None:
    """Every form fitted to |y| at sizes in any order; None as in `average_forms`."""
    S_N, y_N = np.asarray(S, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(np.unique(S_N)) < MIN_SIZES or not np.all(np.isfinite(y_N)) or not (np.all(y_N > 0) or np.all(y_N < 0)):
        return None
    order = np.argsort(S_N)
    return _fit(S_N[order], np.abs(y_N[order])[None], given)


def predict_batch(S: ArrayLike, y_BN: ArrayLike, S_new: float) -> Floats:
    """As `average_forms` for B series at the same sizes: median, lower and upper end, shape [B, 3].

    Args:
        S: sizes in increasing order, shape [N].
        y_BN: the quantity of each series, positive, shape [B, N].
        S_new: the size to predict.
    """
    return _ends(_fit(S, y_BN).at(np.log([S_new])))[:, 0]


def _fit(S: ArrayLike, y: ArrayLike, given: Sequence[Given] = ()) -> FormFits:
    y_BN = np.asarray(y, dtype=np.float64)
    ln_S = tuple(np.log(np.asarray(S, dtype=np.float64)).tolist())
    constants = tuple(Constants.of(each, float(y_BN.min())) for each in given) or (Constants(),)
    return fit_forms(predicting_grid(ln_S, constants), np.log(y_BN))


def _ends(mixture: TMixture) -> Floats:
    """Median and both ends of the interval of y, in the last axis."""
    with np.errstate(over="ignore"):  # an end beyond any float is infinite
        return np.asarray(np.exp(mixture.quantiles(TAILS)))


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
    fits = fit_over_forms(S, y)
    if fits is None or np.any(np.asarray(y) < 0):
        return None
    x_N = fits.grid.x_N
    far = math.log(SEARCHED)
    x_T = np.arange(x_N[0] - far, x_N[-1] + far + _STEP, _STEP)
    ln_level_L = np.log(levels)
    mixture = fits.at(x_T)
    passed = [_passed(mixture.below(ln_level)[0]) for ln_level in ln_level_L]
    # All that lie between two sizes are searched at once.
    ends = [(at, t, tail) for at, of_level in enumerate(passed) for t, tail in zip(of_level, TAILS, strict=True)]
    inner = [(at, t, tail) for at, t, tail in ends if 0 < t < len(x_T)]
    level_R, t_R = (np.array(column, dtype=np.intp) for column in ([i[0] for i in inner], [i[1] for i in inner]))
    tail_R = np.array([tail for *_, tail in inner])
    ln_S_R = find_root(
        lambda x, *of: fits.at(x).below(of[0])[0] - of[1],
        (x_T[t_R - 1], x_T[t_R]),
        args=(ln_level_L[level_R], tail_R),
        tolerances={"xatol": _CLOSE},
    ).x
    found = {(at, tail): float(ln_S) for (at, _, tail), ln_S in zip(inner, ln_S_R, strict=True)}
    return [Reached(*(found.get((at, tail)) for tail in TAILS)) for at in range(len(levels))]


def _passed(below_T: Floats) -> list[int]:
    """The size before which the probability of less than a level passes each of the tails; 0 or T where none is.

    It rises with S, but need not do so throughout: the first size that is as likely below as above the level, the first
    at which the level is inside the interval, and the one behind the last.
    """
    middle, lower, upper = TAILS

    def first(tail: float) -> int:
        return int(np.argmax(below_T >= tail)) if np.any(below_T >= tail) else len(below_T)

    last = len(below_T) - int(np.argmax(below_T[::-1] < upper)) if np.any(below_T < upper) else 0
    return [first(middle), first(lower), last]
