"""Predicts a new run at (S, D) by model averaging over surface forms, or by a law in one axis for a collinear design.

Where size and tokens vary together, D = c S^m, no form is determined, but near that line a law in S predicts; designs
with one or two sizes have a law in D at each. The line of one budget is no law in S, as y has its minimum there: forms
are averaged, within three times its compute.

Shapes: N points, T targets.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.forms.linearised import LinearisedForm, average_linearised, draw_linearised, without_each
from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import LEVEL, NO_ESTIMATE, Estimate
from rbpx.laws.names import FORM_NAMES, Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.power.predicted import FAR, ROUNDED, extrapolation_factor
from rbpx.laws.prediction.calibration import error_in_sd, widen, widening_factor
from rbpx.laws.prediction.influence import Influence
from rbpx.laws.prediction.prediction import average_forms, tails_of
from rbpx.laws.prediction.verdict import too_few_hold
from rbpx.laws.priors import NO_PRIORS, Priors
from rbpx.laws.surface.checks import HeldOut, held_out_points
from rbpx.laws.surface.design import Design, judge_design
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors, has_constants
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import SurfaceParameters
from rbpx.status import Status, first_of, in_order

_NEAR: Final = math.log(1.25)  # how far from an exact line a point may be
_SAME: Final = 0.01  # of a logarithm
BUDGET: Final = 3  # times the compute, from one budget to the next
_ROUND_OFF: Final = 0.05  # of a budget, so that runs a nominal factor of 3 apart differ
_MOST_BUDGETS: Final = 4  # of each gap
_FEWEST_POINTS: Final = 7  # to fit
_FEWEST_RUNS: Final = 4
_MOST_POINTS: Final = 200  # the time rises with the third power
_FEWEST_CHECKPOINTS: Final = 2
_STEP: Final = 1e-5  # of a logarithm, for slopes
FAR_COMPUTE: Final = 30 * ROUNDED  # times the most compute; no backtest covers a larger extrapolation
_OF_COMPUTE: Final = 0.03  # of ln y by e-fold of compute, off the only budget; standard deviation


@dataclass(frozen=True, eq=False, repr=False)
class AveragedPrediction:
    """Predicted value of a new run.

    Attributes:
        y: median; None where no form could be fitted, or off the line of collinear runs.
        weights: of the forms; empty where a law in one axis predicts.
        widened: factor of backtests, in ln y.
        mixture: widened distribution of ln y.
        axis: of a law in one axis, "S" or "D".
        away: factor off the line of collinear runs, or off the compute of their only budget.
        beyond: factor outside the runs in S or D, or above their compute.
    """

    y: Estimate = NO_ESTIMATE
    weights: dict[str, float] = field(default_factory=dict)
    within: dict[str, Estimate] = field(default_factory=dict)
    widened: float = 1.0
    mixture: TMixture | None = None
    axis: str | None = None
    away: float | None = None
    beyond: float = 1.0
    reasons: tuple[Status, ...] = ()

    def __repr__(self) -> str:
        return f"{self.y}: {self.status.label}"

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)

    @property
    def value(self) -> float | None:
        """The median."""
        return self.y.value

    @property
    def lo(self) -> float | None:
        """Its lower end."""
        return self.y.lo

    @property
    def hi(self) -> float | None:
        """Its upper end."""
        return self.y.hi


def predict_on_line(runs: Runs, design: Design, S: float, D: float, p: float = 1 - LEVEL) -> AveragedPrediction:
    """Predicts y near the line of a collinear design."""
    if design.is_line:
        along_N, at = (runs.S_N, S) if design.along == "S" else (runs.D_N, D)
        # Where points scatter about the line by more than a factor of 1.25, their scatter defines near.
        widest = max(design.away(*each) for each in zip(runs.S_N.tolist(), runs.D_N.tolist(), strict=True))
        return _law(along_N, runs.y_N, at, design.along, design.away(S, D), max(widest, _NEAR), p)
    axis = "D" if design.n_S < design.n_D else "S"
    along_N, across_N, at, given = (runs.D_N, runs.S_N, D, S) if axis == "D" else (runs.S_N, runs.D_N, S, D)
    away_N = np.abs(np.log(across_N / given))
    nearest_N = away_N <= away_N.min() + _SAME
    return _law(along_N[nearest_N], runs.y_N[nearest_N], at, axis, float(away_N.min()), _SAME, p)


def _law(along_N: Floats, y_N: Floats, at: float, axis: str, away: float, near: float, p: float) -> AveragedPrediction:
    values, place_N = np.unique(along_N, return_inverse=True)
    y = np.exp(np.bincount(place_N, np.log(y_N)) / np.bincount(place_N))
    averaged = average_forms(values, y, [at], p=p) if away <= near else None
    answer = NO_ESTIMATE if averaged is None else Estimate(averaged[0].y, averaged[0].lo, averaged[0].hi)
    return AveragedPrediction(answer, axis=axis, away=math.exp(away))


@dataclass(frozen=True, eq=False)
class BudgetTest:
    """Runs near one budget, predicted from those with a `gap` (3 or 9) times smaller one."""

    gap: float
    fitted_N: NDArray[np.bool_]
    held_out: tuple[HeldOut, ...]


def forms_to_mix(runs: Runs, pins: Priors = NO_PRIORS) -> tuple[str, ...]:
    """The forms that differ on these runs and have all fixed parameters and priors."""
    differ = [name for name in FORM_NAMES if runs.repeats or name != "data_constrained"]
    return tuple(name for name in differ if has_constants(name, pins))


def backtest_budgets(
    runs: Runs, forms: Sequence[str], pins: Priors = NO_PRIORS, **options: Any
) -> tuple[BudgetTest, ...]:
    """Predicts the runs of each larger budget, by factors of 3 in C from the largest, from smaller ones."""
    tests = []
    for gap, fitted_N, held_N in _cuts(runs):
        few = runs.only(fitted_N)
        fits = [fit_surface_with_priors(few, form, pins, n_replicates=0, is_tested=False, **options) for form in forms]
        if any(fit.surface is not None for fit in fits):
            predicted = _estimates(average_linearised(*_linearised_forms(fits, runs.only(held_N))).mixture)
            tests.append(BudgetTest(gap, fitted_N, held_out_points(runs, Axis.C, np.flatnonzero(held_N), predicted)))
    return tuple(tests)


def _cuts(runs: Runs) -> list[tuple[float, NDArray[np.bool_], NDArray[np.bool_]]]:
    if len(runs.S_N) == 0:
        return []
    ln_C_N = np.log(runs.along(Axis.C))
    level_N = np.floor((ln_C_N.max() - ln_C_N) / math.log(BUDGET) + _ROUND_OFF).astype(int)
    cuts = []
    for gap in (1, 2):
        for level in range(_MOST_BUDGETS):
            fitted_N, held_N = level_N >= level + gap, level_N == level
            few = fitted_N.sum() < _FEWEST_POINTS or len(np.unique(runs.group_N[fitted_N])) < _FEWEST_RUNS
            if held_N.any() and not few and not judge_design(runs.S_N[fitted_N], runs.D_N[fitted_N]).is_collinear:
                cuts.append((float(BUDGET**gap), fitted_N, held_N))
    return cuts


def predict_averaged(
    fits: Sequence[Surface],
    points: Sequence[tuple[float, float]],
    budgets: Sequence[BudgetTest],
    U: float | None = None,
    p: float = 1 - LEVEL,
) -> list[AveragedPrediction]:
    """Predicts a new run at each point (S, D) by model averaging, for the same documents.

    At least one form is fitted, without replicates of the documents. Backtests with the nearest gap widen the
    intervals. It is beyond more than 10 times outside the runs in S, D or epochs, or 30 times above their compute.
    """
    runs, missed, found = fits[0].runs, missed_by_budgets(budgets), []
    for at, (S, D) in zip(_averaged(fits, points, budgets, U, p), points, strict=True):
        within = {fit.form: fit.surface.predict(S, D, U, new_run=True, p=p) for fit in fits if fit.surface is not None}
        outside, of_compute = _outside_runs(runs, S, D, U)
        far = [Status.beyond] if outside > FAR or of_compute > FAR_COMPUTE else []
        reasons = in_order([*far, *missed])
        found.append(replace(at, within=within, beyond=max(outside, of_compute), reasons=reasons))
    return found


def _outside_runs(runs: Runs, S: float, D: float, U: float | None = None) -> tuple[float, float]:
    """The factors, at least 1, by which a point is outside runs in S, D, epochs, and above their compute."""
    if not len(runs.S_N):
        return 1.0, 1.0
    of_axes = [extrapolation_factor(at, of.tolist()) for at, of in ((S, runs.S_N), (D, runs.D_N))]
    if U is not None and runs.U_N is not None:
        of_axes.append(max(D / U, 1.0) / max(float((runs.D_N / runs.U_N).max()), 1.0))
    return max(of_axes), max(6 * S * D / float(runs.along(Axis.C).max()), 1.0)


def _averaged(
    fits: Sequence[Surface],
    points: Sequence[tuple[float, float]],
    budgets: Sequence[BudgetTest],
    U: float | None,
    p: float,
) -> list[AveragedPrediction]:
    runs, design = fits[0].runs, fits[0].design
    if design is not None and design.is_collinear and not design.is_budget:
        none = AveragedPrediction()  # along the line, what repetition costs is not known
        return [none if U is not None and U < D else predict_on_line(runs, design, S, D, p) for S, D in points]
    if all(fit.surface is None for fit in fits):
        return [AveragedPrediction()] * len(points)
    (S, D), C_N = np.array(points, np.float64).T, runs.along(Axis.C)
    mixed = average_linearised(*_linearised_forms(fits, Runs.of(S, D, np.ones(len(S)), U)))
    factor_T = np.array([_factor(budgets, gap) for gap in (6 * S * D / C_N.max()).tolist()])
    mixture = mixed.mixture.widened(factor_T, mixed.mixture.quantiles([0.5])[:, 0])
    away_T = np.zeros(len(S))
    if design is not None and design.is_budget:
        away_T = np.abs(np.log(6 * S * D / (fits[0].only_budget or 1.0)))
        mixture = replace(mixture, scale=np.hypot(mixture.scale, _OF_COMPUTE * away_T[:, None]))
    return [
        AveragedPrediction(y if away <= math.log(BUDGET * ROUNDED) else NO_ESTIMATE, mixed.weights, {}, float(by), of)
        for y, by, away, of in zip(
            _estimates(mixture, p), factor_T, away_T, map(mixture.at, range(len(S))), strict=True
        )
    ]


def widened_tests(budgets: Sequence[BudgetTest]) -> list[BudgetTest]:
    """Backtests whose intervals are as much wider as those of predictions at their gaps."""
    return [
        replace(
            budget,
            held_out=tuple(
                replace(test, predicted=widen(test.predicted, _factor(budgets, budget.gap))) for test in budget.held_out
            ),
        )
        for budget in budgets
    ]


def missed_by_budgets(budgets: Sequence[BudgetTest]) -> list[Status]:
    """`intervals_missed` where too few intervals of backtests hold, wide as they are."""
    held = [test.is_inside for of in widened_tests(budgets) for test in of.held_out]
    return [Status.intervals_missed] if too_few_hold(held) else []


def most_influential(
    fits: Sequence[Surface], points: Sequence[tuple[float, float]], U: float | None = None
) -> list[Influence | None]:
    """For each prediction, the run whose omission moves it most, and the relative move; None for collinear runs."""
    S, D = np.array(points, np.float64).T
    design = fits[0].design
    if design is None or design.is_collinear or all(fit.surface is None for fit in fits):
        return [None] * len(points)
    share_RT = np.expm1(without_each(*_linearised_forms(fits, Runs.of(S, D, np.ones(len(S)), U))))
    return [Influence(int(by), float(share_RT[by, t])) for t, by in enumerate(np.abs(share_RT).argmax(axis=0))]


def _factor(budgets: Sequence[BudgetTest], gap: float) -> float:
    gaps = sorted({budget.gap for budget in budgets}, key=lambda known: abs(math.log(known / max(gap, BUDGET))))
    tests = [budget for budget in budgets if budget.gap == gaps[0]]
    most = max((int(test.fitted_N.sum()) for test in tests), default=1)
    errors = [[error_in_sd(each.predicted, each.measured) for each in test.held_out] for test in tests]
    return widening_factor(
        (test.fitted_N.sum() / most, [each for each in of_test if each is not None])
        for test, of_test in zip(tests, errors, strict=True)
    )


def draw_averaged(fits: Sequence[Surface], there: Runs, n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Joint draws of ln y of the surface, [n, T], and of the scatter of a run about it, [n]; one fit has a surface."""
    return draw_linearised(*_linearised_forms(fits, there), n, seed)


