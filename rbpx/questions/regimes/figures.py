"""Draws the exponent and R2 of the law, with the noise floor, against k.

Source: RBP paper (arXiv 2510.20387), section 3.3, figure 6.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Mark, Scale, Undrawn, bars, drawn, line, points, rule
from rbpx.display.law_columns import ALPHA, R2
from rbpx.display.table import STATUS, Column, interval, table_of
from rbpx.display.vocabulary import AXES, decimals, rough, whole
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record

_LAW: Final = ("holds", "does not hold")
_K: Final = Scale("k", "k", log=True)
K: Final = Column("k", "k", whole)
BY_NOISE: Final = (
    *interval(
        "R² by noise", "r2_by_noise", decimals(3),
        "R² of a law that goes on with the exponent that it has where it holds, under the noise of as many misses as "
        "there are; interval over documents",
    ),
    Column("tokens", "n_tokens_needed", rough, "how many a text needs to show that slope"),
)  # fmt: skip
_EXPONENTS: Final = table_of("alpha", K, *ALPHA, ("law", "law"), STATUS)
_R2: Final = table_of("r2", K, *R2, *BY_NOISE, first="k r2, r2_by_noise")


def k_of_law(rows: Sequence[Record]) -> str:
    """The k at which the law holds, in ranges: 2, 50 to 500."""
    ranges = [[f"{row['k']:,}" for row in of] for holds, of in groupby(rows, lambda row: row["stands"]) if holds]
    return ", ".join(" to ".join(dict.fromkeys((of[0], of[-1]))) for of in ranges)


def figures(group: Group, rows: Sequence[Record]) -> Iterator[Figure | Undrawn]:
    """Draws alpha and R2 against k, with the R2 that noise would leave."""
    fitted = [row | {"law": _LAW[not row["stands"]]} for row in rows if row["r2"] is not None]
    titles = {"alpha": "Exponent against k", "r2": "R² against k"}
    if not fitted:
        yield from (Undrawn(name, title, "No k has a law here.") for name, title in titles.items())
        return
    origin, words = from_fits([row["fit_id"] for row in rows], group), AXES[group.axis]
    end = [rule(k=row["k"]) for row in fitted if row["stands"]][-1:]
    reach = f"the law holds at k = {k_of_law(rows)}" if end else "the law holds at no k"
    low, high = (of(fitted, key=lambda row: row["alpha"]) for of in (min, max))
    marks = (line(plain=True), bars("alpha_lo", "alpha_hi"), points(), *end)
    ends = " to ".join(f"{of['alpha']:.3f} at k = {of['k']:,}" for of in (low, high))
    yield drawn(
        _EXPONENTS.of(titles["alpha"], fitted, axis=group.axis),
        Chart(_K, Scale("alpha", "α"), marks, "law", "law", _LAW),
        f"Alpha of the law in {words.x} for {group.title}, from {ends}; {reach}.",
        f"α of −ln RBP_k = {words.constant}·{words.x}^−α with its 95 % interval, documents and models; {reach}.",
        origin,
    )
    noise = [
        {"k": row["k"], "r2": row["r2_by_noise"], "lo": row["r2_by_noise_lo"], "hi": row["r2_by_noise_hi"]}
        for row in fitted
        if row["r2_by_noise"] is not None
    ]
    under = [Mark("band", noise), line(noise, look={"strokeDash": [4, 3]})]
    worst = min(fitted, key=lambda row: row["r2"])
    yield drawn(
        _R2.of(titles["r2"], fitted),
        Chart(_K, Scale("r2", "R²"), (*(under if noise else []), line(), points(), *end)),
        f"R2 of the law in {words.x} for {group.title} at each k; smallest at k = {worst['k']:,}: {worst['r2']:.3f}.",
        f"Points: R² of the regression of ln(−ln RBP_k) on ln {words.x}. Dashed line and band: median and 95 % of what "
        "it would be if the law went on as where it holds, under the noise of so few misses.",
        origin,
    )
