"""Answers `entropy`: the terms for each run, their shares of cross-entropy, and their laws.

Source: arXiv 2510.04067, which claims that only error-entropy scales.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.display.chart.figure import Chart, Figure, Scale, bars, drawn, line, points, scale_of
from rbpx.display.law_columns import ALPHA, BACKTEST, CONSTANT, POINTS, R2, estimate_in, law_row
from rbpx.display.section import interval_of
from rbpx.display.table import PLACE, SIZE, STATUS, Table, interval, table_of
from rbpx.display.vocabulary import law_title, size_name
from rbpx.laws.intervals.estimate import NO_ESTIMATE, by_name, estimate
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.questions.entropy import EntropyKeys
from rbpx.questions.entropy.bias import entropy_extrapolated, entropy_jackknife
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.documents import document_ranks
from rbpx.runs.fits import doubted, fit_all, fit_points, fit_record
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits
from rbpx.runs.points.sizes import Evidence, Points, size_points, weigh_group
from rbpx.runs.run import Run
from rbpx.store.columns import numbers
from rbpx.store.store import Record

TERMS: Final = ("error_entropy", "self_alignment", "confidence")
_JACKKNIFE: Final = "error_entropy_jackknife_nats"


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: EntropyKeys) -> Result:
    """Decomposes cross-entropy, and fits laws to each term, its share and the corrected entropy."""
    evidence = weigh_group(connection, group, request, (1,), TERMS)
    series = {each.law: each for each in size_points(group, evidence, request, (), {"cross_entropy", *TERMS})}
    terms = [_terms(connection, group, run, of) for run, of in zip(group.runs, evidence, strict=True)]
    laws = fit_all([series[name] for name in ("cross_entropy", *TERMS)], Method.ols)
    H_N = np.array([row[_JACKKNIFE] for row in terms], np.float64)  # None is NaN
    more = [] if np.isnan(H_N).any() else [_without_bias(series["error_entropy"], H_N)]
    more += [replace(series[name].over(series["cross_entropy"]), law=f"{name}_share") for name in TERMS]
    laws += [fit_points(each, Method.ols) for each in more]
    fits = [fit_record(group, doubted(group, law), request.resamples) for law in laws]
    rows = [*terms, *({"kind": "law", **fit} for fit in fits)]
    shown = [row | {group.axis.value: run.x} for row, run in zip(terms, group.runs, strict=True)]
    drawn = partial(figures, group, shown, [row["fit_id"] for row in fits])
    return Result([group], rows, [*_tables(group, shown, fits)], [_sentence(terms, fits)], drawn, fits)


def _terms(connection: duckdb.DuckDBPyConnection, group: Group, run: Run, of: Evidence) -> Record:
    """The decomposition of one run.

    NAME_nats of each term sum to cross-entropy; NAME_share, plug-in, sum to 1 and may be below 0 or above 1;
    NAME_share_corrected is without the bias that the bootstrap shows. error_entropy_jackknife_nats is still too small,
    error_entropy_extrapolated_nats, from halves and quarters of the documents, too large.
    """
    whole = float(of.measured["cross_entropy"])
    row: Record = {"kind": "terms", **group.names(), "run_id": run.run_id, **run.names(), "cross_entropy_nats": whole}
    for name in TERMS:
        nats, share_B = float(of.measured[name]), of.replicates[name] / of.replicates["cross_entropy"]
        share = estimate(nats / whole, share_B, group.n_effective)
        # If one document has all scored tokens, replicates do not differ, and there is no interval.
        varies = np.nanmax(share_B) > np.nanmin(share_B)
        corrected = share if varies and share.ends is not None else NO_ESTIMATE
        row |= {f"{name}_nats": nats, f"{name}_share": nats / whole} | by_name(**{f"{name}_share_corrected": corrected})
    counts = document_ranks(connection, run.run_id, group.ties)
    columns = [numbers(counts[name]) for name in ("doc_id", "rank", "n_tokens")]
    n_documents = np.count_nonzero(np.bincount(columns[0]))
    entropy, stderr = entropy_jackknife(*columns) if n_documents >= 2 else (None, None)
    row |= {_JACKKNIFE: entropy, "error_entropy_jackknife_stderr_nats": stderr}
    return row | {"error_entropy_extrapolated_nats": entropy_extrapolated(*columns) if n_documents >= 4 else None}


def _without_bias(points: Points, H_N: Floats) -> Points:
    y_BN = None if points.y_BN is None else points.y_BN - np.nanmean(points.y_BN, axis=0) + H_N
    return replace(points, law="error_entropy_corrected", y_N=H_N, y_BN=y_BN)


def _tables(group: Group, terms: Sequence[Record], laws: Sequence[Record]) -> Iterator[Table]:
    about, whole = (group.title, group.axis), ("cross_entropy", *TERMS)
    has_laws = any(law["alpha"] is not None for law in laws)
    yield NATS.of("Cross-entropy taken apart, nats, and error-entropy corrected", terms, *about, brief=not has_laws)
    yield SHARES.of("Shares of cross-entropy, corrected for the bias of counting", terms, *about, brief=False)
    title = f"Laws of cross-entropy and its terms in {group.axis.value}"
    told = [law_row(law, group.axis) | {"law": law_title(law["law"])} for law in laws]
    yield LAWS.of(title, told, *about, brief=[has_laws and law["law"] in whole for law in laws])


_NATS: Final = " ".join(f"{name}_nats" for name in TERMS)
NATS: Final = table_of(
    "terms", SIZE, *PLACE, ("CE", "cross_entropy_nats", ".4f"),
    *((law_title(name), f"{name}_nats", ".4f") for name in TERMS),
    ("jackknife", _JACKKNIFE, ".4f", "error-entropy minus a bias that falls as 1/documents; still too small"),
    ("stderr", "error_entropy_jackknife_stderr_nats", ".4f"),
    ("extrapolated", "error_entropy_extrapolated_nats", ".4f", "from parts of them; may be too large"),
    first=f"size {{x}} cross_entropy_nats {_NATS} {_JACKKNIFE} error_entropy_jackknife_stderr_nats, "
    "error_entropy_extrapolated_nats",
)  # fmt: skip
SHARES: Final = table_of(
    "shares", SIZE, *PLACE, *interval("error-entropy", "error_entropy_share_corrected", ".3f"),
    *interval("self-alignment", "self_alignment_share_corrected", ".3f"),
    *interval("confidence", "confidence_share_corrected", ".3f"),
    first="size {x} error_entropy_share_corrected self_alignment_share_corrected confidence_share_corrected, "
    "confidence_share_corrected_lo, self_alignment_share_corrected_lo",
)  # fmt: skip
LAWS: Final = table_of(
    "laws", ("law", "law"), *ALPHA, *CONSTANT, *POINTS, *R2, BACKTEST, STATUS,
    first="law alpha r2 status, backtest_error, C, n_points {x}_from, r2_lo",
)  # fmt: skip


def _sentence(terms: Sequence[Record], laws: Sequence[Record]) -> str:
    nats = {name: terms[-1][f"{name}_nats"] for name in ("cross_entropy", *TERMS)}
    of = " and ".join(", ".join(f"{law_title(name)} {nats[name]:.3f}" for name in TERMS).rsplit(", ", 1))
    says = f"Cross-entropy of {size_name(terms[-1]['size'])}, {nats['cross_entropy']:.3f} nats, is the sum of {of}"
    alpha = {law["law"]: estimate_in(law, "alpha") for law in laws if law["alpha"] is not None}
    told = [f"of {law_title(law)} is {interval_of(alpha[law])}" for law in ("cross_entropy", TERMS[0]) if law in alpha]
    return f"{says}; over the sizes α {', that '.join(told)}." if told else f"{says}."


DRAWN: Final = table_of(
    "shares", SIZE, *PLACE, ("term", "term"), ("nats", "nats", ".4f"), *interval("share", "share"),
    ("as counted", "share_counted", ".4f"),
)  # fmt: skip


def figures(group: Group, terms: Sequence[Record], fit_ids: Sequence[str]) -> Iterator[Figure]:
    """Draws the share of each term, minus its bias where that is known."""
    rows = [_drawn(row, name) for row in terms for name in TERMS]
    shares = [f"{row['term']} {row['share']:.1%} at {row['size']}" for row in rows[-len(TERMS) :]]
    y = Scale("share", "share of cross-entropy", form=".0%")
    yield drawn(
        DRAWN.of("Shares of cross-entropy", rows, axis=group.axis),
        Chart(scale_of(group.axis), y, (line(), bars("share_lo", "share_hi"), points()), "term"),
        f"Terms of cross-entropy for {group.title}: {'; '.join(shares)}.",
        "CE = error-entropy + self-alignment + confidence, each as a share of CE, minus the bias of counting where "
        "resampled documents show it. Bars: 95 % over documents. A share may be below 0 or above 1.",
        from_fits(fit_ids, group),
    )


def _drawn(row: Record, name: str) -> Record:
    counted, known = row[f"{name}_share"], row[f"{name}_share_corrected"] is not None
    share = {f"share{end}": row[f"{name}_share_corrected{end}"] for end in ("", "_lo", "_hi")}
    share = share if known else {"share": counted, "share_lo": None, "share_hi": None}
    return row | {"term": law_title(name), "nats": row[f"{name}_nats"], "share_counted": counted, **share}


QUESTION = of_each(answer)
