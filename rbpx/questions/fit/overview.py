"""What a report says of the laws of all groups, with table 2 of the RBP paper (arXiv 2510.20387)."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Chart, Figure, Scale, bars, drawn, line, points, scale_of
from rbpx.display.law_columns import estimate_in, paired_table, r2_and_slope
from rbpx.display.section import Fact, doubt_of, ends_of
from rbpx.display.table import Column, Table, interval, table_of
from rbpx.display.vocabulary import law_title, number, percent, short
from rbpx.laws.names import Axis
from rbpx.questions.fit.sentences import headline, largest
from rbpx.questions.question import OfAll, OnPage
from rbpx.questions.result import Result
from rbpx.runs.group import Group, titles_of
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record

_ENDS: Final = ("", "_lo", "_hi")
_ALONG: Final = 12  # points of a curve
_HUE: Final = "series"
_NAMED: Final = (Column("colour", _HUE), Column("group", "group"))
_Headline = tuple[Record | None, Record | None]


def facts(result: Result) -> Iterator[Fact]:
    """The exponents of RBP and cross-entropy, and the error of their backtest."""
    laws = [law for law in headline(result.rows) if law is not None]
    for law in laws:
        beside = f"{ends_of(estimate_in(law, 'alpha'))}\nR² {number(law['r2'], 3)}{doubt_of(law['status'])}"
        yield f"α of {law_title(law['law'], law['k'])}", number(law["alpha"], 3), beside
    for law in [law for law in laws if law["backtest_error"] is not None][:1]:
        beside = f"of {law_title(law['law'], law['k'])} at {largest(result.groups[0])}, from the smaller ones"
        yield "error of the prediction", percent(law["backtest_error"]), beside


def of_all(results: Sequence[Result]) -> OfAll:
    """Compares the laws of RBP at the smallest k and of cross-entropy."""
    laws = [headline(each.rows) for each in results]
    of = _title_of_rbp(laws)
    columns = (
        *interval(f"α, {of}", "alpha_rbp", ".3f"), Column("R²", "r2_rbp", ".3f"),
        *interval("α, CE", "alpha_ce", ".3f"), Column("R²", "r2_ce", ".3f"),
        Column("backtest", "backtest_error", percent, "of RBP at the largest point"),
    )  # fmt: skip
    return OfAll(columns, [_cells(*both) for both in laws], [_table_2(results)], _figures(results, laws, of))


PAGE: Final = OnPage(facts=facts, of_all=of_all)


def _title_of_rbp(laws: Sequence[_Headline]) -> str:
    ks = {rbp["k"] for rbp, _ in laws if rbp is not None}
    return law_title("rbp", *ks) if len(ks) == 1 else "−ln RBP_k"


def _cells(rbp: Record | None, ce: Record | None) -> Record:
    cells: Record = {"backtest_error": rbp and rbp["backtest_error"]}
    for name, law in (("rbp", rbp), ("ce", ce)):
        cells |= {f"alpha_{name}{end}": law and law[f"alpha{end}"] for end in _ENDS} | {f"r2_{name}": law and law["r2"]}
    return cells


def _table_2(results: Sequence[Result]) -> Table:
    """Rows by text and quantity, pairs of R2 and slope by family."""
    fitted = [each for each in results if each.groups[0].n_sizes >= 3]
    groups = [each.groups[0] for each in fitted]
    texts = titles_of(groups, [group.title.removeprefix(f"{group.first.family} on ") for group in groups])
    known: dict[tuple[str, int], Record] = {}
    for each, group, on in zip(fitted, groups, texts, strict=True):
        for law in each.rows:
            if law["law"] in ("rbp", "cross_entropy") and law["method"] == each.rows[0]["method"]:
                known.setdefault((on, law["k"] or 0), {}).update(r2_and_slope(group.first.family, law))
    places = list(dict.fromkeys(texts))
    ordered = sorted(known.items(), key=lambda item: (places.index(item[0][0]), item[0][1]))
    rows = [{"dataset": on, "quantity": f"k = {k}" if k else "CE", **pairs} for (on, k), pairs in ordered]
    families = list(dict.fromkeys(group.first.family for group in groups))
    title = f"Table 2: cross-entropy and −ln RBP_k against {groups[0].axis.value if groups else Axis.S.value}"
    return paired_table("table2", title, (("text", "dataset"), ("quantity", "quantity")), rows, families)


def _figures(results: Sequence[Result], laws: Sequence[_Headline], of: str) -> Iterator[Figure]:
    groups = [each.groups[0] for each in results]
    origin = from_fits([str(law["fit_id"]) for both in laws for law in both if law is not None], *groups)
    named: list[Record] = [
        {_HUE: hue, "group": title} for hue, title in zip(_hue(groups), titles_of(groups), strict=True)
    ]
    rows = [
        names | {"S": S, "y": y} for names, (rbp, _) in zip(named, laws, strict=True) if rbp for S, y in _curve(rbp)
    ]
    if rows:
        axis, n_laws = groups[0].axis, len({row["group"] for row in rows})
        one_colour = line(by="group", look={"strokeWidth": 1.2, "opacity": 0.7, "strokeDash": [1, 0]})
        yield drawn(
            table_of("laws-across", *_NAMED, ("{x}", "S", short), (of, "y", ".5f")).of(
                "The laws of all groups", rows, axis=axis
            ),
            Chart(scale_of(axis, "S"), Scale("y", of, log=True), (one_colour,), _HUE, height=340),
            f"Logarithmic plot of {n_laws} laws of {of} against {axis.value}, one a group.",
            f"A line for each group: its law of {of}, between its smallest and its largest point.",
            origin,
        )
    rows = [names | _cells(*both) for names, both in zip(named, laws, strict=True) if None not in both]
    if rows:
        ends = [end((row["alpha_rbp"], row["group"]) for row in rows) for end in (min, max)]
        said = " to ".join(f"{alpha:.3f} ({group})" for alpha, group in ends)
        thin = {"opacity": 0.3}
        marks = (
            bars("alpha_rbp_lo", "alpha_rbp_hi", along="x", look=thin),
            bars("alpha_ce_lo", "alpha_ce_hi", look=thin),
            points(),
        )
        alphas = (*interval(f"α of {of}", "alpha_rbp"), *interval("α of cross-entropy", "alpha_ce"))
        yield drawn(
            table_of("exponents-across", *_NAMED, *alphas).of("The exponents of all groups", rows),
            Chart(Scale("alpha_rbp", f"α of {of}"), Scale("alpha_ce", "α of cross-entropy"), marks, _HUE, height=340),
            f"Exponents of {len(rows)} groups; that of {of} goes from {said}.",
            "A point for each group. Bars: 95 % intervals over documents and models.",
            origin,
        )


def _hue(groups: Sequence[Group]) -> list[str]:
    """What colour distinguishes: texts, else families, else nothing."""
    firsts = [group.first for group in groups]
    for names in ([first.dataset for first in firsts], [first.family for first in firsts]):
        if len(set(names)) <= MOST_SERIES:
            return names
    return ["all"] * len(groups)


def _curve(law: Record) -> list[tuple[float, float]]:
    places = np.geomspace(min(law["params"]["S"]), max(law["params"]["S"]), _ALONG)
    values = (law["params"]["E"] or 0.0) + law["C"] * places ** -law["alpha"]
    return list(zip(places.tolist(), values.tolist(), strict=True))
