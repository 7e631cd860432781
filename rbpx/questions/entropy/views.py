"""Tables of the decomposition of cross-entropy: the terms of each run, their shares and their laws; and a figure."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Scale, bars, drawn, line, points, scale_of
from rbpx.display.law_columns import backtest, constant, determination, exponent, points_of
from rbpx.display.section import interval_of
from rbpx.display.view import Column, Table, View, decimal, place, state, text, with_ends
from rbpx.display.vocabulary import decimals, law_title
from rbpx.laws.intervals.estimate import Estimate
from rbpx.questions.entropy.analysis import TERMS as NAMES
from rbpx.questions.entropy.analysis import Entropies, RunTerms, analyse, keep
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.runs.fits import Law
from rbpx.runs.origin import from_fits


@one_by_one
def tables(entropies: Entropies) -> Iterator[Table]:
    """The terms with the corrected entropy, their shares of cross-entropy, and the laws."""
    group, runs, x = entropies.group, entropies.runs, entropies.group.axis.value
    note = (
        f"CE = H(P) + KL(P || Q) − ln(sum S), nats: error-entropy, self-alignment, confidence; ties "
        f"{group.ties.value} (the source counts ranks strictly: ties=optimistic)."
    )
    yield TERMS.table("Cross-entropy taken apart, and H(P) corrected", runs, group.title, group.axis, note)
    note = (
        "Shares are of CE, and may be below 0 or above 1. They are given minus the bias that resampled documents "
        "show, with an interval over documents; and as counted, which satisfies the identity but has no interval."
    )
    title = "Shares of cross-entropy, corrected for the bias of counting"
    yield SHARES.table(title, runs, group.title, group.axis, note)
    note = f"The law of a share is y = C {x}^−α for term / CE, both as counted; corrected: for the jackknife."
    yield LAWS.table(f"Laws of the terms in {x}", entropies.laws, group.title, group.axis, note)


def _share_of(name: str, heading: str, spare: int, ends_spare: int = 0) -> Sequence[Column[RunTerms]]:
    """The share of a term, then the same as counted, which a narrow terminal leaves out."""
    corrected: Sequence[Column[RunTerms]] = with_ends(
        heading, f"{name}_share", lambda each: each.corrected_shares[name], decimals(3), ends_spare=ends_spare
    )
    counted = f"{name}_share_counted"
    return *corrected, decimal(f"{heading} counted", counted, lambda each: each.shares[name], 3, "", spare)


_SIZE: Final[Column[RunTerms]] = text("size", "size", lambda each: each.run.size)
_PLACE: Final[Sequence[Column[RunTerms]]] = place(lambda each: each.run, spare=5)
TERMS: Final = View[RunTerms](
    "terms",
    _SIZE,
    _PLACE,
    decimal("CE", "cross_entropy_nats", lambda each: each.cross_entropy_nats),
    decimal("H(P)", "error_entropy_nats", lambda each: each.terms["error_entropy"]),
    decimal("KL", "self_alignment_nats", lambda each: each.terms["self_alignment"]),
    decimal("−ln sum S", "confidence_nats", lambda each: each.terms["confidence"]),
    decimal(
        "jackknife", "error_entropy_jackknife_nats", lambda each: each.jackknife,
        means="H(P) minus the part of its bias that falls as 1/D with D documents; still too small",
    ),
    decimal("stderr", "error_entropy_jackknife_stderr_nats", lambda each: each.stderr),
    decimal(
        "extrapolated", "error_entropy_extrapolated_nats", lambda each: each.extrapolated,
        means="H(P) extrapolated from halves and quarters of the documents; tends to be too large. Where it differs "
        "from the jackknife by less than the standard error, the remaining bias cannot be resolved", spare=1,
    ),
)  # fmt: skip
SHARES: Final = View[RunTerms](
    "shares",
    _SIZE,
    _PLACE,
    _share_of("error_entropy", "H(P)", 2),
    _share_of("self_alignment", "KL", 3),
    _share_of("confidence", "−ln", 4, ends_spare=1),
)
LAWS: Final = View[Law](
    "laws",
    text("law", "law", lambda law: law_title(law.law)),
    exponent(lambda law: law.fit),
    constant(lambda law: law.fit, spare=2),
    points_of(lambda law: law.fit, spare=3),
    determination(lambda law: law.fit, ends_spare=4),
    backtest(lambda law: law.fit, spare=1),
    state(lambda law: law.fit.status),
)


@one_by_one
def sentences(entropies: Entropies) -> Iterator[str]:
    """The terms of the largest model, and the exponents of cross-entropy and error-entropy."""
    last = entropies.runs[-1]
    terms = ", ".join(f"{law_title(name)} {nats:.3f}" for name, nats in last.terms.items())
    yield f"At {last.run.size}, cross-entropy is {last.cross_entropy_nats:.3f} nats: {terms}."
    exponents = [
        f"{law_title(law.law)} {interval_of(law.fit.exponent)}"
        for law in entropies.laws
        if law.law in ("cross_entropy", "error_entropy") and law.fit.alpha is not None
    ]
    if exponents:
        yield f"Exponents: {'; '.join(exponents)}."


_Term = tuple[RunTerms, str]


def _share(row: _Term) -> Estimate:
    """A share minus its bias; as counted and without an interval where the bias is not known."""
    each, name = row
    corrected = each.corrected_shares[name]
    return Estimate(each.shares[name], None, None) if corrected.value is None else corrected


DRAWN: Final = View[_Term](
    "shares",
    text("size", "size", lambda row: row[0].run.size),
    place(lambda row: row[0].run),
    text("term", "term", lambda row: law_title(row[1])),
    decimal("nats", "nats", lambda row: row[0].terms[row[1]]),
    with_ends("share", "share", _share),
    decimal("as counted", "share_counted", lambda row: row[0].shares[row[1]]),
)


@one_by_one
def figures(entropies: Entropies, fit_ids: Sequence[str]) -> Iterator[Figure]:
    """The share of each term in cross-entropy."""
    group, ends = entropies.group, (entropies.runs[0], entropies.runs[-1])
    shares = [
        f"{law_title(name)} {', '.join(f'{_share((each, name)).value:.1%} at {each.run.size}' for each in ends)}"
        for name in NAMES
    ]
    rows = [(each, name) for each in entropies.runs for name in NAMES]
    y = Scale("share", "share of cross-entropy", form=".0%")
    yield drawn(
        DRAWN.table("Shares of cross-entropy", rows, axis=group.axis),
        Chart(scale_of(group.axis), y, (line(), bars("share_lo", "share_hi"), points()), "term"),
        f"Terms of cross-entropy for {group.title}: {'; '.join(shares)}.",
        "CE = error-entropy + self-alignment + confidence, each as a share of CE, minus the bias of counting where "
        "resampled documents show it. Bars: 95 % over documents. A share may be below 0 or above 1.",
        from_fits(fit_ids, group),
    )


QUESTION = of_parts(each(analyse), keep, tables, sentences, figures)
