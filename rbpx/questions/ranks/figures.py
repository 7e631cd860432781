"""Draws laws measured and derived, how ranks are distributed, and how closure fails: errors by k, residuals by rank.

Source: RBP paper (arXiv 2510.20387), eq. 9, figures 8a to 8c.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Mark,
    Origin,
    Scale,
    Undrawn,
    bars,
    drawn,
    line,
    points,
    rule,
    scale_of,
)
from rbpx.display.chart.laws import law_figure
from rbpx.display.view import Column, Value, View, error, magnitude, text, whole, with_ends
from rbpx.display.vocabulary import decimals, law_title, number
from rbpx.laws.numeric import Floats
from rbpx.laws.ranks.distribution import ln_shares
from rbpx.questions.question import one_by_one
from rbpx.questions.ranks.analysis import PAPER, Ranks, RunRanks, SizeBin
from rbpx.questions.ranks.closure import Closure
from rbpx.questions.ranks.forms import Held, Residual
from rbpx.questions.ranks.words import FORMS
from rbpx.runs.documents import BINS
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits, from_shares, spelled

_SQUEEZED: Final = 30  # times below all points, where a curve would squeeze them
_DRAWN: Final = (("rbp", 1), ("cross_entropy", None))
_SHARE: Final[Column[SizeBin]] = magnitude("share per rank", "share_per_rank", lambda found: found.share_per_rank)
_MOST: Final = 4  # forms whose errors are drawn
_ERRORS: Final = View[tuple[str, Held, float]](
    "errors",
    text("form", "form", lambda row: row[0]),
    whole("k", "k", lambda row: row[1].k),
    magnitude("measured", "measured", lambda row: row[1].measured),
    magnitude("predicted", "predicted", lambda row: row[2]),
    error("error", "error", lambda row: row[2] / row[1].measured - 1),
)
_RATIO: Final[Sequence[Column[Residual]]] = with_ends(
    "ratio", "ratio", lambda residual: residual.ratio, decimals(3), "tokens over those expected: 1 means as expected"
)
_RESIDUALS: Final = View[Residual]("residuals", BINS, _RATIO)
_TITLES: Final = {_ERRORS.name: "Errors at the largest size", _RESIDUALS.name: "Residuals of the chosen form"}
_BINS: Final = View[SizeBin]("distribution", text("size", "size", lambda found: found.size), BINS, _SHARE)


@one_by_one
def figures(ranks: Ranks, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Cross-entropy and -ln RBP_1 measured and derived, how the ranks are distributed, and where closure fails."""
    yield _derived(ranks, fit_ids)
    yield _distribution(ranks)
    if ranks.closure is None:
        yield from (
            Undrawn(name, title, f"No form was fitted: {ranks.without_closure}") for name, title in _TITLES.items()
        )
    else:
        yield _errors(ranks.closure, ranks.group, ranks.k_grid)
        yield _residuals(ranks.closure, ranks.group)


def _derived(ranks: Ranks, fit_ids: Sequence[str]) -> Figure | Undrawn:
    name, title = "derived", "Two laws, measured and derived from the distribution of ranks"
    closures = [(law_title(c.quantity, c.k), c) for c in ranks.derived if (c.quantity, c.k) in _DRAWN]
    if not closures:
        return Undrawn(name, title, "This needs three sizes, the published fit at each of them, and k = 1.")
    exponents = "; ".join(
        f"{law}: α {number(c.measured.alpha, 3)} measured, {number(c.derived.alpha, 3)} derived by "
        f"{FORMS[c.distribution]}"
        for law, c in closures
    )
    laws = {f"{law}, measured": c.measured for law, c in closures}
    laws |= {f"{law}, {FORMS[c.distribution]}": c.derived for law, c in closures}
    says = f"Laws in size for {ranks.group.title}. {exponents}."
    words = (says, "Laws of the measured values, and of those derived from the fitted distributions.")
    sizes = {each.run.non_embedding_params: each.run.size for each in ranks.runs}
    x, y = scale_of(ranks.group.axis), Scale("nats", "nats", log=True)
    origin = from_fits(fit_ids, ranks.group)
    return law_figure(name, title, list(laws.items()), x, y, words, origin, sizes=sizes, band=False)


