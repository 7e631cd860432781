"""Puts the laws in k into sentences."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AXES, AxisWords, rough
from rbpx.laws.exchange import STEP
from rbpx.laws.in_k import MIN_K, JointLaw, KForm
from rbpx.laws.names import Axis
from rbpx.status import Status
from rbpx.store.store import Record

FORMS: Final = {
    KForm.joint: "one law",
    KForm.drifting: "α drifts with ln k",
    KForm.levels: "one α, a constant for each k",
    KForm.separate: "a law for each k",
}


def sentences(laws: Sequence[Record], joint: JointLaw | None, axis: Axis) -> Iterator[str]:
    """How the values fall with k, what a larger k is worth, and whether one law holds for all k."""
    fitted = [law for law in laws if law["alpha"] is not None]
    if fitted:
        yield from _of_laws(fitted, AXES[axis])
    if joint is not None and joint.alpha.alpha.value is not None:
        yield _of_joint(joint, AXES[axis])


def _of_laws(fitted: Sequence[Record], x: AxisWords) -> Iterator[str]:
    last, worst = fitted[-1], min(law["r2"] or 0.0 for law in fitted)
    alpha = interval_of(estimate_in(last, "alpha"))
    yield (
        f"In each model −ln RBP_k falls with k: for {last['size']} as k^−α with α = {alpha}; R² is {worst:.3f} or more."
    )
    bent = [law["size"] for law in fitted if Status.bends in law["params"].get("reasons", ())]
    if bent:
        which = "every one" if len(bent) == len(fitted) else ", ".join(bent)
        yield f"The points curve significantly for {which}: α is the slope of the best line over these k, not of a law."
    for law in [law for law in fitted if law["factor"] is not None][:1]:
        ends, lo, hi = "no interval", law["factor_lo"], law["factor_hi"]
        if lo is not None:
            ends = f"95 %: from {rough(lo)}, no known upper end" if hi is None else f"95 %: {rough(lo)} to {rough(hi)}"
        local = f"; this holds from k = 1 to {STEP} alone" if law["params"]["exchange"]["is_local"] else ""
        more = x.more.format(rough(law["factor"]))
        yield f"To do at k = 1 what {law['size']} does at k = {STEP}, a model must be {more} ({ends}){local}."


def _of_joint(joint: JointLaw, x: AxisWords) -> str:
    if not joint.n_ranges:
        said = f"has too few k for a test ({MIN_K} are needed)"
    elif joint.range is None:
        said = f"is rejected over each of the {joint.n_ranges} ranges of {MIN_K} k or more"
    else:
        wider = "" if joint.holds else ", and over no wider range"
        said = f"is not rejected from k = {joint.range[0]:,} to {joint.range[1]:,}{wider}"
    off = {form.form: form.backtest_error for form in joint.forms}
    one, separate = off.get(KForm.joint), off.get(KForm.separate)
    if one is not None and separate is not None:
        said += f"; it predicts the largest {x.one} to {one:.1%}, separate laws to {separate:.1%}"
    return f"One law for all k, C·k^−κ·{x.x}^−α, {said}."
