"""Fits a surface y(S, D) to runs: constants with intervals over runs, objective, information criteria and status.

Shapes: N points, B bootstrap replicates of the runs, R the fit and these, P numbers of theta, W ways that searches end.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.arguments import level_of
from rbpx.laws.intervals.bootstrap import bootstrap_weights
from rbpx.laws.intervals.estimate import LEVEL, NO_ESTIMATE, Estimate
from rbpx.laws.names import DELTA, Axis, Objective
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import FixedParameter
from rbpx.laws.power.offset import NOTHING
from rbpx.laws.surface.data_constrained import DataConstrained
from rbpx.laws.surface.design import Design, judge_design
from rbpx.laws.surface.equations import Chinchilla, Kaplan, SurfaceForm, constants_at_bounds
from rbpx.laws.surface.loss import POINT, REPLICATE, Loss, ln_likelihood, loss
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import Optimum, SurfaceParameters, optimum
from rbpx.status import Status, first_of, in_order

FORMS: Final[dict[str, type[SurfaceForm]]] = {each.name: each for each in (Chinchilla, Kaplan, DataConstrained)}

_MOST_STARTS: Final = 196
_OF_A_LINE: Final = 3  # sizes, which say little of size and tokens, wherever they lie
_FEW_POINTS: Final = 400  # enough of thousands to rank the starts
_FEW_STEPS: Final = 20  # of each start
_FINALISTS: Final = 16
_SAME: Final = 1e-4  # relative; objectives this close belong to one minimum
_MOST_WAYS: Final = 8  # for a replicate
_NEAR: Final = math.log(1.25)  # of the only budget
_WORSE: Final = 1.3  # times the objective; a replicate is not searched from worse minima


@dataclass(frozen=True, eq=False)
class Surface:
    """A fitted surface.

    Attributes:
        constants: by the names of the source, with 95 % intervals over runs; None where one has no value.
        aic: comparable, as bic, between forms with the same points and objective (`ln_likelihood`).
        unidentified: constants on which no point depends.
        n_left_out: replicates that could not be fitted.
        ways: surfaces at the values of a prior, with their prior densities; without priors the fitted one alone.
    """

    form: str
    objective_name: Objective
    delta: float
    constants: dict[str, Estimate]
    runs: Runs = field(repr=False)
    design: Design | None
    objective: float | None = None
    aic: float | None = None
    bic: float | None = None
    at_bound: tuple[str, ...] = ()
    unidentified: tuple[str, ...] = ()
    reasons: tuple[Status, ...] = ()
    n_left_out: int = 0
    surface: SurfaceParameters | None = field(default=None, repr=False)
    pinned: tuple[FixedParameter, ...] = ()
    ways: tuple[tuple[SurfaceParameters, float], ...] = field(default=(), repr=False)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.runs.y_N)

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return self.runs.n_groups

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)

    @property
    def only_budget(self) -> float | None:
        """The compute of runs of one budget; None of others."""
        if self.design is None or not self.design.is_budget:
            return None
        return math.exp(float(np.log(self.runs.along(Axis.C)).mean()))

    def finds_best(self, C: float) -> bool:
        """Whether runs can show the best size of a budget: size and tokens vary apart, or all runs have it."""
        if (only := self.only_budget) is not None:
            return abs(math.log(C / only)) <= _NEAR
        return self.design is not None and not self.design.is_collinear

    def constants_at(self, p: float) -> dict[str, Estimate]:
        """The constants with their intervals at level 1 - p."""
        if self.surface is None:
            return self.constants
        of, least_y = self.surface, float(self.runs.y_N.min())
        has_none = {name: each.value is None for name, each in self.constants.items()}
        return {name: constant_estimate(of, name, has_none[name], least_y, p) for name in has_none}

    def predict(self, S: float, D: float, U: float | None = None) -> Estimate:
        """Predicts a new run of S parameters after D tokens, U of them unique (None: all)."""
        return self._fitted.predict(S, D, U, new_run=True)

    def optimum(self, C: float, U: float | None = None, level: float = LEVEL) -> Optimum:
        """The size and tokens with the least y for C = 6 S D training FLOPs, with U unique tokens."""
        return optimum(self._fitted, C, U=U, p=level_of(level))

    @property
    def _fitted(self) -> SurfaceParameters:
        if self.surface is None:
            raise ValueError(f"this surface has no numbers: {self.status}")
        return self.surface

    def record(self) -> dict[str, Any]:
        """The fit and the points that reproduce it."""
        runs = self.runs
        own = ("form", "delta", "objective", "n_runs", "n_left_out")
        return {
            **{name: getattr(self, name) for name in own},
            "objective_name": self.objective_name.value,
            "reasons": [reason.value for reason in self.reasons],
            "at_bound": list(self.at_bound),
            "constants": {name: [each.value, each.lo, each.hi] for name, each in self.constants.items()},
            "design": None if self.design is None else asdict(self.design),
            **{name: getattr(runs, f"{name}_N").tolist() for name in ("S", "D", "group")},
            "U": None if runs.U_N is None else runs.U_N.tolist(),
            "y": [each if math.isfinite(each) else None for each in runs.y_N.tolist()],  # unknown, or RBP_k = 0
            "residuals_ln": [] if self.surface is None else (-self.surface.residual_N).tolist(),
            **({"pins": {each.name: each.record() for each in self.pinned}} if self.pinned else {}),
            **({} if runs.weight_N is None else {"weights": runs.weight_N.tolist()}),
        }


def fit_surface(
    runs: Runs,
    form: str = "chinchilla",
    objective: Objective = Objective.log_huber,
    delta: float = DELTA,
    n_replicates: int = 200,
    seed: int = 0,
    given: Mapping[str, float] = NOTHING,
    collinear: bool = True,
) -> Surface:
    """Fits a form of `FORMS` to the points of runs.

    `delta` is where Huber's loss becomes linear, in ln y or, for `huber`, in the unit of y. Replicates are of whole
    runs and, with `y_BN`, of the documents. Without `collinear` a collinear design, which determines no form, has no
    fit, except that of one budget.

    Without numbers the status says why. With numbers: collinear_design (`Design`), at_bound, barely_determined (a
    constant has no value, or the interval of an exponent, R_D or R_N is unbounded, or wider than the constant).

    Raises:
        ValueError: delta is not positive.
        KeyError: there is no such form.
    """
    if not 0 < delta < math.inf:
        raise ValueError(f"delta must be positive and finite, got {delta}")
    kind, design = FORMS[form], judge_design(runs.S_N, runs.D_N) if len(runs.y_N) else None
    fit = Surface(form, Objective(objective), delta, dict.fromkeys(kind.names, NO_ESTIMATE), runs, design)
    fixed_P = np.isin(kind.names, [*given, *(() if runs.repeats else kind.saturating)])
    status = _without_numbers(fit, int((~fixed_P).sum()), collinear)
    found = _with_numbers(fit, fixed_P, given, n_replicates, seed) if status is None else None
    if found is not None:
        return found
    is_collinear = design is not None and design.is_collinear
    return replace(
        fit, reasons=in_order([status or Status.not_converged, Status.collinear_design if is_collinear else None])
    )


def _without_numbers(fit: Surface, n_free: int, collinear: bool) -> Status | None:
    y_N, design = fit.runs.y_N, fit.design
    on_a_line = design is not None and design.is_collinear and not design.is_budget
    if not np.all((y_N > 0) & np.isfinite(y_N)):
        return Status.not_positive
    if len(y_N) <= n_free:
        vary = design is not None and min(design.n_S, design.n_D) > _OF_A_LINE
        return Status.collinear_design if on_a_line and vary else Status.too_few_sizes
    if np.ptp(y_N) == 0:
        return Status.no_trend
    return Status.collinear_design if on_a_line and not collinear else None


def _with_numbers(
    fit: Surface, fixed_P: NDArray[np.bool_], given: Mapping[str, float], n_replicates: int, seed: int
) -> Surface | None:
    runs, kind, N = fit.runs, FORMS[fit.form], fit.n_points
    y_ref = float(np.exp(np.log(runs.y_N).mean()))
    unit = 1.0 if fit.objective_name is Objective.log_huber else y_ref
    equation = kind(y_ref)
    held, origin = equation.fixed_numbers(given), equation.reference(given)
    x = runs.x.about(origin.get("S", runs.x.ln_S_ref), origin.get("D", runs.x.ln_D_ref))
    ln_y_N, weight_N = np.log(runs.y_N / y_ref), np.ones(N)
    if runs.weight_N is not None:
        weight_N = runs.weight_N / runs.weight_N.mean()
    whole = Loss(equation, x, fit.objective_name, fit.delta / unit, ln_y_N[None], weight_N[None], fixed_P)
    end_WP, total, converged = _search(whole, np.array([held.get(name, 0.0) for name in kind.names]))
    if not converged:
        return None
    theta_BP, n_free = _refit(whole, runs, end_WP, n_replicates, seed), int((~fixed_P).sum())
    left_N = equation.evaluate(x, end_WP[:1])[0][0] - ln_y_N
    surface = SurfaceParameters(equation, x, end_WP[0], theta_BP, runs.n_groups, n_free, left_N, fixed_P, runs.weight_N)
    ln_L = ln_likelihood(fit.objective_name, fit.delta, total * unit**2, N)
    return replace(
        _judged(fit, surface, given),
        objective=total * unit**2,
        aic=None if ln_L is None else 2 * n_free - 2 * ln_L,
        bic=None if ln_L is None else n_free * math.log(N) - 2 * ln_L,
        n_left_out=int((~np.isfinite(theta_BP).all(axis=1)).sum()),
        surface=surface,
        ways=((surface, 1.0),),
    )


def _judged(fit: Surface, surface: SurfaceParameters, given: Mapping[str, float]) -> Surface:
    kind, equation, x, theta_P, runs = FORMS[fit.form], surface.form, surface.x, surface.theta_P, fit.runs
    unidentified = tuple(name for name in equation.unidentified(x, theta_P) if name not in given)
    loose = [name for name in kind.names if name not in (*unidentified, *given)]
    at_bound = tuple(name for name in constants_at_bounds(equation, theta_P) if name in loose)
    J_PN = equation.evaluate(x, theta_P[None])[1][0]
    design = judge_design(runs.S_N, runs.D_N, J_PN[[name not in given for name in kind.names]])
    least_y = float(runs.y_N.min())
    constants = {name: constant_estimate(surface, name, name in unidentified, least_y) for name in kind.names}
    with_ends = [name for name in (*kind.exponents, *kind.saturating) if name in loose and len(surface.theta_BP)]
    is_open = any(_is_open(constants[name], name in kind.saturating) for name in with_ends)
    reasons = {
        Status.barely_determined: bool(unidentified) or is_open,
        Status.collinear_design: design.is_collinear,
        Status.at_bound: bool(at_bound),
    }
    return replace(
        fit,
        constants=constants,
        at_bound=at_bound,
        unidentified=unidentified,
        design=design,
        reasons=in_order(status for status, holds in reasons.items() if holds),
    )


def _search(whole: Loss, held_P: Floats) -> tuple[Floats, float, bool]:
    """The minima of a search from many starts, [W, P], the best first; its objective, whether it converged."""
    few = np.sort(np.random.default_rng(0).permutation(whole.ln_y_BN.shape[1])[:_FEW_POINTS])
    at_few = replace(whole, x=whole.x.only(few), ln_y_BN=whole.ln_y_BN[:, few], weight_BN=whole.weight_BN[:, few])
    start_BP = whole.form.starts(at_few.x, at_few.ln_y_BN[0])[:_MOST_STARTS]
    start_BP[:, whole.fixed_P] = held_P[whole.fixed_P]
    first = at_few.minimise(np.unique(start_BP, axis=0), replace(POINT, most_steps=_FEW_STEPS))
    finalist_BP = first.theta_PB.T[_different(first.value_B)[:_FINALISTS]]
    last = whole.minimise(finalist_BP)
    end_W = _different(last.value_B)
    return last.theta_PB.T[end_W], float(last.value_B[end_W[0]]), bool(last.converged_B[end_W[0]])


def _different(total_B: Floats) -> NDArray[np.int64]:
    order_B = np.argsort(total_B)
    ordered_B = total_B[order_B]
    return np.asarray(order_B[np.append(True, ordered_B[1:] > ordered_B[:-1] * (1 + _SAME))])


def _refit(whole: Loss, runs: Runs, end_WP: Floats, n_replicates: int, seed: int) -> Floats:
    """Theta of each replicate, [B, P], searched from all minima that are nearly the best; NaN where that failed."""
    theta_BP = np.full((n_replicates, end_WP.shape[1]), np.nan)
    if n_replicates == 0 or runs.n_groups < 2:
        return theta_BP
    weight_BN = bootstrap_weights(runs.n_groups, n_replicates, seed)[:, runs.group_N] * whole.weight_BN
    ln_y_BN = np.broadcast_to(whole.ln_y_BN, weight_BN.shape)
    usable_B = np.full(n_replicates, True)
    if runs.y_BN is not None:
        drawn_B = np.random.default_rng(seed).integers(len(runs.y_BN), size=n_replicates)
        with np.errstate(divide="ignore", invalid="ignore"):
            ln_y_BN = np.log(runs.y_BN[drawn_B] / whole.form.y_ref)
        usable_B = np.asarray(np.isfinite(ln_y_BN).all(axis=1))
        ln_y_BN, weight_BN = ln_y_BN[usable_B], weight_BN[usable_B]
    ln_fit_WN = whole.form.evaluate(whole.x, end_WP[:_MOST_WAYS])[0]
    of_ways = [loss(whole.objective, whole.delta, ln_fit_N, ln_y_BN)[0] for ln_fit_N in ln_fit_WN]
    at_BW = np.stack([(value_BN * weight_BN).sum(axis=1) for value_BN in of_ways], axis=1)
    replicate_F, end_F = np.nonzero(
        (at_BW <= _WORSE * at_BW.min(axis=1, keepdims=True)) | (np.arange(at_BW.shape[1]) == 0)
    )
    ways = replace(whole, ln_y_BN=ln_y_BN[replicate_F], weight_BN=weight_BN[replicate_F])
    found = ways.minimise(end_WP[end_F], REPLICATE)
    best_B = np.lexsort((found.value_B, replicate_F))[np.searchsorted(replicate_F, np.arange(len(at_BW)))]
    theta_BP[usable_B] = np.where(found.converged_B[best_B, None], found.theta_PB.T[best_B], np.nan)
    return theta_BP


def constant_estimate(
    surface: SurfaceParameters, name: str, has_none: bool, least_y: float, p: float = 1 - LEVEL
) -> Estimate:
    """A constant with its interval, symmetric in the logarithm or in 1 / (1 + R) where the form says so.

    E and its ends are at most the least y, which no run refutes.
    """
    value_R = surface.constants()[name]
    if has_none or not math.isfinite(value_R[0]):
        return NO_ESTIMATE
    with np.errstate(all="ignore"):
        if name in surface.form.saturating:
            share = surface.estimate(1 / (1 + value_R), p=p)
            # Where the interval of 1 / (1 + R) reaches below 0, R has no upper end.
            ends = (share.value, share.hi, share.lo)
            return Estimate(*(None if each is None or each <= 0 else max(1 / each - 1, 0.0) for each in ends))
        if name in surface.form.logarithmic and value_R[0] > 0:
            return surface.estimate(np.log(value_R), p=p).exp()
    most = least_y if name == "E" else math.inf
    return surface.estimate(value_R, p=p).through(lambda each: min(max(each, 0.0), most))


def _is_open(constant: Estimate, is_saturating: bool) -> bool:
    if constant.value is None or constant.ends is None:
        return True
    return constant.ends[1] - constant.ends[0] >= max(constant.value, 1.0 if is_saturating else 0.0)