def _distribution(ranks: Ranks) -> Figure:
    forms = dict.fromkeys([PAPER, *(total.distribution for total in ranks.totals[:1])])
    least = min(found.share_per_rank for found in ranks.binned) / _SQUEEZED
    lines = [row for each in ranks.ends for form in forms for row in _curve(each, form, ranks.edges, least)]
    best = ", ".join(f"{each.run.size}: {FORMS[each.best]}" for each in ranks.ends if each.best is not None)
    by = " and, dashed, ".join(FORMS[form] for form in forms)
    run_ids, ties = [each.run.run_id for each in ranks.ends], ranks.group.ties.value
    x, y = Scale("rank", "rank", log=True), Scale("share_per_rank", "share of tokens per rank", log=True)
    return drawn(
        _BINS.table("How the ranks are distributed", ranks.binned),
        Chart(x, y, (line(lines, by="form"), points()), "size", "size", height=320),
        f"Share of tokens of each rank for {ranks.group.title}, falling with rank; best by AIC: {best or 'none'}.",
        f"Points: share of tokens in a bin of ranks, divided by the number of ranks in it. Lines: {by}; the published "
        "fit is to ranks from 2 up, the other has the smallest AIC over 1..V, summed over all sizes.",
        Origin(spelled("rank_shares", run_ids=run_ids, ties=ties, edges=ranks.edges), tuple(run_ids)),
    )


def _curve(each: RunRanks, form: str, edges: Sequence[int], least: float) -> list[dict[str, Value]]:
    """The mean share per rank in each bin by a fitted distribution, where it is large enough to draw."""
    p_V = _shares(each, form)
    if p_V is None:
        return []
    upto, rows = np.concatenate([[0.0], np.cumsum(p_V)]), list[dict[str, Value]]()
    for first, end in pairwise(edges):
        last = min(end - 1, len(p_V))
        share = float(upto[last] - upto[first - 1]) / (last - first + 1) if first <= last else 0.0
        if share > least:
            names = {"size": each.run.size, "form": FORMS[form]}
            rows.append({**names, "rank": (first * last) ** 0.5, "share_per_rank": share})
    return rows


def _shares(each: RunRanks, form: str) -> Floats | None:
    fit = each.rival(form).fit
    if form == PAPER:  # over all ranks, as the paper draws it
        fit = replace(fit, distribution="lognormal_full")
    return None if fit.loglik is None else np.exp(ln_shares(fit, each.run.vocab_size or 1))


def _errors(closure: Closure, group: Group, k_grid: Sequence[int]) -> Figure:
    chosen = closure.forms[0]
    of_k = [held for held in chosen.held if held.k is not None]
    forms = closure.forms[:_MOST]
    said = [(each.form.label, held, held.predicted) for each in forms for held in each.held if held.k is not None]
    said += [("separate laws", held, held.separate) for held in of_k if held.separate is not None]
    ends = [(held.k, held.predicted_lo / held.measured, held.predicted_hi / held.measured) for held in of_k]
    band = [{"k": k, "lo": lo - 1, "hi": hi - 1} for k, lo, hi in ends]
    x, y = Scale("k", "k", log=True), Scale("error", "error", form="%")
    return drawn(
        _ERRORS.table(_TITLES[_ERRORS.name], said),
        Chart(x, y, (Mark("band", band, plain=True), line(), points()), "form"),
        f"Error of -ln RBP_k of {group.runs[-1].size} against k for {group.title}, by {chosen.form.label} and others.",
        "Lines: (predicted − measured) / measured of −ln RBP_k at the largest size, by forms whose parameters are laws "
        "in S through the smaller sizes, and by a separate law at each k. Band: 95 % of the first form, chosen by the "
        "smaller sizes.",
        from_shares(group, k_grid),
    )


def _residuals(closure: Closure, group: Group) -> Figure:
    label, largest = closure.forms[0].form.label, group.runs[-1]
    edges = [*(each.first_rank for each in closure.residuals), closure.residuals[-1].last_rank + 1]
    sql = spelled("rank_shares", run_ids=largest.run_ids, ties=group.ties.value, edges=edges)
    x, y = Scale("rank", "rank", log=True), Scale("ratio", "observed / expected")
    return drawn(
        _RESIDUALS.table(_TITLES[_RESIDUALS.name], closure.residuals),
        Chart(x, y, (rule(ratio=1.0), line(), bars("ratio_lo", "ratio_hi"), points())),
        f"Tokens of each bin of ranks over those expected by {label}, at {largest.size} of {group.title}.",
        f"Points: tokens of a bin of ranks over those that {label} expects there, fitted to the largest size itself; "
        "bars: 95 %, documents. 1 means as expected.",
        Origin(sql, largest.run_ids),
    )
