"""Closure in sentences: which forms give all the laws, how far the closest is off, what it implies."""

from collections.abc import Iterator

from rbpx.analyses.closure.analysis import Closures
from rbpx.analyses.question import one_by_one
from rbpx.display.section import interval_of


@one_by_one
def sentences(closures: Closures) -> Iterator[str]:
    """What follows from one distribution."""
    if not closures.forms:
        yield f"No form was fitted: {closures.status.label}. {closures.status.remedy}"
        return
    closest, measured = closures.forms[0], closures.exponents
    names = [form.label for form in closures.forms if form.closes]
    if closest.error is None:
        return
    reach = "at no k" if closures.reach is None else f"up to k = {closures.reach:,}"
    said = f"By {'; '.join(names)} all laws follow ({reach})" if names else f"By no form all laws follow ({reach})"
    separate = "" if closures.separate is None else f", separate laws by {closures.separate:.1%}"
    yield (
        f"{said}: of the largest size the closest, {closest.label}, says {closest.n_inside} of {closest.n_scored} "
        f"quantities within their intervals, and is off by {closest.error:.1%}{separate}."
    )
    if measured is not None and measured.alpha is not None and closest.difference is not None:
        yield (
            f"The exponent of −ln RBP_1 less that of cross-entropy is {interval_of(measured.exponent)}; "
            f"{closest.label} implies {closest.difference:.3f}."
        )
