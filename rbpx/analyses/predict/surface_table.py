"""Predictions at sizes and tokens: the answer over forms, and each form beside it, in a table."""

from collections.abc import Sequence

from rbpx.analyses.predict.surface import AtPoint, SurfaceForesight, SurfaceForesights
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, percent, short
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.interval import Estimate
from rbpx.laws.surface.held_out import mean_error

__all__ = ["show_points"]


def show_points(results: Sequence[SurfaceForesights]) -> None:
    """Print a table for each group, a part for each quantity."""
    for foresights in results:
        forms = list(dict.fromkeys(form.fit.form for law in foresights.laws for form in law.forms))
        columns = ["S", "D", "combined", "95 %", "weights", *forms, "status"]
        table = grid(f"{foresights.group.title}: a new run", columns, left=2, spare=(*forms, "weights"))
        for law in foresights.laws:
            rows = [_row(law, point, forms) for point in law.points]
            table.add_part(f"{law_name(law.trained.law, law.trained.k)}{_tested(law)}", rows)
        put(console(), table)
    print_notes(
        console(),
        "Combined: over the forms of a surface, weighted by exp(-BIC / 2), with the 95 % interval of one new run; "
        "where size and tokens vary together, a law in one axis near the line of the runs. Held out: mean error of the "
        "best form at the largest S, D and C, each predicted from the others.",
        (point.status for each in results for law in each.laws for point in law.points),
    )


def _tested(law: SurfaceForesight) -> str:
    error = mean_error(law.best.held_out)
    return "" if error is None else f" (held out: {percent(error).lstrip('+')} by {law.best.fit.form})"


def _row(law: SurfaceForesight, point: AtPoint, forms: Sequence[str]) -> list[str]:
    answer = point.over_forms
    y, sign = answer.y, law.trained.sign
    return [
        f" {short(point.S)}",
        short(point.D),
        _signed(y.value, sign),
        UNKNOWN if y.ends is None else "..".join(_signed(end, sign) for end in y.ends[::sign]),
        "/".join(f"{100 * answer.weights[name]:.0f}" for name in forms if name in answer.weights) or UNKNOWN,
        *(_cell(answer.within.get(name), sign) for name in forms),
        status_name(point.status),
    ]


def _signed(value: float | None, sign: int) -> str:
    return short(None if value is None else sign * value)


def _cell(within: Estimate | None, sign: int) -> str:
    if within is None:
        return UNKNOWN
    ends = "" if within.ends is None else f" ({'..'.join(_signed(end, sign) for end in within.ends[::sign])})"
    return f"{_signed(within.value, sign)}{ends}"
