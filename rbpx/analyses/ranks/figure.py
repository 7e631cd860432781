"""The distribution of the ranks: one group in; counted ranks with fitted forms, and the laws they imply, out.

Source: RBP paper (arXiv 2510.20387), eq. 9, figures 8a to 8c.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.analyses.ranks.analysis import PAPER, Closure, Ranks, RunRanks
from rbpx.display.chart.drawing import S_TITLE, colour, curve, dash, data, line_dash, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, decimal, magnitude, named, sheet_of, whole
from rbpx.display.numbers import number
from rbpx.display.spread import spread
from rbpx.groups.question import spelled
from rbpx.laws.distribution import ln_shares
from rbpx.laws.exponential import ln_sum_exp
from rbpx.store.queries import ask

__all__ = ["FORMS", "figures"]

Floats = npt.NDArray[np.float64]

FORMS = {
    "lognormal_paper": "lognormal (published fit)",
    "lognormal_full": "lognormal",
    "power_law": "power law",
    "power_law_cutoff": "power law, cut off",
    "zipf_mandelbrot": "Zipf–Mandelbrot",
    "weibull": "Weibull",
    "negative_binomial": "negative binomial",
    "lognormal_inflated": "lognormal, share at rank 1",
}
_PER_DECADE = 6  # bins
_QUANTITIES = {"cross_entropy": "cross-entropy", "rbp": "−ln RBP_1"}


def figures(connection: duckdb.DuckDBPyConnection, result: Ranks, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Cross-entropy and -ln RBP_1 measured and derived, then the ranks of the smallest and the largest size."""
    return [_derived(result, fit_ids), _distribution(connection, result)]


def form(distribution: str) -> str:
    """The name of a distribution in the report."""
    return FORMS.get(distribution, distribution.replace("_", " "))


# ---------------------------------------------------------------------------------------------------- derived laws


def _derived(result: Ranks, fit_ids: Sequence[str]) -> Figure | Undrawn:
    name, title = "derived", "Two laws, measured and derived from the distribution of ranks"
    closures = [c for c in result.closures if c.k in (None, 1) and c.quantity in _QUANTITIES]
    if not closures:
        return Undrawn(name, title, "It needs three sizes, the published fit at each of them, and k = 1.")
    exponents = [
        f"{_QUANTITIES[c.quantity]}: α {number(c.measured.alpha, 3)} measured, {number(c.derived.alpha, 3)} derived by "
        f"{form(c.distribution)}"
        for c in closures
    ]
    return Figure(
        name,
        title,
        f"Laws in size for {result.group.title}. {'; '.join(exponents)}.",
        "Points and solid lines: measured. Dashed lines: derived from the fitted distributions.",
        _derived_chart(closures),
        _derived_values(name, title, result, closures),
        spelled("laws", fit_ids=fit_ids),
        tuple(result.group.run_ids),
    )


def _derived_chart(closures: list[Closure]) -> dict[str, Any]:
    points: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for closure in closures:
        quantity = _QUANTITIES[closure.quantity]
        for kind, fit in (("measured", closure.measured), (form(closure.distribution), closure.derived)):
            if fit.alpha is not None:
                lines += [{"quantity": quantity, "kind": kind, "S": at["S"], "y": at["y"]} for at in curve(fit, 2)]
            points += [
                {"quantity": quantity, "kind": kind, "S": S, "y": y}
                for S, y in zip(fit.params["S"], fit.params["y"], strict=True)
                if y is not None
            ]
    kinds = list(dict.fromkeys(line["kind"] for line in lines))
    order = list(dict.fromkeys(line["quantity"] for line in lines))
    x, y = logarithmic(alt.X, "S", S_TITLE), logarithmic(alt.Y, "y", "nats")
    hue = colour("quantity", "", order)
    tooltip = tips(quantity="quantity", kind="by", S="S|,", y="nats|.4~g")
    return spec_of(
        alt.layer(
            alt.Chart(data(lines))
            .mark_line()
            .encode(x=x, y=y, color=hue, strokeDash=dash("kind", kinds), detail="kind:N"),
            alt.Chart(data(points))
            .mark_point()
            .encode(x=x, y=y, color=hue, shape=shape("kind", "", kinds), tooltip=tooltip),
        ),
        height=320,
    )


def _derived_values(name: str, title: str, result: Ranks, closures: list[Closure]) -> Sheet:
    rows = [
        [named(run.run.size), named(_QUANTITIES[c.quantity]), named(form(c.distribution)), decimal(y), decimal(z)]
        for c in closures
        for run, y, z in zip(result.runs, c.measured.params["y"], c.derived.params["y"], strict=True)
    ]
    columns = [("size", "size"), ("quantity", "quantity"), ("distribution", "distribution")]
    return sheet_of(name, f"{title}: values", [*columns, ("measured", "measured"), ("derived", "derived")], rows)


