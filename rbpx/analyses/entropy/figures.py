"""Cross-entropy decomposed: the share of each term drawn. Source: arXiv 2510.04067."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.analyses.entropy.analysis import TERMS, Entropies, RunTerms
from rbpx.analyses.question import one_by_one
from rbpx.display.chart.figure import Figure, drawn
from rbpx.display.chart.marks import Chart, Scale, bars, line, points, scale_of
from rbpx.display.column import decimal, place, text, with_ends
from rbpx.display.names import law_title
from rbpx.display.view import View
from rbpx.groups.question import from_fits
from rbpx.laws.interval import Estimate

_Term = tuple[RunTerms, str]


def _share(row: _Term) -> Estimate:
    """A share less its bias; as counted, without an interval, where that is not known."""
    each, name = row
    corrected = each.corrected_shares[name]
    return Estimate(each.shares[name], None, None) if corrected.value is None else corrected


_SHARES: Final = View[_Term](
    "shares",
    (
        text("size", "size", lambda row: row[0].run.size),
        place(lambda row: row[0].run),
        text("term", "term", lambda row: law_title(row[1])),
        decimal("nats", "nats", lambda row: row[0].terms[row[1]]),
        with_ends("share", "share", _share),
        decimal("as counted", "share_counted", lambda row: row[0].shares[row[1]]),
    ),
)


@one_by_one
def figures(entropies: Entropies, fit_ids: Sequence[str]) -> Iterator[Figure]:
    """The share of each term in cross-entropy."""
    group, ends = entropies.group, (entropies.runs[0], entropies.runs[-1])
    shares = [
        f"{law_title(name)} {', '.join(f'{_share((each, name)).value:.1%} at {each.run.size}' for each in ends)}"
        for name in TERMS
    ]
    rows = [(each, name) for each in entropies.runs for name in TERMS]
    y = Scale("share", "share of cross-entropy", form=".0%")
    yield drawn(
        _SHARES.table("Shares of cross-entropy", rows, axis=group.axis),
        Chart(scale_of(group.axis), y, (line(), bars("share_lo", "share_hi"), points()), "term"),
        f"Terms of cross-entropy for {group.title}: {'; '.join(shares)}.",
        "CE = error-entropy + self-alignment + confidence, each as a share of CE, less the bias of counting where "
        "resampled documents show it. Bars: 95 % over documents. A share may be below 0 or above 1.",
        from_fits(fit_ids, group),
    )
