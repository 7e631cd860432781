"""Draws measured and derived laws, the distribution of the ranks, and the errors of closure by k and by rank.

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
    spread,
)
from rbpx.display.chart.laws import law_figure
from rbpx.display.table import SIZE, Column, interval, table_of
from rbpx.display.vocabulary import decimals, law_title, number, percent, short, whole
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.ranks.distribution import ln_shares
from rbpx.laws.ranks.family import FAMILIES, RankFit
from rbpx.laws.ranks.shapes import RANK_FORMS
from rbpx.questions.ranks.analysis import NOT_TESTED, Ranks
from rbpx.questions.ranks.closure import relative_error
from rbpx.questions.ranks.compare import PAPER, DocumentRanks
from rbpx.runs.documents import rank_edges
from rbpx.runs.origin import from_fits, from_shares, spelled
from rbpx.runs.run import Run
from rbpx.store.store import Record

_SQUEEZED: Final = 30  # times below all points, where a curve would squeeze them
_DRAWN: Final = (("rbp", 1), ("cross_entropy", None))
_PER_DECADE: Final = 6  # bins of ranks
_ERRORS: Final = table_of(
    "errors", ("form", "form"), ("k", "k", whole), ("measured", "measured", short), ("predicted", "predicted", short),
    ("error", "error", percent),
)  # fmt: skip
_BINS: Final = (
    Column("ranks from", "first_rank", whole),
    Column("to", "last_rank", whole),
    Column("middle", "rank", short, "geometric mean of both"),
    Column("tokens", "n_tokens", whole),
)
_DISTRIBUTION: Final = table_of("distribution", SIZE, *_BINS, ("share per rank", "share_per_rank", short))
_EXPECTED: Final = "tokens over those expected: 1 means as expected"
_RESIDUALS: Final = table_of("residuals", *_BINS, *interval("ratio", "ratio", decimals(3), _EXPECTED))
_TITLES: Final = {_ERRORS.name: "Errors at the largest size", _RESIDUALS.name: "Residuals of the chosen form"}


def _middle(first: int, last: int) -> float:
    return float((first * last) ** 0.5)


def label(row: Record) -> str:
    """The name of the distribution of a row."""
    name = row["distribution"]
    return "published fit" if name == PAPER else (RANK_FORMS.get(name) or FAMILIES[name]).label


def figures(ranks: Ranks) -> Iterator[Figure | Undrawn]:
    """Draws laws, the distribution of the ranks, and the errors of closure."""
    yield _derived(ranks)
    yield _distribution(ranks)
    for draw, (name, title) in zip((_errors, _residuals), _TITLES.items(), strict=True):
        yield draw(ranks, title) if ranks.closure else Undrawn(name, title, NOT_TESTED)


def _derived(ranks: Ranks) -> Figure | Undrawn:
    name, title = "derived", "Two laws, measured and derived from the distribution of ranks"
    two = [each for each in ranks.derived if (each[0]["params"]["quantity"], each[0]["k"]) in _DRAWN]
    if not two:
        return Undrawn(name, title, "This needs three sizes, the published fit at each of them, and k = 1.")
    series, says = dict[str, PowerLaw](), list[str]()
    for row, measured, derived in two:
        law, by = law_title(row["params"]["quantity"], row["k"]), label(row)
        series |= {f"{law}, measured": measured, f"{law}, {by}": derived}
        alphas = (number(of.alpha.value, 3) for of in (measured, derived))
        says.append(f"{law}: α {' measured, '.join(alphas)} derived by {by}")
    words = (
        f"Laws in size for {ranks.group.title}. {'; '.join(says)}.",
        "Laws of the measured values, and of those derived from the fitted distributions.",
    )
    sizes = {run.non_embedding_params: run.label for run in ranks.group.runs}
    x, y = scale_of(ranks.group.axis), Scale("nats", "nats", log=True)
    origin = from_fits([row["fit_id"] for row in ranks.fits], ranks.group)
    return law_figure(name, title, [*series.items()], x, y, words, origin, sizes=sizes, band=False)


def _distribution(ranks: Ranks) -> Figure:
    forms = dict.fromkeys([PAPER, *(total["distribution"] for total in ranks.totals[:1])])
    ends = spread([*zip(ranks.group.runs, ranks.rivals, ranks.counted, strict=True)], 2)
    edges = rank_edges(max(run.vocab_size or 1 for run, *_ in ends), _PER_DECADE)
    binned = [row for run, _, of in ends for row in _binned(run, of, edges)]
    least = min(row["share_per_rank"] for row in binned) / _SQUEEZED
    lines = [row for run, of, _ in ends for form in forms for row in _curve(run, of[form].fit, edges, least)]
    by = " and, dashed, ".join(label({"distribution": form}) for form in forms)
    run_ids, ties = [run.run_id for run, *_ in ends], ranks.group.ties.value
    x, y = Scale("rank", "rank", log=True), Scale("share_per_rank", "share of tokens per rank", log=True)
    return drawn(
        _DISTRIBUTION.of("How the ranks are distributed", binned),
        Chart(x, y, (line(lines, by="form"), points()), "size", "size", height=320),
        f"Share of tokens of each rank for {ranks.group.title}, falling with rank.",
        f"Points: share of tokens in a bin of ranks, divided by the number of ranks in it. Lines: {by}; the published "
        "fit is to ranks from 2 up, the other has the smallest AIC over 1..V, summed over all sizes.",
        Origin(spelled("rank_shares", run_ids=run_ids, ties=ties, edges=edges), tuple(run_ids)),
    )


def _binned(run: Run, of: DocumentRanks, edges: Sequence[int]) -> Iterator[Record]:
    in_bins, _ = np.histogram(of.rank_R, edges, weights=of.n_R)
    for (first, end), n in zip(pairwise(edges), in_bins, strict=True):
        if n > 0:
            share_per_rank = float(n / of.n_R.sum() / (end - first))
            ranks = {"first_rank": first, "last_rank": end - 1, "rank": _middle(first, end - 1)}
            yield {"size": run.size, **ranks, "n_tokens": int(n), "share_per_rank": share_per_rank}


def _curve(run: Run, fit: RankFit, edges: Sequence[int], least: float) -> Iterator[Record]:
    names: Record = {"size": run.size, "form": label({"distribution": fit.distribution})}
    if fit.loglik is None:
        return
    if fit.distribution == PAPER:  # over all ranks, as the paper draws it
        fit = replace(fit, distribution="lognormal_full")
    V = run.vocab_size or 1
    upto = np.concatenate([[0.0], np.cumsum(np.exp(ln_shares(fit, V)))])
    for first, end in pairwise(edges):
        last = min(end - 1, V)
        share = float(upto[last] - upto[first - 1]) / (last - first + 1) if first <= last else 0.0
        if share > least:
            yield {**names, "rank": _middle(first, last), "share_per_rank": share}


def _errors(ranks: Ranks, title: str) -> Figure:
    of_k = [row | {"form": label(row)} for row in ranks.closure if row["kind"] == "quantity" and row["k"] is not None]
    chosen = of_k[0]["form"]
    held = [row for row in of_k if row["form"] == chosen]
    said = of_k + [
        row | {"form": "separate laws", "predicted": row["separate"], "error": relative_error(row, "separate")}
        for row in held
        if row["separate"] is not None
    ]
    band = [
        {"k": row["k"], "lo": relative_error(row, "predicted_lo"), "hi": relative_error(row, "predicted_hi")}
        for row in held
    ]
    x, y = Scale("k", "k", log=True), Scale("error", "error", form="%")
    return drawn(
        _ERRORS.of(title, said),
        Chart(x, y, (Mark("band", band, plain=True), line(), points()), "form"),
        f"Error of -ln RBP_k of the largest size against k for {ranks.group.title}, by {chosen} and others.",
        "Lines: (predicted − measured) / measured of −ln RBP_k at the largest size, by forms whose parameters are laws "
        "in S through the smaller sizes, and by a separate law at each k. Band: 95 % of the first form, chosen by the "
        "smaller sizes.",
        from_shares(ranks.group, ranks.k_grid),
    )


def _residuals(ranks: Ranks, title: str) -> Figure:
    group, largest = ranks.group, ranks.group.runs[-1]
    rows = [
        row | {"rank": _middle(row["first_rank"], row["last_rank"])}
        for row in ranks.closure
        if row["kind"] == "residual"
    ]
    form, edges = label(rows[0]), [*(row["first_rank"] for row in rows), rows[-1]["last_rank"] + 1]
    sql = spelled("rank_shares", run_ids=largest.run_ids, ties=group.ties.value, edges=edges)
    return drawn(
        _RESIDUALS.of(title, rows),
        Chart(
            Scale("rank", "rank", log=True),
            Scale("ratio", "observed / expected"),
            (rule(ratio=1.0), line(), bars("ratio_lo", "ratio_hi"), points()),
        ),
        f"Tokens of each bin of ranks over those expected by {form}, at {largest.label} of {group.title}.",
        f"Points: tokens of a bin of ranks over those that {form} expects there, fitted to the largest size itself; "
        "bars: 95 %, documents. 1 means as expected.",
        Origin(sql, largest.run_ids),
    )
