"""Draws the regimes of k: the exponent, R2 and the noise floor against k.

Source: RBP paper (arXiv 2510.20387), section 3.3, figure 6.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Mark, Scale, Undrawn, bars, drawn, line, points, rule
from rbpx.display.law_columns import determination, exponent
from rbpx.display.view import Column, View, magnitude, state, text, whole, with_ends, written
from rbpx.display.vocabulary import AXES, decimals, rough
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record

_LAW: Final = ("holds", "does not hold")
_K: Final = Scale("k", "k", log=True)
K: Final[Column[Record]] = whole("k", "k")
ALPHA: Final[Sequence[Column[Record]]] = exponent()
BY_NOISE: Final[Sequence[Column[Record] | Sequence[Column[Record]]]] = (
    with_ends(
        "R² by noise", "r2_by_noise", None, decimals(3),
        "R² of a law that goes on with the exponent that it has where it holds, under the noise of as many misses as "
        "there are; interval over documents",
        spare=3,
    ),
    written("tokens", "n_tokens_needed", None, rough, "how many a text needs to show that slope", 4),
)  # fmt: skip
_EXPONENTS: Final = View[Record]("alpha", K, ALPHA, text("law", "law"), state())
_R2: Final = View[Record]("r2", K, determination(), BY_NOISE)
_FLOOR: Final = View[Record](
    "noise",
    text("line", "what"),
    K,
    magnitude("in ln(−ln RBP_k)", "ln_y"),
    whole("misses", "n_misses"),
)


def figures(group: Group, rows: Sequence[Record]) -> Iterator[Figure | Undrawn]:
    """Draw alpha against k, R2 against k, and the change by the law beside the noise."""
    fitted = [row | {"law": _LAW[not row["stands"]]} for row in rows if row["r2"] is not None]
    titles = {"alpha": "Exponent against k", "r2": "R² against k", "noise": "Noise floor"}
    if not fitted:
        yield from (Undrawn(name, title, "No k has a law here.") for name, title in titles.items())
        return
    origin, words = from_fits([row["fit_id"] for row in rows], group), AXES[group.axis]
    reach, end, supported = "the law does not hold at the first k", [], rows[0]["supported_up_to_k"]
    if supported is not None:
        reach, end = f"the law holds up to k = {supported:,}", [rule(k=supported)]
    low, high = (of(fitted, key=lambda row: row["alpha"]) for of in (min, max))
    ends = " to ".join(f"{of['alpha']:.3f} at k = {of['k']:,}" for of in (low, high))
    marks = bars("alpha_lo", "alpha_hi"), points()
    yield drawn(
        _EXPONENTS.table(titles["alpha"], fitted, axis=group.axis),
        Chart(_K, Scale("alpha", "α"), (line(plain=True), *marks, *end), "law", "law", _LAW),
        f"Alpha of the law in {words.x} for {group.title}, from {ends}; {reach}.",
        f"α of −ln RBP_k = {words.constant}·{words.x}^−α with its 95 % interval, documents and models; {reach}.",
        origin,
    )
    worst = min(fitted, key=lambda row: row["r2"])
    yield drawn(
        _R2.table(titles["r2"], fitted),
        Chart(_K, Scale("r2", "R²"), (*_by_noise(fitted), line(), points(), *end)),
        f"R2 of the law in {words.x} for {group.title} at each k; smallest at k = {worst['k']:,}: {worst['r2']:.3f}.",
        f"Points: R² of the regression of ln(−ln RBP_k) on ln {words.x}. Dashed line and band: median and 95 % of what "
        "it would be if the law went on as where it holds, under the noise of so few misses.",
        origin,
    )
    floor = [of for row in fitted for of in _floor(row)]
    if all(row["document_sd"] is None and row["binomial_sd"] is None for row in fitted):
        yield Undrawn("noise", titles["noise"], "Noise is counted in tokens, which imported results do not have.")
        return
    yield drawn(
        _FLOOR.table(titles["noise"], floor),
        Chart(_K, Scale("ln_y", "in ln(−ln RBP_k)", log=True), (line(), points(), *end), "what"),
        f"Change of ln(−ln RBP_k) by the law for {group.title}, beside the noise at the largest {words.one}; {reach}.",
        f"Change of ln(−ln RBP_k) by the law from the smallest to the largest {words.one}, and its standard deviation "
        "at the largest, over documents and as a count of independent tokens. Where they meet, signal and noise cannot "
        f"be told apart; {reach}.",
        origin,
    )


def _by_noise(fitted: Sequence[Record]) -> list[Mark]:
    """The median and the band of the R2 that noise would leave a law that goes on."""
    rows = [
        {"k": row["k"], "r2": row["r2_by_noise"], "lo": row["r2_by_noise_lo"], "hi": row["r2_by_noise_hi"]}
        for row in fitted
        if row["r2_by_noise"] is not None
    ]
    return [Mark("band", rows), line(rows, look={"strokeDash": [4, 3]})] if rows else []


def _floor(row: Record) -> list[Record]:
    named = {
        "change by the law": row["signal"] and abs(row["signal"]),
        "noise of the documents": row["document_sd"],
        "noise of the count": row["binomial_sd"],
    }
    return [row | {"what": what, "ln_y": value} for what, value in named.items() if value]
