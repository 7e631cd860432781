"""Draws the laws of size: the points of each quantity with its law and the band of new models, then the residuals.

Source: RBP paper (arXiv 2510.20387), figures 3 to 5.
"""

from collections.abc import Iterator, Sequence
from math import exp, isfinite
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Mark,
    Rows,
    Scale,
    Undrawn,
    bars,
    curve,
    drawn,
    line,
    points,
    scale_of,
    spread,
)
from rbpx.display.chart.laws import residual_figure
from rbpx.display.section import interval_of
from rbpx.display.view import Column, View, decimal, place, text, with_ends
from rbpx.display.vocabulary import AXES, law_title, number, rough
from rbpx.laws.intervals.estimate import Estimate, Recipe, by_name, estimate
from rbpx.laws.intervals.lack_of_fit import curvature, runs_p
from rbpx.laws.names import Method
from rbpx.questions.fit.analysis import Laws
from rbpx.questions.fit.words import by_methods
from rbpx.runs.fits import Law
from rbpx.runs.origin import from_shares
from rbpx.store.store import Record

_BAND: Final = "Lines: laws fitted by {method}. Bands: where 95 % of new models would lie."
_BARS: Final = " Bars: 95 % over documents."
_BOUNDED: Final = ("rbp", "cross_entropy")  # resampling shifts other quantities, so its intervals would mislead
_SHARES: Final = Scale("neg_ln_rbp", "−ln RBP_k", log=True)
_LOSS: Final = Scale("nats", "nats per token", log=True)
_OTHERS: Final = Scale("y", "nats, bits per byte, or misses", log=True)
_POINTS: Final = "A law needs three sizes; only the points are drawn."
_NATS: Final = ("cross_entropy", "lognormal_cross_entropy", "error_entropy")  # drawn together, as alike in size


def figures(result: Laws) -> Iterator[Figure | Undrawn]:
    """-ln RBP_k at up to seven k, cross-entropy, other quantities if there are any, then the residuals; by method."""
    for method in dict.fromkeys(law.method for law in result.laws):
        by = "" if method is result.laws[0].method else f"-{method.value}"
        laws = [law for law in result.laws if law.method is method and _known(law)]
        shares = spread([law for law in laws if law.law == "rbp"], MOST_SERIES)
        others = [law for law in laws if law.law != "rbp" and law.law not in _NATS]
        yield _figure(result, f"rbp{by}", "−ln RBP_k", shares, _SHARES, "k")
        yield _figure(result, f"cross_entropy{by}", "Cross-entropy", [law for law in laws if law.law in _NATS], _LOSS)
        if others:
            yield _figure(result, f"others{by}", "Other quantities", others, _OTHERS)
        yield _residuals(result, f"residuals{by}", laws)


def _figure(result: Laws, name: str, what: str, laws: Sequence[Law], y: Scale, key: str = "law") -> Figure | Undrawn:
    group, x, title = (
        result.group,
        scale_of(result.group.axis, by=result.group.first.size_by),
        f"{what} against {result.group.axis.value}",
    )
    if not laws:
        return Undrawn(name, title, "It is not known for any size.")
    rows = [_point(result, law, at, value, y, key) for law in laws for at, value in _known(law)]
    has_bars = any(row[f"{y.key}_lo"] is not None for row in rows)
    within: Sequence[Column[Record]] = with_ends(y.title, y.key)
    view = View[Record](
        name,
        text(key, key),
        text("size", "size"),
        place(),
        [decimal("RBP_k", "rbp")] if key == "k" else [],
        within[: 1 + has_bars],
    )
    lines = [row for law in laws for row in _curve(law, x.key, y.key, key)]
    marks = [Mark("band", lines), line(lines)] if lines else []
    marks += [bars(f"{y.key}_lo", f"{y.key}_hi")] if has_bars else []
    caption = _BAND.format(method=by_methods([laws[0].method])) if lines else _POINTS
    changes = "; ".join(map(_change, laws))
    return drawn(
        view.table(title, rows, axis=group.axis),
        Chart(x, y, (*marks, points()), key, "k" if key == "k" else "", height=340),
        f"Logarithmic plot for {group.title}, from the smallest to the largest {AXES[group.axis].one}: {changes}.",
        caption + (_BARS if has_bars else ""),
        from_shares(group, [law.k for law in laws if law.k is not None] or [1]),
    )