def _linearised_forms(
    fits: Sequence[Surface], there: Runs
) -> tuple[list[LinearisedForm], Floats, Floats, Floats, NDArray[np.int64]]:
    runs, forms = fits[0].runs.only(thin_checkpoints(fits[0].runs)), list[LinearisedForm]()
    for fit in fits:
        most = sum(prior for _, prior in fit.ways)
        forms += [linearise(fit.form, surface, prior / most, runs, there) for surface, prior in fit.ways]
    x_NA, x_TA = (np.log(np.column_stack([each.S_N, each.D_N])) for each in (runs, there))
    return forms, x_NA, x_TA, np.log(runs.y_N), runs.group_N


def thin_checkpoints(runs: Runs) -> NDArray[np.intp]:
    """Indices that thin the checkpoints of runs to even steps in ln D, with both ends."""
    of_run = max(_FEWEST_CHECKPOINTS, _MOST_POINTS // max(runs.n_groups, 1))
    kept = []
    for run in range(runs.n_groups):
        at = np.flatnonzero(runs.group_N == run)
        at = at[np.argsort(runs.D_N[at], kind="stable")]
        if len(at) > of_run:
            ln_D = np.log(runs.D_N[at])
            wanted = np.linspace(ln_D[0], ln_D[-1], of_run)
            at = at[np.unique(np.abs(ln_D - wanted[:, None]).argmin(axis=1))]
        kept.append(at)
    return np.concatenate(kept)


def linearise(name: str, surface: SurfaceParameters, prior: float, runs: Runs, there: Runs) -> LinearisedForm:
    """Linearises a surface about its constants, at the runs and at other points."""
    sd_P = surface.form.prior_sd(surface.theta_P) * ~surface.fixed_P

    def at(of: Runs) -> tuple[Floats, Floats, Floats]:
        x = of.places.about(surface.x.ln_S_ref, surface.x.ln_D_ref)
        ln_y_1N, J_1PN = surface.form.evaluate(x, surface.theta_P[None])
        moved = (replace(x, s_N=x.s_N + _STEP), replace(x, d_N=x.d_N + _STEP))
        slopes = [(surface.form.evaluate(each, surface.theta_P[None])[0] - ln_y_1N)[0] / _STEP for each in moved]
        return ln_y_1N[0] + math.log(surface.form.y_ref), J_1PN[0].T * sd_P, np.column_stack(slopes)

    return LinearisedForm(name, prior, *at(runs), *at(there))


def _estimates(mixture: TMixture, p: float = 1 - LEVEL) -> list[Estimate]:
    return [Estimate(*ends).exp() for ends in mixture.quantiles(tails_of(p)).tolist()]
