"""Makes the plan of a training, one learning rate a step, from rates by step or from the name of its schedule."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats
from rbpx.laws.schedule.law import Training
from rbpx.runs.run import Run, tokens_of
from rbpx.runs.schedules import CONSTANT, REACHED, WSD

_LINEAR, _EXPONENTIAL, _COSINE = "linear", "exponential", "cosine"
_LEAST_SHARE: Final = 1e-3  # of the highest rate; a smaller final_lr without any lr is a rate
_OFF: Final = 0.02  # of the highest rate, between a rate by step and its schedule
_MOST: Final = 10_000_000  # steps


def planned(states: Sequence[Run]) -> Training | str:
    """The plan of a training with its states so far, in order, or why it has none; empty where no rate is known.

    Rates by step are joined by lines, from 0 at step 0; after the last of them the schedule holds, if it has a name and
    an end in tokens. Without rates, these are in terms of the highest. A cosine or a line falls from the end of the
    warm-up, or from step 0 where that is nearer to the rates.
    """
    known = [run for run in states if run.training_step]
    seen = [run for run in known if run.cross_entropy_nats is not None]
    rated = [(float(run.training_step or 0), run.lr) for run in known if run.lr is not None]
    schedule = next((run.schedule.lower() for run in known if run.schedule is not None), "")
    until = max((run.schedule_tokens or 0 for run in known), default=0)
    named = schedule in (*CONSTANT, WSD, _LINEAR, _COSINE) and until > 0
    if not seen or not (rated or named):
        return "no state has a loss and a step" * any(run.lr is not None or run.schedule_tokens for run in states)
    step_R, lr_R = np.array(rated or [(0.0, 1.0)]).T
    last, peak = max(float(step_R[-1]), float(seen[-1].training_step or 0)), float(lr_R.max())
    if not 0 < last <= _MOST or not peak > 0:
        return f"its rates are 0, or it has more than {_MOST:,} steps"
    rate_T = np.interp(np.arange(1, last + 1), np.r_[0.0, step_R], np.r_[0.0, lr_R])
    if named:
        n = int(step_R[-1])
        told = _scheduled(schedule, seen[-1], until, peak, rate_T[:n])
        if isinstance(told, str):
            return told
        if 0 < n <= len(told) and abs(told[n - 1] - rate_T[n - 1]) > _OFF * peak:
            return (
                f"schedule={schedule} says a rate of {told[n - 1]:.3g} at step {n:,}, where lr is {rate_T[n - 1]:.3g}; "
                "correct schedule_tokens, warmup_tokens or final_lr, or import rows with the rates to come and no loss"
            )
        rate_T = np.r_[rate_T[:n], told[n:], np.full(max(0, int(last) - max(n, len(told))), told[-1])]
    elif (tokens_of(known[-1]) or 0.0) < REACHED * until:
        return (
            "its rates end before its schedule_tokens; give those to come, or schedule=cosine, linear, wsd or constant"
        )
    step_N, loss_N = zip(*((float(run.training_step or 0), run.cross_entropy_nats or 0.0) for run in seen), strict=True)
    return Training(rate_T, np.array(step_N), np.array(loss_N), float(seen[0].non_embedding_params))


def _scheduled(schedule: str, run: Run, until: float, peak: float, rated_T: Floats) -> Floats | str:
    if not run.training_tokens or not run.training_step:
        return "its schedule ends in tokens, but no D says how many a step has: give tokens_per_step="
    per_step = run.training_tokens / run.training_step
    T, warm_up, has_rates = round(until / per_step), (run.warmup_tokens or 0) / per_step, len(rated_T) > 0
    final = (run.final_lr or 0.0) / (peak if has_rates else 1.0)
    if final > 1 or (0 < final < _LEAST_SHARE and not has_rates):
        return f"final_lr={run.final_lr:g} is not below the highest rate" + (
            f", {peak:.3g}; a tenth of it is {peak / 10:.3g}"
            if has_rates
            else ", a share of which it is, as no lr is known"
        )
    if schedule == WSD and not run.decay_tokens:
        return "schedule=wsd needs decay_tokens="
    shape = (run.lr_decay or _LINEAR) if schedule == WSD else schedule
    begin = T - (run.decay_tokens or 0) / per_step if schedule == WSD else warm_up
    if shape not in (*CONSTANT, _LINEAR, _COSINE, _EXPONENTIAL) or not warm_up <= begin < T <= _MOST:
        return f"schedule={schedule} of {T:,} steps, {warm_up:,.0f} of warm-up, {shape} from {begin:,.0f} on is no plan"
    plans, step_T = list[Floats](), np.arange(1, T + 1)
    for first in (begin,) if schedule == WSD else (begin, 0.0):
        along_T = np.clip((step_T - first) / (T - first), 0, 1)
        left_T = {_LINEAR: 1 - along_T, _COSINE: (1 + np.cos(np.pi * along_T)) / 2}.get(shape, np.ones(T))
        fall_T = final**along_T if shape == _EXPONENTIAL else final + (1 - final) * left_T
        plan_T = np.minimum(step_T / max(warm_up, 1.0), 1) * fall_T
        plans.append(peak * plan_T / (1.0 if first == begin else plan_T.max()))
    return min(plans, key=lambda plan_T: float(np.abs(plan_T[: len(rated_T)] - rated_T[:T]).sum()))
