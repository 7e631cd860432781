"""Fits each form of the ranks to several sizes at once, chooses one by the smaller ones, and judges all by the largest.

Shapes: N sizes, D documents, R ranks that occur, Q places, Y quantities: -ln RBP_k at each k, H(P), cross-entropy.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, document_t, estimate, half_width
from rbpx.laws.numeric import Floats, line
from rbpx.laws.ranks.closure import FormFit, fit_form, scatter_half_width
from rbpx.laws.ranks.shapes import RANK_FORMS, RankForm, mixed, places_of
from rbpx.questions.ranks.compare import Counted
from rbpx.runs.documents import RankBin, rank_edges
from rbpx.status import Status

_PER_DECADE: Final = 4  # bins of residuals
_LEAST: Final = 1e-12  # share of a bin; below it a difference of cumulative shares is rounding


@dataclass(frozen=True, eq=False)
class Sizes:
    """The sizes of one group, in order.

    Attributes:
        S_N: sizes; the largest is held out, and may occur more than once (replicates).
        counted: the tokens of each rank in each document.
        ln_y_NY: ln of each quantity.
        ln_sd_NY: its standard deviation over documents.
        V: the largest vocabulary.
        weights_BD: how often each document is drawn in each resample; None for a single document.
        n_resampled: number of documents, or of the texts that several were cut from.
    """

    S_N: Floats
    counted: Sequence[Counted]
    ln_y_NY: Floats
    ln_sd_NY: Floats
    V: int
    weights_BD: Floats | None
    n_resampled: int

    @property
    def smaller_N(self) -> npt.NDArray[np.bool_]:
        """Whether a size is smaller than the largest."""
        return np.asarray(self.S_N < self.S_N.max())

    @property
    def choosing_S(self) -> Floats:
        """The sizes that choose a form: below the largest, each predicted from three smaller ones, or two of three."""
        smaller_S = np.unique(self.S_N[self.smaller_N])
        return smaller_S[min(3, len(smaller_S) - 1) :]

    def ln_y_Y(self, S: float) -> Floats:
        """Ln of each quantity of one size, the mean of its replicates."""
        return np.asarray(self.ln_y_NY[self.S_N == S].mean(axis=0))


@dataclass(frozen=True)
class Held:
    """One quantity of the largest size, nats; its attributes are columns of its row.

    Attributes:
        quantity: rbp, error_entropy or cross_entropy.
        k: of RBP, else None.
        scored: whether it counts: RBP up to the largest k whose law stands, H(P) and cross-entropy.
        measured: as counted; H(P) minus its bias.
        predicted: by the form, from the smaller sizes.
        predicted_lo: from here on a new model would lie if the form were right.
        predicted_hi: up to here.
        own: by the form when fitted to the largest size itself.
        own_lo: lower end of its interval over documents.
        own_hi: upper end.
        separate: by a law in S of this quantity alone, through the smaller sizes; None where a share is 0 or 1.
    """

    quantity: str
    k: int | None
    scored: bool
    measured: float
    predicted: float
    predicted_lo: float
    predicted_hi: float
    own: float
    own_lo: float
    own_hi: float
    separate: float | None

    @property
    def inside(self) -> bool:
        """Whether the measured value lies within the interval of the predicted one."""
        return self.predicted_lo <= self.measured <= self.predicted_hi

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Residual(RankBin):
    """A bin of ranks at the largest size, with the ratio of its tokens to those that the chosen form expects.

    The interval of the ratio is over documents; all of it is None where the form expects none.
    """

    ratio: Estimate


@dataclass(frozen=True, eq=False)
class FormResult:
    """What one form predicts; its attributes but the last two are columns of its row.

    Attributes:
        distribution: its name among `RANK_FORMS`.
        status: ok or not_converged.
        error: median of |ln predicted - ln measured| over the scored quantities; None where none is scored. A mean
            square would be decided by the largest k, with its few misses.
        error_own: the same when fitted to the largest size itself.
        error_choice: median of |ln predicted - ln measured| over all quantities, mean over the sizes that choose; None
            where half of the quantities have no logarithm.
        heldout_nats: mean log-likelihood of a token of the largest size.
        behind: nats per token that it loses there to the most likely form, with an interval over documents.
        alpha_rbp_1: exponent of -ln RBP_1 that it implies over all sizes; None where k = 1 is not asked for.
        alpha_cross_entropy: the same of cross-entropy.
        laws: its parameters as lines through all sizes, at_ref + slope ln (S / S_ref).
        slopes: of its parameters by ln S, from the smaller sizes.
        held: each quantity of the largest size.
    """

    distribution: str
    status: Status
    error: float | None
    error_own: float | None
    error_choice: float | None
    heldout_nats: float
    behind: Estimate
    alpha_rbp_1: float | None
    alpha_cross_entropy: float | None
    laws: list[dict[str, str | float]]
    slopes: dict[str, float]
    held: tuple[Held, ...]

    @property
    def form(self) -> RankForm:
        """The form itself."""
        return RANK_FORMS[self.distribution]

    @property
    def n_scored(self) -> int:
        """How many quantities are scored."""
        return sum(held.scored for held in self.held)

    @property
    def n_inside(self) -> int:
        """How many of these lie within their intervals."""
        return sum(held.scored and held.inside for held in self.held)

    @property
    def closes(self) -> bool:
        """Whether every scored quantity lies within its interval."""
        return self.status is Status.ok and self.n_inside == self.n_scored > 0

    @property
    def difference(self) -> float | None:
        """Exponent of -ln RBP_1 minus that of cross-entropy."""
        if self.alpha_rbp_1 is None or self.alpha_cross_entropy is None:
            return None
        return self.alpha_rbp_1 - self.alpha_cross_entropy


@dataclass(frozen=True, eq=False)
class _Fits:
    """A form fitted to the smaller sizes, to all, and to the largest; mean nats of a token of the largest by `fit`.

    `error_choice` is that of `FormResult`.
    """

    fit: FormFit
    whole: FormFit
    own: FormFit
    heldout_nats: float
    error_choice: float


def judge_forms(
    sizes: Sizes, k_grid: Sequence[int], scored_Y: npt.NDArray[np.bool_], separate_Y: Floats
) -> tuple[list[FormResult], list[Residual]]:
    """Choose a form by the smaller sizes, and test every form on the largest; the chosen one first."""
    places, smaller = places_of(sizes.V, k_grid), sizes.smaller_N
    seen_NQ = np.array([places.nodes.moved(of.rank_R, of.n_R) for of in sizes.counted])
    n_largest, fits = seen_NQ[~smaller].sum(), dict[str, _Fits]()
    for name, form in RANK_FORMS.items():
        fit = fit_form(form, places, sizes.S_N[smaller], seen_NQ[smaller])
        whole = fit_form(form, places, sizes.S_N, seen_NQ)
        own = fit_form(form, places, sizes.S_N[~smaller][:1], seen_NQ[~smaller].sum(axis=0, keepdims=True))
        if all(np.isfinite(each.loglik) for each in (fit, whole, own)):
            before = {S: sizes.S_N < S for S in sizes.choosing_S.tolist()}
            below = {S: fit_form(form, places, sizes.S_N[at], seen_NQ[at]) for S, at in before.items()}
            nats = float(fit.likelihood(sizes.S_N[~smaller], seen_NQ[~smaller]).sum() / n_largest)
            fits[name] = _Fits(fit, whole, own, nats, _error_choice(sizes, below))
    if not fits:
        return [], []
    S, largest = float(sizes.S_N.max()), sizes.counted[-1]
    tokens_D = largest.tokens_DR.sum(axis=1)
    best_R = _at_ranks(max(fits.values(), key=lambda each: each.heldout_nats).fit, S, largest.rank_R)
    results = []
    for name, each in sorted(fits.items(), key=lambda of: (not of[1].fit.converged, of[1].error_choice)):
        lost_D = largest.tokens_DR @ (best_R - _at_ranks(each.fit, S, largest.rank_R))
        held = tuple(_held(sizes, each, k_grid, scored_Y, separate_Y))
        results.append(_result(name, sizes, each, held, k_grid, _ratio(sizes, lost_D, tokens_D)))
    return results, list(_residuals(sizes, fits[results[0].distribution].own, largest))


def _error_choice(sizes: Sizes, fits: Mapping[float, FormFit]) -> float:
    """Mean over some sizes of the median error of a form, each size by a fit of its own."""
    errors = []
    for S, fit in fits.items():
        ln_y_Y = sizes.ln_y_Y(S)
        known_Y = np.isfinite(ln_y_Y)  # a measured share of 1 has no error
        with np.errstate(divide="ignore"):
            errors.append(np.median(np.abs(np.log(fit.derived(np.array([S]))[0][known_Y]) - ln_y_Y[known_Y])))
    return float(np.mean(errors))


def typical(off: Floats) -> float | None:
    """Median size of errors; None where one is no number, or there are none."""
    return float(np.median(np.abs(off))) if len(off) and np.all(np.isfinite(off)) else None


def _held(
    sizes: Sizes, fits: _Fits, k_grid: Sequence[int], scored_Y: npt.NDArray[np.bool_], separate_Y: Floats
) -> Iterator[Held]:
    """The quantities of the largest size that are known, as one form predicts them."""
    S_new, smaller = float(sizes.S_N.max()), sizes.smaller_N
    predicted_Y, own_Y = (each.derived(np.array([S_new]))[0] for each in (fits.fit, fits.own))
    with np.errstate(divide="ignore", invalid="ignore"):  # a quantity of 0 has no ratio, and is left out
        ratio_NY = sizes.ln_y_NY[smaller] - np.log(fits.fit.derived(sizes.S_N[smaller]))
    measured_Y, sd_Y = np.exp(sizes.ln_y_Y(S_new)), sizes.ln_sd_NY[~smaller].max(axis=0)
    names: list[tuple[str, int | None]] = [("rbp", k) for k in k_grid]
    for at, (quantity, k) in enumerate([*names, ("error_entropy", None), ("cross_entropy", None)]):
        measured, predicted, own = (float(each_Y[at]) for each_Y in (measured_Y, predicted_Y, own_Y))
        known = np.all(np.isfinite([measured, predicted, own, *ratio_NY[:, at]]))
        if not known or min(measured, predicted, own) <= 0:
            continue
        scatter, dof, unit = scatter_half_width(ratio_NY[:, at], sizes.S_N[smaller], S_new)
        # Few misses are noise of their own at the new size, which the scatter of the smaller ones need not show.
        half = half_width(scatter=scatter, dof=dof, own=float(sd_Y[at]) / math.sqrt(unit), unit=unit)
        reach, own_reach = math.exp(half), math.exp(document_t(sizes.n_resampled) * float(sd_Y[at]))
        ends = (predicted, predicted / reach, predicted * reach, own, own / own_reach, own * own_reach)
        separate = float(separate_Y[at]) if np.isfinite(separate_Y[at]) else None
        yield Held(quantity, k, bool(scored_Y[at]), measured, *ends, separate)


def _result(
    name: str, sizes: Sizes, fits: _Fits, held: tuple[Held, ...], k_grid: Sequence[int], behind: Estimate
) -> FormResult:
    scored = [each for each in held if each.scored]
    with np.errstate(divide="ignore"):
        derived_NY, x_N = np.log(fits.whole.derived(sizes.S_N)), np.log(sizes.S_N)
    converged = all(each.converged for each in (fits.fit, fits.whole, fits.own))
    parameters = fits.fit.form.parameters
    of_parameters = zip(parameters, *fits.whole.coefficient_MP.tolist(), strict=True)
    return FormResult(
        distribution=name,
        status=Status.ok if converged else Status.not_converged,
        error=typical(np.array([math.log(each.predicted / each.measured) for each in scored])),
        error_own=typical(np.array([math.log(each.own / each.measured) for each in scored])),
        error_choice=fits.error_choice if math.isfinite(fits.error_choice) else None,
        heldout_nats=fits.heldout_nats,
        behind=behind,
        alpha_rbp_1=_slope(x_N, derived_NY[:, k_grid.index(1)]) if 1 in k_grid else None,
        alpha_cross_entropy=_slope(x_N, derived_NY[:, -1]),
        laws=[{"parameter": p, "at_ref": a, "slope": b} for p, a, b in of_parameters],
        slopes=dict(zip(parameters, fits.fit.coefficient_MP[1].tolist(), strict=True)),
        held=held,
    )


def _slope(x_N: Floats, ln_y_N: Floats) -> float | None:
    """The exponent of the line; None where a form gives a share of 0 or 1."""
    return float(line(x_N, ln_y_N)[1]) if np.all(np.isfinite(ln_y_N)) else None


def _ratio(sizes: Sizes, above_D: Any, below_D: Any, of: float = 1.0) -> Estimate:
    """The ratio of two sums over documents, divided by `of`, with its interval over resampled documents."""
    value = float(above_D.sum() / below_D.sum() / of)
    if sizes.weights_BD is None:
        return Estimate(value)
    with np.errstate(invalid="ignore"):  # a resample that draws no token has no mean, and is left out
        value_B = (sizes.weights_BD @ above_D) / (sizes.weights_BD @ below_D) / of
    return estimate(value, value_B, sizes.n_resampled, Recipe.uncentred)


def _at_ranks(fit: FormFit, S: float, rank_R: Floats) -> Floats:
    """Ln of the share of some ranks, [R]: normalised at the places, evaluated at the ranks."""
    places = fit.places
    at = replace(
        places,
        x_Q=np.concatenate([places.x_Q, rank_R]),
        ln_x_Q=np.concatenate([places.ln_x_Q, np.log(rank_R)]),
        ln_ranks_Q=np.concatenate([places.ln_ranks_Q, np.full(len(rank_R), -np.inf)]),
    )
    return np.asarray(mixed(fit.form.shares(fit.theta(np.array([S])), at))[0, len(places.x_Q) :])


def _residuals(sizes: Sizes, own: FormFit, of: Counted) -> Iterator[Residual]:
    """Observed over expected tokens in bins of ranks, at the largest size, for a form fitted to that size itself."""
    p_V = np.exp(_at_ranks(own, float(sizes.S_N.max()), np.arange(1, sizes.V + 1, dtype=np.float64)))
    expected, tokens_D = np.concatenate([[0.0], np.cumsum(p_V)]), of.tokens_DR.sum(axis=1)
    for begin, end in pairwise(rank_edges(sizes.V, _PER_DECADE)):
        seen_D = of.tokens_DR @ ((of.rank_R >= begin) & (of.rank_R < end)).astype(np.float64)
        share = float(expected[end - 1] - expected[begin - 1])
        ratio = _ratio(sizes, seen_D, tokens_D, share) if share > _LEAST else NO_ESTIMATE
        yield Residual(begin, end - 1, int(seen_D.sum()), ratio)
