"""Predicts where a run that is underway ends, by its plan of learning rates and by what finished runs taught.

Shapes: N states of a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.schedule.law import ANNEALED, SD, ConstantsPrior, ScheduleLaw, Training, fit_trainings
from rbpx.status import Doubted, Status, in_order

FLOOR: Final = 0.008  # nats of standard deviation that no state takes away
_FORM: Final = 0.05  # error of C, as a share of the annealing to come
_SAME = np.array([0.004, 0.01, 0.005, 0.05])  # standard deviations of the constants between runs of a size
_OTHER_A, _OTHER_ALPHA, _OTHER_C = 0.3, 0.03, 0.15  # between sizes: of ln A, of alpha, of ln C at the same ln A
_FREE: Final = 10.0  # of E between sizes
_AT: Final = (0.4, 0.6, 0.8)  # of the way, where backtests stand
_IMAGINED: Final = 10  # backtests that came out as they should
NEEDED: Final = 6  # states of a run alone, and of one that teaches
_LAST: Final = 3  # states whose median is a measured end
_ALIKE: Final = 0.01  # of progress and of annealing, in two runs of one plan
_LONGER, _STEEPER = 4.0, 2.0  # times the progress and the annealing of finished runs
_BEFORE, _AFTER, _IN_A_ROW = 20, 8, 5  # states: a median of residuals, the first one judged, those of a departure
_HIGH, _LEAST = 8.0, 0.002  # scales of a spike, and the least scale in nats


@dataclass(frozen=True, eq=False)
class Ending(Doubted):
    """Where a run ends if its plan is kept.

    Attributes:
        y: the loss at the end; unknown where the rate rises, or it is too early.
        rests_on: same_plan, same_size, other_size or itself.
        drop: the end by the drop of the finished run of its size with the nearest plan.
        to_come: what progress and what annealing still take off the loss, nats.
        left_at: the step at which the run left its law.
        spikes: steps of single states far above the law.
        widened: factor of backtests.
    """

    y: Estimate
    rests_on: str
    reasons: tuple[Status, ...]
    taught: tuple[Training, ...] = ()
    law: ScheduleLaw | None = None
    drop: float | None = None
    to_come: tuple[float, float] | None = None
    left_at: int | None = None
    spikes: tuple[int, ...] = ()
    widened: float = 1.0


def predict_ending(run: Training, finished: Sequence[Training], backtests: Sequence[float] = ()) -> Ending:
    """Predicts the loss at the end of the plan of a run, from its states and finished runs of the same recipe.

    With a finished run of its size and plan, its drop from the same step is the answer. Else finished runs of its size
    are the prior of its law, those of the nearest other size one of the exponent and of C beside A. The interval is two
    standard deviations of the posterior and of the form's own error, widened by `backtests` and those of the run's own
    past. Rates of finished runs do not rise.
    """
    taught = _taught_by(run, finished)
    rests_on = "itself" if not taught else "same_size" if taught[0].S == run.S else "other_size"
    if run.rises or run.n_states < (1 if rests_on == "same_size" else NEEDED):
        return Ending(Estimate(), rests_on, (Status.rate_rises if run.rises else Status.too_early,), tuple(taught))
    at = _predict(run, finished, len(run.rate_T))
    squares = np.array([*backtests, _square(run, finished, float(run.step_N[-1]))])
    squares = squares[np.isfinite(squares)]
    widened = max(1.0, float(np.sqrt((_IMAGINED + squares.sum()) / (_IMAGINED + len(squares)))))
    (spikes, left_at), half = departure(run, at.law), SD * at.sd * widened
    nearest = min(taught, key=lambda of: _apart(run, of)) if rests_on == "same_size" else None
    drop = None if nearest is None else _by_drop(run, nearest, len(run.rate_T))
    y, rests_on = Estimate(at.y, at.y - half, at.y + half), "same_plan" if at.has_twin else rests_on
    doubts = _doubts(run, taught, left_at, at.has_twin)
    return Ending(y, rests_on, doubts, tuple(taught), at.law, drop, at.to_come, left_at, spikes, widened)


def backtest(finished: Sequence[Training]) -> list[float]:
    """Squares of the errors, in standard deviations, with which finished runs are predicted by the others.

    A run that begins with the states of another is no other: the rate of one training fell in two ways.
    """
    rest = [[other for other in finished if not same_run(run, other)] for run in finished]
    return [_square(run, of, len(run.rate_T)) for run, of in zip(finished, rest, strict=True) if of]


def departure(run: Training, law: ScheduleLaw) -> tuple[tuple[int, ...], int | None]:
    """The steps of states above 8 scales, and the first of five such states in a row, at which a run left its law.

    A residual is taken less the median of the 20 before; the scale is of their median absolute deviation.
    """
    counts = run.step_N > run.begin
    step_N = run.step_N[counts]
    off_N = run.loss_N[counts] - law.loss(*run.clocks(law.peak, step_N))
    new_N = np.array([off_N[n] - np.median(off_N[max(0, n - _BEFORE) : n]) for n in range(_AFTER, len(off_N))])
    if len(new_N) < _AFTER:
        return (), None
    scale = max(1.4826 * float(np.median(np.abs(new_N - np.median(new_N)))), _LEAST)
    high_N = np.r_[np.zeros(_AFTER, bool), new_N > _HIGH * scale]
    rows = np.flatnonzero(np.convolve(high_N, np.ones(_IN_A_ROW), "valid") > _IN_A_ROW - 0.5)
    return tuple(map(int, step_N[high_N])), int(step_N[rows[0]]) if len(rows) else None


def _taught_by(run: Training, finished: Sequence[Training]) -> list[Training]:
    sizes = {of.S for of in finished}
    if not sizes:
        return []
    nearest = min(sizes, key=lambda S: 0.0 if S == run.S else abs(np.log((S or 1.0) / (run.S or 1.0))) + 1e-9)
    return [of for of in finished if of.S == nearest]


class _At(NamedTuple):
    law: ScheduleLaw
    y: float
    sd: float
    to_come: tuple[float, float]
    has_twin: bool


def _predict(run: Training, finished: Sequence[Training], step: int) -> _At:
    taught, peak, prior = _taught_by(run, finished), run.peak, None
    is_same = bool(taught) and taught[0].S == run.S
    if is_same:
        peak = max(peak, *(of.peak for of in taught))
    known = fit_trainings(taught, peak=peak if is_same else None).at if taught else None
    if known is not None:
        prior = ConstantsPrior(known.mean, known.cov + np.diag(_SAME**2)) if is_same else _of_other_size(known)
    law = fit_trainings([run], prior, peak)
    assert law.at is not None
    x_2, a_2 = run.clocks(peak, [run.step_N[-1], step])
    now, end = law.loss(x_2, a_2).tolist()
    annealing = float(np.exp(law.at.mean[3]) * (a_2[1] - a_2[0]))
    sd = float(np.sqrt(law.sd(x_2[1], a_2[1]) ** 2 + FLOOR**2 + (_FORM * annealing) ** 2))
    twins = [of for of in taught if is_same and _apart(run, of) < _ALIKE]
    drops = [drop for of in twins if (drop := _by_drop(run, of, step)) is not None]
    y, sd = (float(np.mean(drops)), FLOOR) if drops else (end, sd)
    return _At(law, y, sd, (now - end - annealing, annealing), bool(drops))


def _of_other_size(known: ConstantsPrior) -> ConstantsPrior:
    """What runs of another size say: alpha, and ln C as far as ln A; E is free."""
    cov = known.cov + np.diag([_FREE, _OTHER_A, _OTHER_ALPHA, _OTHER_C]) ** 2
    cov[[1, 3, 3], [3, 1, 3]] += _OTHER_A**2
    cov[0, 1:] = cov[1:, 0] = 0.0
    return ConstantsPrior(known.mean, cov)


def _square(run: Training, finished: Sequence[Training], end: float) -> float:
    """The mean square of errors in standard deviations, from parts of a run; NaN without any."""
    measured, parts = float(np.median(run.until(end).loss_N[-_LAST:])), [run.until(part * end) for part in _AT]
    at = [_predict(part, finished, int(end)) for part in parts if part.n_states >= NEEDED]
    return float(np.mean([((measured - each.y) / each.sd) ** 2 for each in at])) if at else np.nan


def _apart(run: Training, other: Training) -> float:
    """The largest difference of ln progress or of annealing on the way."""
    peak = max(run.peak, other.peak)
    (x_P, a_P), (x2_P, a2_P) = (
        of.clocks(peak, np.ceil(np.linspace(0.1, 1, 10) * len(of.rate_T))) for of in (run, other)
    )
    return float(max(np.abs(np.log(x_P / x2_P)).max(), np.abs(a_P - a2_P).max()))


def _by_drop(run: Training, other: Training, step: int) -> float | None:
    """The loss at a step if it falls as in another run from the same step on; None where that run was not there."""
    now_N = run.step_N[-_LAST:]
    if now_N[0] < other.step_N[0] or now_N[-1] > other.step_N[-1]:
        return None
    end = float(np.median(other.until(step).loss_N[-_LAST:]))
    return end + float(np.median(run.loss_N[-_LAST:] - np.interp(now_N, other.step_N, other.loss_N)))


def same_run(run: Training, other: Training) -> bool:
    """Whether two runs share their first states."""
    both, at, of = np.intersect1d(run.step_N, other.step_N, return_indices=True)
    return len(both) > 0 and bool(np.all(run.loss_N[at[:_LAST]] == other.loss_N[of[:_LAST]]))


def _doubts(run: Training, taught: Sequence[Training], left_at: int | None, has_twin: bool) -> tuple[Status, ...]:
    ends = [(of.clocks(of.peak, len(of.rate_T))) for of in taught]
    x, a = run.clocks(run.peak, len(run.rate_T))
    most_a = max([run.annealed(), *(of.annealed() for of in taught)])
    is_longer = bool(ends) and x > _LONGER * max(x_end for x_end, _ in ends)
    is_unlike = bool(taught) and (is_longer or a > max(_STEEPER * most_a, ANNEALED))
    of_law = {
        Status.no_decay_seen: most_a <= ANNEALED < a,
        Status.other_size: bool(taught) and taught[0].S != run.S,
        Status.plan_unlike_finished: is_unlike,
    }
    held = [] if has_twin else [status for status, holds in of_law.items() if holds]
    return in_order([*held, None if left_at is None else Status.leaves_law])
