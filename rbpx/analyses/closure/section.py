"""Closure in the report: whether one distribution of the ranks gives all the laws of a group."""

from rbpx.analyses.closure.analysis import Closures
from rbpx.analyses.closure.figure import figures
from rbpx.analyses.closure.results import FormResult
from rbpx.display.chart.sheet import Cell, Sheet, decimal, entry, error, named, sheet_of, span, state
from rbpx.display.numbers import UNKNOWN
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]


def section(result: Closures, sources: Sources) -> Section:
    """Which form closes the laws, how far each is off, and what is left."""
    return Section(
        "closure",
        "One distribution for all laws",
        tuple(_sentences(result)),
        tuple(figures(result)),
        (_forms(result),) if result.forms else (),
        doubts_of((form.label, form.status) for form in result.forms),
    )


def _sentences(result: Closures) -> list[str]:
    if not result.forms or result.forms[0].error is None:
        return []
    closest, names = result.forms[0], [form.label for form in result.closing]
    reach = "at no k" if result.reach is None else f"up to k = {result.reach:,}"
    said = f"By {', '.join(names)} all laws follow ({reach})" if names else f"By no form all laws follow ({reach})"
    separate = "" if result.separate is None else f", separate laws by {result.separate:.1%}"
    sentences = [
        f"{said}: of the largest size {closest.label} says {closest.n_inside} of {closest.n_scored} quantities within "
        f"their intervals, and is off by {closest.error:.1%}{separate}."
    ]
    measured = result.exponents
    if measured is not None and closest.difference is not None:
        sentences.append(
            "The exponent of −ln RBP_1 less that of cross-entropy is "
            f"{interval(measured.alpha, measured.alpha_lo, measured.alpha_hi)}; {closest.label} implies "
            f"{closest.difference:.3f}."
        )
    return sentences


def _forms(result: Closures) -> Sheet:
    columns = [("form", "form"), ("parameters", "n_parameters"), ("off", "error"), ("own fit", "error_own")]
    columns += [("inside", "n_inside n_scored"), ("nats behind", "behind"), ("95 %", "behind_lo behind_hi")]
    columns += [("α of −ln RBP_1", "alpha_rbp_1"), ("α of CE", "alpha_cross_entropy"), ("closes", "closes")]
    note = (
        "Off: median error of what a form says of the largest size, over −ln RBP_k up to the largest k whose law "
        "stands, H(P) and cross-entropy; own fit: the same when fitted to that size itself. Inside: within their 95 % "
        "intervals. Nats behind: a token, at the largest size, of the most likely form."
    )
    rows = [_row(form) for form in result.forms]
    return sheet_of("forms", "Forms of the distribution of ranks", [*columns, ("status", "status")], rows, note)


def _row(form: FormResult) -> list[Cell]:
    value, lo, hi = form.behind or (None, None, None)
    inside = entry(f"{form.n_inside}/{form.n_scored}", (form.n_inside, form.n_scored))
    return [
        named(form.label),
        entry(str(form.n_parameters), (form.n_parameters,)),
        error(form.error) if form.error is not None else entry(UNKNOWN, (None,)),
        error(form.error_own) if form.error_own is not None else entry(UNKNOWN, (None,)),
        inside,
        decimal(value),
        span(lo, hi),
        decimal(form.alpha_rbp_1, 3),
        decimal(form.alpha_cross_entropy, 3),
        named("yes" if form.closes else "no"),
        state(form.status),
    ]
