"""Closure in sentences: which forms give all the laws, how far the closest is off, what it implies."""

from collections.abc import Sequence

from rbpx.analyses.closure.analysis import Closures
from rbpx.display.section import interval_of


def sentences(results: Sequence[Closures]) -> list[str]:
    """What follows from one distribution."""
    return [sentence for closures in results for sentence in _of_group(closures)]


def _of_group(closures: Closures) -> list[str]:
    if not closures.forms:
        return [f"No form was fitted: {closures.status.label}. {closures.status.remedy}"]
    closest, measured, names = closures.forms[0], closures.exponents, [form.label for form in closures.closing]
    if closest.error is None:
        return []
    reach = "at no k" if closures.reach is None else f"up to k = {closures.reach:,}"
    said = f"By {'; '.join(names)} all laws follow ({reach})" if names else f"By no form all laws follow ({reach})"
    separate = "" if closures.separate is None else f", separate laws by {closures.separate:.1%}"
    found = [
        f"{said}: of the largest size the closest, {closest.label}, says {closest.n_inside} of {closest.n_scored} "
        f"quantities within their intervals, and is off by {closest.error:.1%}{separate}."
    ]
    if measured is not None and measured.alpha is not None and closest.difference is not None:
        found.append(
            f"The exponent of −ln RBP_1 less that of cross-entropy is {interval_of(measured.exponent)}; "
            f"{closest.label} implies {closest.difference:.3f}."
        )
    return found
