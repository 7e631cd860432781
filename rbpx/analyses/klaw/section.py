"""The law in k in the report, and what a larger k is worth in size."""

from rbpx.analyses.klaw.analysis import STEP, KLaw, KLaws
from rbpx.analyses.klaw.figure import figures
from rbpx.display.chart.sheet import Entry, Sheet, decimal, magnitude, named, span, state, whole
from rbpx.display.numbers import UNKNOWN, rough
from rbpx.display.section import Section, Sources, doubts_of, interval
from rbpx.laws.joint import MIN_K, JointLaw, KForm
from rbpx.status import Status

__all__ = ["section"]


def section(result: KLaws, sources: Sources) -> Section:
    """-ln RBP_k against k, and the laws in k."""
    return Section(
        "k",
        "The law in k",
        tuple(_sentences(result)),
        tuple(figures(result)),
        (_laws(result), *([] if result.joint is None else [_rivals(result.joint)])),
        doubts_of((law.run.size, law.fit.status) for law in result.laws),
    )


def _sentences(result: KLaws) -> list[str]:
    fitted = [law for law in result.laws if law.fit.alpha is not None]
    if not fitted:
        return []
    worst = min(fitted, key=lambda law: law.fit.r2 or 0.0)
    last = fitted[-1]
    sentences = [
        f"At fixed size −ln RBP_k falls with k too: for {last.run.size} as k^−α with α = "
        f"{interval(last.fit.alpha, last.fit.alpha_lo, last.fit.alpha_hi)}; R² is {worst.fit.r2:.3f} or more for all."
    ]
    bent = [law.run.size for law in fitted if Status.bends in law.fit.params["reasons"]]
    if bent:
        which = "every size" if len(bent) == len(fitted) else ", ".join(bent)
        sentences.append(
            f"Yet the points curve significantly at {which}, so α is the slope of the best line over these k and of no "
            "law."
        )
    exchanged = next((law for law in fitted if law.exchange is not None), None)
    if exchanged is not None and exchanged.exchange is not None:
        worth = exchanged.exchange
        until = f"to {rough(worth.hi)}" if worth.hi is not None else "and no size is known to be enough"
        ends = "" if worth.lo is None else f" (95 %: {rough(worth.lo)} {until})"
        sentences.append(
            f"To do at k = 1 what {exchanged.run.size} does at k = {STEP}, a model must be {rough(worth.factor)} times "
            f"larger{ends}" + (f"; this is local, from k = 1 to {STEP} alone." if worth.is_local else ".")
        )
    return [*sentences, *_of_joint(result.joint)]


def _of_joint(joint: JointLaw | None) -> list[str]:
    if joint is None or joint.alpha.alpha is None or not joint.n_ranges:
        return []
    if joint.range is None:
        said = f"is rejected over each of the {joint.n_ranges} ranges of {MIN_K} k or more"
    else:
        said = f"is not rejected from k = {joint.range[0]:,} to {joint.range[1]:,}"
    drift, bend = joint.drift, joint.bend
    sentence = (
        f"One law for all k, C·k^−κ·S^−α, {said}: for each ln k, α rises by "
        f"{interval(drift.value, drift.lo, drift.hi, 4)}"
    )
    if bend is not None:
        sentence += f", and ln(−ln RBP_k) bends by {interval(bend.value, bend.lo, bend.hi, 4)} times ln² k"
    errors = {form.form: form.backtest_error for form in joint.forms}
    one, separate = errors.get(KForm.joint), errors.get(KForm.separate)
    if one is not None and separate is not None:
        return [f"{sentence}.", f"It predicts the largest size to {one:.1%}, separate laws to {separate:.1%}."]
    return [f"{sentence}."]


def _rivals(joint: JointLaw) -> Sheet:
    rows = [
        [
            named(_FORMS[form.form]),
            whole(form.n_parameters),
            decimal(form.aic, 1),
            decimal(form.bic, 1),
            decimal(form.backtest_error, 4),
        ]
        for form in joint.forms
    ]
    columns = [("form", "form"), ("parameters", "n_parameters"), ("AIC", "aic"), ("BIC", "bic")]
    note = (
        "Residuals of one size are correlated over k in the likelihood, those of different sizes are not. Off: root "
        "mean square over k of ln predicted − ln measured at the largest size, from the smaller ones."
    )
    title = f"One law for all k and what would replace it, k = {joint.of_range[0]:,} to {joint.of_range[-1]:,}"
    return Sheet.of("joint", title, [*columns, ("off", "backtest_error")], rows, note)


_FORMS = {
    KForm.joint: "one law",
    KForm.drifting: "α drifts with ln k",
    KForm.levels: "one α, a constant a k",
    KForm.separate: "a law for each k",
}


def _laws(result: KLaws) -> Sheet:
    rows = [_row(law) for law in result.laws]
    columns = [("size", "size"), ("S", "non_embedding_params"), ("α_k", "alpha"), ("95 %", "alpha_lo alpha_hi")]
    columns += [
        ("R²", "r2"),
        ("neighbours", "residual_autocorrelation"),
        (f"k = {STEP} is worth", "factor"),
        ("95 % of it", "factor_lo factor_hi"),
    ]
    note = (
        "95 %: over other documents, at all k together. Neighbours: correlation of the residuals of neighbouring k. "
        f"k = {STEP} is worth: how many times larger a model must be to do at k = 1 what this one does at k = {STEP}; "
        f"local, from k = 1 to {STEP} alone, where the law in k bends."
    )
    return Sheet.of("laws", "Laws in k", [*columns, ("status", "status")], rows, note)


def _row(law: KLaw) -> list[Entry]:
    fit, worth = law.fit, law.exchange
    factor, ends = magnitude(None), span(None, None)
    if worth is not None:
        factor = magnitude(worth.factor)
        text = f"{rough(worth.lo)} to {rough(worth.hi)}" if worth.lo is not None else UNKNOWN
        ends = Entry(text, (worth.lo, worth.hi))
    return [
        named(law.run.size),
        whole(law.run.non_embedding_params),
        decimal(fit.alpha),
        span(fit.alpha_lo, fit.alpha_hi),
        decimal(fit.r2),
        decimal(fit.params.get("residual_autocorrelation"), 2),
        factor,
        ends,
        state(fit.status),
    ]
