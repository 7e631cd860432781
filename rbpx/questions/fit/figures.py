"""Draws the laws of size, and their residuals. Source: RBP paper (arXiv 2510.20387), figures 3 to 5."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, drawn, line, points, rule, scale_of, spread
from rbpx.display.chart.laws import law_figure
from rbpx.display.section import interval_of
from rbpx.display.table import PLACE, SIZE, table_of
from rbpx.display.vocabulary import AXES, law_title, rough
from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.names import Method
from rbpx.laws.numeric import neg_ln
from rbpx.questions.fit.sentences import by_methods
from rbpx.runs.fits import Law
from rbpx.runs.laws import GroupLaws
from rbpx.runs.origin import from_shares
from rbpx.runs.run import grouped

_BOUNDED: Final = ("rbp", "cross_entropy")  # bootstrap replicates of other quantities are biased
_RESIDUAL: Final = Scale("residual_ln", "ln y − ln law", zero=True)
_OF_RESIDUALS: Final = (
    "Residuals of ln y about each law, sizes joined in order. Scatter between models lies on both sides of 0 at every "
    "size; residuals that bend, or keep their sign over neighbouring sizes, show a misfit of the form, which more "
    "models do not average out."
)
_KINDS: Final = {  # of figures, with the quantity of their axis
    "laws": ("Scaling laws", "y, nats per token"),
    "others": ("Other quantities", "y, nats"),
    "bits_per_byte": ("Bits per byte", "y, bits per byte"),
    "accuracy": ("Wrong answers", "y, 1 − accuracy"),
}


def figures(result: GroupLaws) -> Iterator[Figure | Undrawn]:
    """Cross-entropy with -ln RBP_k, other quantities by their unit, and residuals.

    First of the laws that the sentences tell, with E where the points call for it; then of the others by method.
    """
    of_method = grouped(result.laws, lambda law: law.method)
    with_E = {(law.law, law.k): law for law in of_method.get(Method.offset, ())}
    told = [with_E.get((law.law, law.k), law) if law.calls_for_E else law for law in of_method[result.laws[0].method]]
    left = grouped((law for law in result.laws if law not in told), lambda law: f"-{law.method.value}")
    for by, of in {"": told, **left}.items():
        laws = [law for law in of if any(y and isfinite(y) for y in law.fit.y)]
        for kind in _KINDS:
            own = _few([law for law in laws if _kind(law.law) == kind])
            if own or (kind == "laws" and not by):
                yield _figure(result, f"{kind}{by}", kind, own)
        yield _residuals(result, f"residuals{by}", laws)


def _kind(law: str) -> str:
    return "laws" if law in _BOUNDED else law if law in _KINDS else "others"


def _few(laws: Sequence[Law]) -> list[Law]:
    others = [law for law in laws if law.law != "rbp"][:MOST_SERIES]
    return others + spread([law for law in laws if law.law == "rbp"], MOST_SERIES - len(others))


def _figure(result: GroupLaws, name: str, kind: str, laws: Sequence[Law]) -> Figure | Undrawn:
    group, (what, of_y) = result.group, _KINDS[kind]
    title, y = f"{what} against {group.axis.value}", Scale("y", of_y, log=True)
    if not laws:
        return Undrawn(name, title, "It is not known for any size.")
    named = [(_series(law) + " (negated)" * (law.fit.sign == -1), law.fit) for law in laws]
    changes = "; ".join(f"{law_title(law.law, law.k)}, α = {interval_of(law.fit.alpha, 4)}" for law in laws)
    says = f"Logarithmic plot for {group.title}, from the smallest to the largest {AXES[group.axis].one}: {changes}."
    sizes = {float(run.x or 0): run.label for run in group.runs}
    within = [[_within(result, law, at) for at in range(len(law.fit.y))] for law in laws]
    methods = by_methods(dict.fromkeys(law.method for law in laws))
    caption = f"Lines: laws fitted by {methods}. Bands: where 95 % of new models would lie."
    caption += " Bars: 95 % over documents." if any(at.lo is not None for of in within for at in of) else ""
    x, origin = (
        scale_of(group.axis, by=group.first.size_by),
        from_shares(group, [law.k for law in laws if law.k] or [1]),
    )
    return law_figure(name, title, named, x, y, (says, caption), origin, sizes=sizes, within=within)


def _series(law: Law) -> str:
    alpha, r2 = law.fit.alpha.value, law.fit.r2.value
    told = [f"{sign} {value:.3f}" for sign, value in (("α", alpha), ("R²", r2)) if value is not None]
    return law_title(law.law, law.k) + (f" ({'; '.join(told)})" if told else "")


def _within(result: GroupLaws, law: Law, at: int) -> Estimate:
    if not result.evidence or result.cells or result.group.n_resampled < 2 or law.law not in _BOUNDED:
        return Estimate()
    y_B = result.evidence[at].replicates[law.law]
    y_B = y_B if law.k is None else neg_ln(y_B[:, result.k_grid.index(law.k)])
    return estimate(law.fit.y[at], y_B[np.isfinite(y_B) & (y_B > 0)], result.group.n_effective, Recipe.expanded)


def _residuals(result: GroupLaws, name: str, laws: Sequence[Law]) -> Figure | Undrawn:
    group, title = result.group, "Residuals about the laws"
    chosen = _few([law for law in laws if law.fit.residuals_ln and law.law in _BOUNDED])  # those with numbers
    if not chosen:
        return Undrawn(name, title, "No law has numbers.")
    names = [law_title(law.law, law.k) for law in chosen]
    rows = [
        run.names() | {"series": of, "size": run.label, group.axis.value: run.x, _RESIDUAL.key: left}
        for of, law in zip(names, chosen, strict=True)
        for run, left in zip(law.runs, law.fit.residuals_ln, strict=True)
    ]
    off = [rough(float(np.sqrt(np.square(law.fit.residuals_ln).mean()))) for law in chosen]
    said = "; ".join(f"{of}, off by {by}" for of, by in zip(names, off, strict=True))
    says = f"Residuals for {group.title} against {AXES[group.axis].one}: {said}."
    origin = from_shares(group, [law.k for law in chosen if law.k] or [1])
    marks = (rule(residual_ln=0.0), line(look={"strokeWidth": 1}), points())
    x = scale_of(group.axis, by=group.first.size_by)
    return drawn(
        table_of(name, ("law", "series"), SIZE, *PLACE, (_RESIDUAL.title, _RESIDUAL.key, ".5f")).of(
            title, rows, axis=group.axis
        ),
        Chart(x, _RESIDUAL, marks, "series", "law", height=240),
        says,
        _OF_RESIDUALS,
        origin,
    )
