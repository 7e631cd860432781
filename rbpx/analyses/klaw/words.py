"""The laws in k in sentences."""

from collections.abc import Sequence
from typing import Final

from rbpx.analyses.klaw.analysis import STEP, KLaw, KLaws
from rbpx.display.numbers import rough
from rbpx.display.section import interval
from rbpx.display.vocabulary import AXES
from rbpx.laws.in_k import MIN_K, KForm
from rbpx.laws.names import Axis
from rbpx.status import Status

FORMS: Final = {
    KForm.joint: "one law",
    KForm.drifting: "α drifts with ln k",
    KForm.levels: "one α, a constant a k",
    KForm.separate: "a law for each k",
}


def sentences(results: Sequence[KLaws]) -> list[str]:
    """How the values fall with k, what a larger k is worth, and whether one law holds for all k."""
    return [sentence for laws in results for sentence in (*_of_laws(laws), *_of_joint(laws))]


def _of_laws(laws: KLaws) -> list[str]:
    fitted = [law for law in laws.laws if law.fit.alpha is not None]
    if not fitted:
        return []
    last, worst = fitted[-1], min(law.fit.r2 or 0.0 for law in fitted)
    alpha = interval(last.fit.alpha, last.fit.alpha_lo, last.fit.alpha_hi)
    found = [
        f"In each model −ln RBP_k falls with k: for {last.label} as k^−α with α = {alpha}; R² is {worst:.3f} or more."
    ]
    bent = [law.label for law in fitted if Status.bends in (law.fit.reasons or ())]
    if bent:
        which = "every one" if len(bent) == len(fitted) else ", ".join(bent)
        found.append(
            f"The points curve significantly at {which}: α is the slope of the best line over these k, not of a law."
        )
    exchanged = next((law for law in fitted if law.exchange is not None), None)
    return [*found, *([] if exchanged is None else [_worth(exchanged, laws.group.axis)])]


def _worth(law: KLaw, axis: Axis) -> str:
    worth = law.exchange
    assert worth is not None
    ends = "no interval"
    if worth.lo is not None:
        ends = f"95 %: {rough(worth.lo)} " + (
            "to nothing known to suffice" if worth.hi is None else f"to {rough(worth.hi)}"
        )
    local = f"; this is local, from k = 1 to {STEP} alone" if worth.is_local else ""
    more = AXES[axis].more.format(rough(worth.factor))
    return f"To do at k = 1 what {law.label} does at k = {STEP}, a model must be {more} ({ends}){local}."


def _of_joint(laws: KLaws) -> list[str]:
    joint, x = laws.joint, AXES[laws.group.axis]
    if joint is None or joint.alpha.alpha is None:
        return []
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
    return [f"One law for all k, C·k^−κ·{x.x}^−α, {said}."]
