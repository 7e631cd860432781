"""Draws the regimes of k: the exponent, R2 and the noise floor against k.

Source: RBP paper (arXiv 2510.20387), section 3.3, figure 6.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Mark, Scale, Undrawn, bars, drawn, line, points, rule
from rbpx.display.law_columns import determination, exponent
from rbpx.display.view import Column, View, magnitude, state, text, whole, with_ends, written
from rbpx.display.vocabulary import AXES, decimals, rough
from rbpx.laws.intervals.estimate import Estimate
from rbpx.questions.question import one_by_one
from rbpx.questions.regimes.analysis import Regime, Regimes
from rbpx.runs.origin import from_fits

_Noise = tuple[str, Regime, float]
_LAW: Final = ("holds", "does not hold")
_K: Final = Scale("k", "k", log=True)


def _by_noise(regime: Regime) -> Estimate | None:
    return None if regime.predicted is None else regime.predicted.r2


K: Final[Column[Regime]] = whole("k", "k", lambda regime: regime.k)
ALPHA: Final[Sequence[Column[Regime]]] = exponent(lambda regime: regime.fit)
BY_NOISE: Final[Sequence[Column[Regime]]] = (
    *with_ends(
        "R² by noise", "r2_by_noise", _by_noise, decimals(3),
        "R² of a law that goes on with the exponent that it has where it holds, under the noise of as many misses as "
        "there are; interval over documents",
        spare=3,
    ),
    written(
        "tokens", "n_tokens_needed", lambda regime: None if regime.predicted is None else regime.predicted.n_tokens,
        rough, "how many a text needs to show that slope", 4,
    ),
)  # fmt: skip
_EXPONENTS: Final = View[Regime](
    "alpha",
    K,
    ALPHA,
    text("law", "law", lambda regime: _LAW[0] if regime.stands else _LAW[1]),
    state(lambda regime: regime.fit.status),
)
_R2: Final = View[Regime]("r2", (K, determination(lambda regime: regime.fit), BY_NOISE))
_FLOOR: Final = View[_Noise](
    "noise",
    text("line", "what", lambda row: row[0]),
    whole("k", "k", lambda row: row[1].k),
    magnitude("in ln(−ln RBP_k)", "ln_y", lambda row: row[2]),
    whole("misses", "n_misses", lambda row: row[1].n_misses),
)


@one_by_one
def figures(regimes: Regimes, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Draw alpha against k, R2 against k, and the change by the law beside the noise."""
    fitted = [regime for regime in regimes.regimes if regime.fit.r2 is not None]
    titles = {"alpha": "Exponent against k", "r2": "R² against k", "noise": "Noise floor"}
    if not fitted:
        yield from (Undrawn(name, title, "No k has a law here.") for name, title in titles.items())
        return
    group, origin, end = regimes.group, from_fits(fit_ids, regimes.group), []
    words, reach = AXES[group.axis], "the law does not hold at the first k"
    if regimes.supported is not None:
        reach, end = f"the law holds up to k = {regimes.supported:,}", [rule(k=regimes.supported)]
    low, high = (of(fitted, key=lambda regime: regime.fit.alpha or 0.0) for of in (min, max))
    ends = " to ".join(f"{of.fit.alpha or 0.0:.3f} at k = {of.k:,}" for of in (low, high))
    intervals = line(plain=True), bars("alpha_lo", "alpha_hi")
    yield drawn(
        _EXPONENTS.table(titles["alpha"], fitted, axis=group.axis),
        Chart(_K, Scale("alpha", "α"), (*intervals, points(), *end), "law", "law", _LAW),
        f"Alpha of the law in {words.x} for {group.title}, from {ends}; {reach}.",
        f"α of −ln RBP_k = {words.constant}·{words.x}^−α with its 95 % interval, documents and models; {reach}.",
        origin,
    )
    worst = min(fitted, key=lambda regime: regime.fit.r2 or 0.0)
    yield drawn(
        _R2.table(titles["r2"], fitted),
        Chart(_K, Scale("r2", "R²"), (*_noise_marks(fitted), line(), points(), *end)),
        f"R2 of the law in {words.x} for {group.title} at each k; smallest at k = {worst.k:,}: {worst.fit.r2:.3f}.",
        f"Points: R² of the regression of ln(−ln RBP_k) on ln {words.x}. Dashed line and band: median and 95 % of what "
        "it would be if the law went on as where it holds, under the noise of so few misses.",
        origin,
    )
    if all(regime.document_sd is None and regime.binomial_sd is None for regime in fitted):
        yield Undrawn("noise", titles["noise"], "Noise is counted in tokens, which imported results do not have.")
        return
    yield drawn(
        _FLOOR.table(titles["noise"], [row for regime in fitted for row in _noise_of(regime)]),
        Chart(_K, Scale("ln_y", "in ln(−ln RBP_k)", log=True), (line(), points(), *end), "what"),
        f"Change of ln(−ln RBP_k) by the law for {group.title}, beside the noise at the largest {words.one}; {reach}.",
        f"Change of ln(−ln RBP_k) by the law from the smallest to the largest {words.one}, and its standard deviation "
        "at the largest, over documents and as a count of independent tokens. Where they meet, signal and noise cannot "
        f"be told apart; {reach}.",
        origin,
    )


def _noise_marks(fitted: Sequence[Regime]) -> list[Mark]:
    """The median and the band of the R2 that noise would leave a law that goes on."""
    known = [(regime.k, regime.predicted.r2) for regime in fitted if regime.predicted is not None]
    rows = [{"k": k, "r2": r2.value, "lo": r2.lo, "hi": r2.hi} for k, r2 in known]
    return [Mark("band", rows), line(rows, look={"strokeDash": [4, 3]})] if rows else []


def _noise_of(regime: Regime) -> list[_Noise]:
    named = {
        "change by the law": None if regime.signal is None else abs(regime.signal),
        "noise of the documents": regime.document_sd,
        "noise of the count": regime.binomial_sd,
    }
    return [(what, regime, value) for what, value in named.items() if value is not None and value > 0]