# ---------------------------------------------------------------------------------------------------- distributions


def _distribution(connection: duckdb.DuckDBPyConnection, result: Ranks) -> Figure | Undrawn:
    name, title = "distribution", "How the ranks are distributed"
    ends = spread(result.runs, 2)
    forms = list(dict.fromkeys([PAPER, *([] if result.favoured is None else [result.favoured])]))
    edges = _edges(max(run.run.vocab_size or 1 for run in ends))
    run_ids, ties = [each.run.run_id for each in ends], result.group.ties.value
    counted = ask(connection, "rank_shares", run_ids=run_ids, ties=ties, edges=edges).to_pylist()
    sizes = {each.run.run_id: each.run.size for each in ends}
    points = [
        {
            "size": sizes[row["run_id"]],
            "rank": (row["first_rank"] * row["last_rank"]) ** 0.5,
            "share": float(row["share_per_rank"]),
            "first": row["first_rank"],
            "last": row["last_rank"],
            "n": row["n_tokens"],
        }
        for row in counted
    ]
    lines = [line for each in ends for which in forms for line in _line(each, which, edges)]
    best = ", ".join(f"{each.run.size}: {form(each.best)}" for each in ends if each.best is not None)
    return Figure(
        name,
        title,
        f"Share of tokens of each rank for {result.group.title}, falling with rank; best by AIC: {best or 'none'}.",
        "Points: share of tokens in a bin of ranks, over the number of ranks in it. Lines: the published "
        "lognormal (fitted to ranks from 2 up) and the distribution over 1..V with the smallest AIC summed over all "
        "sizes.",
        _distribution_chart(points, lines, [each.run.size for each in ends], [form(which) for which in forms]),
        _distribution_values(name, title, points),
        spelled("rank_shares", run_ids=run_ids, ties=ties, edges=edges),
        tuple(run_ids),
    )


def _edges(V: int) -> list[int]:
    """Where bins of ranks begin: evenly spaced in ln rank, whole numbers, the last one beyond V."""
    steps = range(int(_PER_DECADE * np.log10(V)) + 1)
    return [*sorted({round(10 ** (at / _PER_DECADE)) for at in steps if 10 ** (at / _PER_DECADE) <= V}), V + 1]


def _line(each: RunRanks, which: str, edges: list[int]) -> list[dict[str, Any]]:
    """The mean share per rank in each bin by a fitted distribution; no rows if that has no numbers."""
    p_V = _shares(each, which)
    if p_V is None:
        return []
    upto = np.concatenate([[0.0], np.cumsum(p_V)])
    rows = []
    for a, b in pairwise(edges):
        last = min(b - 1, len(p_V))
        if a <= last:
            share = float((upto[last] - upto[a - 1]) / (last - a + 1))
            rows.append({"size": each.run.size, "form": form(which), "rank": (a * last) ** 0.5, "share": share})
    return rows


def _shares(each: RunRanks, which: str) -> Floats | None:
    fit, V = each.rival(which).fit, each.run.vocab_size or 1
    if which != PAPER:
        return None if fit.loglik is None else np.exp(ln_shares(fit, V))
    beta, gamma = fit.params["beta"], fit.params["gamma"]
    if beta is None or gamma is None:
        return None
    t_V = np.log(np.arange(1, V + 1, dtype=np.float64))
    ln_weight_V = -beta * t_V - gamma * t_V**2
    return np.asarray(np.exp(ln_weight_V - ln_sum_exp(ln_weight_V, axis=0)))


def _distribution_chart(points: list[Any], lines: list[Any], order: list[str], forms: list[str]) -> dict[str, Any]:
    x, y = logarithmic(alt.X, "rank", "rank"), logarithmic(alt.Y, "share", "share of tokens per rank")
    hue = colour("size", "size", order)
    least = min(point["share"] for point in points)
    lines = [line for line in lines if line["share"] > least / 30]  # a tail that keeps falling would squeeze the points
    tooltip = tips(size="size", first="ranks from|,", last="to|,", n="tokens|,", share="share per rank|.3~g")
    return spec_of(
        alt.layer(
            alt.Chart(data(lines)).mark_line().encode(x=x, y=y, color=hue, strokeDash=line_dash("form", forms)),
            alt.Chart(data(points))
            .mark_point()
            .encode(x=x, y=y, color=hue, shape=shape("size", "size", order), tooltip=tooltip),
        ),
        height=320,
    )


def _distribution_values(name: str, title: str, points: list[dict[str, Any]]) -> Sheet:
    rows = [
        [named(p["size"]), whole(p["first"]), whole(p["last"]), whole(p["n"]), magnitude(p["share"])] for p in points
    ]
    columns = [("size", "size"), ("ranks from", "first_rank"), ("to", "last_rank"), ("tokens", "n_tokens")]
    return sheet_of(name, f"{title}: values", [*columns, ("share per rank", "share_per_rank")], rows)
