"""Cross-entropy decomposed: one group in, the share of each term against S out. Source: arXiv 2510.04067."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rbpx.analyses.entropy.analysis import TERMS, Entropies, RunTerms
from rbpx.display.chart.drawing import PLACE_TITLES, colour, dash, data, linear, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, decimal, named, place, place_column, sheet_of, span
from rbpx.display.names import law_name
from rbpx.groups.question import spelled

__all__ = ["figures"]


def figures(result: Entropies, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The share of each term in cross-entropy, against S."""
    title = "Shares of cross-entropy"
    first, last = result.runs[0], result.runs[-1]
    shares = [
        f"{law_name(name)} {_share(first, name):.1%} at {first.run.size}, {_share(last, name):.1%} at {last.run.size}"
        for name in TERMS
    ]
    return [
        Figure(
            "shares",
            title,
            f"Terms of cross-entropy for {result.group.title}: {'; '.join(shares)}.",
            "CE = error-entropy + self-alignment + confidence, each as a share of CE, less the bias of counting where "
            "resampled documents show it. Bars: 95 % over documents. A share may be below 0 or above 1.",
            _chart(result),
            _values(title, result),
            spelled("laws", fit_ids=fit_ids),
            tuple(result.group.run_ids),
        )
    ]


def _share(each: RunTerms, name: str) -> float:
    """A share less its bias; as counted where that is not known."""
    corrected = each.corrected_shares[name].value
    return each.shares[name] if corrected is None else corrected


def _rows(result: Entropies) -> list[dict[str, Any]]:
    rows = []
    for each in result.runs:
        for name in TERMS:
            corrected = each.corrected_shares[name]
            row: dict[str, Any] = {"term": law_name(name), "size": each.run.size, "S": each.run.x}
            row |= {"share": _share(each, name), "nats": each.terms[name], "counted": each.shares[name]}
            rows.append(row | {"lo": corrected.lo, "hi": corrected.hi})
    return rows


def _chart(result: Entropies) -> dict[str, Any]:
    order = [law_name(name) for name in TERMS]
    x = logarithmic(alt.X, "S", PLACE_TITLES[result.group.axis])
    base = alt.Chart(data(_rows(result))).encode(x=x, color=colour("term", "", order))
    y = linear(alt.Y, "share", "share of cross-entropy", form=".0%")
    tooltip = tips(
        term="term",
        size="size",
        S="S|,",
        share="share|.2%",
        lo="95 % from|.2%",
        hi="to|.2%",
        counted="as counted|.2%",
        nats="nats|.4f",
    )
    return spec_of(
        alt.layer(
            base.mark_line().encode(y=y, strokeDash=dash("term", order)),
            base.mark_rule().encode(y=alt.Y("lo:Q", title="share of cross-entropy"), y2="hi:Q"),
            base.mark_point().encode(y=y, shape=shape("term", "", order), tooltip=tooltip),
        )
    )


def _values(title: str, result: Entropies) -> Sheet:
    rows = [
        [
            named(row["size"]),
            place(result.group.axis, row["S"]),
            named(row["term"]),
            decimal(row["nats"]),
            decimal(row["share"]),
            span(row["lo"], row["hi"]),
            decimal(row["counted"]),
        ]
        for row in _rows(result)
    ]
    at = place_column(result.group.axis)
    columns = [("size", "size"), at, ("term", "term"), ("nats", "nats"), ("share", "share")]
    columns += [("95 %", "share_lo share_hi"), ("share as counted", "share_counted")]
    return sheet_of("shares", f"{title}: values", columns, rows)