def _series(law: Law) -> str:
    return str(law.k) if law.law == "rbp" else law_title(law.law, law.k) + " (negated)" * (law.fit.sign == -1)


def _known(law: Law) -> list[tuple[int, float]]:
    """What was measured, by run; 0 and unknown values have no place on a logarithmic axis."""
    return [(at, abs(y)) for at, y in enumerate(law.fit.y) if y and isfinite(y)]


def _point(result: Laws, law: Law, at: int, value: float, y: Scale, key: str) -> Record:
    """A point with its 95 % interval over documents; without an interval where no documents were resampled."""
    run, within = law.runs[at], Estimate(value)
    if result.evidence and not result.cells and result.group.n_resampled > 1 and law.law in _BOUNDED:
        y_B = result.evidence[at].replicates[law.law]
        if law.k is not None:
            with np.errstate(divide="ignore"):  # a resample without a hit is infinite, and left out
                y_B = -np.log(y_B[:, result.k_grid.index(law.k)])
        y_B = y_B[np.isfinite(y_B) & (y_B > 0)]
        within = estimate(value, y_B, result.group.n_resampled, Recipe.expanded)
    of_run = {"size": run.size, "non_embedding_params": run.non_embedding_params, "x": run.x}
    return {key: _series(law), **of_run, "rbp": exp(-value), **by_name(**{y.key: within})}


def _curve(law: Law, x: str, y: str, key: str) -> Rows:
    """The law between its smallest and its largest size, with the band of new models, whatever its sign."""
    if law.fit.alpha.value is None:
        return []
    rows = curve(law.fit, x, y, 12, **{key: _series(law)})
    return [{name: abs(at) if isinstance(at, float) else at for name, at in row.items()} for row in rows]


def _change(law: Law) -> str:
    values = [y for _, y in _known(law)]
    slope = "" if law.fit.alpha.value is None else f" with α = {interval_of(law.fit.alpha, 4)}"
    return f"{law_title(law.law, law.k)} goes from {values[0]:.3g} to {values[-1]:.3g}{slope}"


def _residuals(result: Laws, name: str, laws: Sequence[Law]) -> Figure | Undrawn:
    """The residuals of cross-entropy and of -ln RBP_k at up to seven k."""
    group, title = result.group, "Residuals about the laws"
    known = [law for law in laws if law.fit.residuals_ln]  # those with numbers
    chosen = [law for law in known if law.law == "cross_entropy"]
    chosen += spread([law for law in known if law.law == "rbp"], MOST_SERIES - len(chosen))
    if not chosen:
        return Undrawn(name, title, "No law has numbers.")
    rows = [
        (_short(law), run.size, run, left)
        for law in chosen
        for run, left in zip(law.runs, law.fit.residuals_ln, strict=True)
    ]
    said = "; ".join(f"{_short(law)}{_shape(law)}" for law in chosen)
    says = f"Residuals for {group.title} against {AXES[group.axis].one}: {said}."
    origin = from_shares(group, [law.k for law in chosen if law.k is not None] or [1])
    return residual_figure(name, title, rows, "law", says, origin, group.axis, group.first.size_by)


def _short(law: Law) -> str:
    return "CE" if law.k is None else f"k = {law.k}"


def _shape(law: Law) -> str:
    """In words: the spread of the residuals and, for a straight law, their curvature and their runs of one sign."""
    left_N = np.array(law.fit.residuals_ln, dtype=np.float64)
    words = f", off by {rough(float(np.sqrt((left_N**2).mean())))}"
    if law.method is not Method.ols:
        return words
    ln_S_N = np.log(law.fit.S)
    curve, p = curvature(ln_S_N, left_N), runs_p(ln_S_N, left_N)
    if curve.ends is not None:
        words += f", curvature {number(curve.value)} ({' to '.join(map(number, curve.ends))})"
    return words if p is None else f"{words}, runs p {number(p, 3)}"
