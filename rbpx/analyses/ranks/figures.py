"""Draws two laws, measured and derived, and the distribution of the ranks of the smallest and the largest size.

Source: RBP paper (arXiv 2510.20387), eq. 9, figures 8a to 8c.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from rbpx.analyses.question import one_by_one
from rbpx.analyses.ranks.analysis import PAPER, Ranks, RunRanks, SizeBin
from rbpx.analyses.ranks.words import FORMS
from rbpx.display.chart.figure import Chart, Figure, Origin, Scale, Undrawn, drawn, line, points, scale_of
from rbpx.display.chart.laws import law_figure
from rbpx.display.view import Column, Value, View, magnitude, text
from rbpx.display.vocabulary import law_title, number
from rbpx.groups.documents import BINS
from rbpx.groups.origin import from_fits, spelled
from rbpx.laws.numeric import Floats, ln_sum_exp
from rbpx.laws.ranks.distribution import ln_shares

_SQUEEZED: Final = 30  # times below all points, where a curve would squeeze them
_DRAWN: Final = (("rbp", 1), ("cross_entropy", None))
_SHARE: Final[Column[SizeBin]] = magnitude("share per rank", "share_per_rank", lambda found: found.share_per_rank)
_BINS: Final = View[SizeBin]("distribution", text("size", "size", lambda found: found.size), BINS, _SHARE)


@one_by_one
def figures(ranks: Ranks, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Cross-entropy and -ln RBP_1 measured and derived, then how the ranks are distributed."""
    yield _derived(ranks, fit_ids)
    yield _distribution(ranks)


def _derived(ranks: Ranks, fit_ids: Sequence[str]) -> Figure | Undrawn:
    name, title = "derived", "Two laws, measured and derived from the distribution of ranks"
    closures = [(law_title(c.quantity, c.k), c) for c in ranks.closures if (c.quantity, c.k) in _DRAWN]
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
    fit, V = each.rival(form).fit, each.run.vocab_size or 1
    if form != PAPER:
        return None if fit.loglik is None else np.exp(ln_shares(fit, V))
    beta, gamma = fit.params["beta"], fit.params["gamma"]
    if beta is None or gamma is None:
        return None
    t_V = np.log(np.arange(1, V + 1, dtype=np.float64))
    ln_weight_V = -beta * t_V - gamma * t_V**2
    return np.asarray(np.exp(ln_weight_V - ln_sum_exp(ln_weight_V, axis=0)))
