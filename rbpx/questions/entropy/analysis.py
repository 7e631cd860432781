"""Decomposition of cross-entropy by rank (verb entropy): computes its terms for each run, their shares and their laws.

CE = H(P) + KL(P || Q) - ln(sum S): error-entropy, self-alignment, confidence. Source: arXiv 2510.04067, which
claims that only error-entropy scales.
"""

from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name, estimate
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.questions.entropy.bias import entropy_extrapolated, entropy_jackknife
from rbpx.runs.documents import document_ranks
from rbpx.runs.fits import Law, doubted, fit_all, fit_points, fit_record, keep_fits
from rbpx.runs.group import Group, Run
from rbpx.runs.points.sizes import Evidence, Points, size_points, weigh_group
from rbpx.store.store import Record, Store

TERMS: Final = ("error_entropy", "self_alignment", "confidence")


@dataclass(frozen=True, eq=False)
class RunTerms:
    """The decomposition of one run.

    Attributes:
        run: the run.
        cross_entropy_nats: its cross-entropy.
        terms: nats of each term; they add up to cross-entropy.
        shares: share of each term in cross-entropy as counted (plug-in); they add up to 1, and may be below 0 or above
            1.
        corrected_shares: the same minus the bias that resampled documents show, with 95 % intervals over documents; all
            None where there is no interval, as nothing is known of the bias then.
        jackknife: error-entropy without most of the bias of counting, by leaving out documents; still too small. It and
            the next two are None where there are too few documents.
        stderr: standard error of `jackknife` over documents.
        extrapolated: error-entropy extrapolated from halves and quarters of the documents; too large, or None where
            nothing can be extrapolated.
    """

    run: Run
    cross_entropy_nats: float
    terms: dict[str, float]
    shares: dict[str, float]
    corrected_shares: dict[str, Estimate]
    jackknife: float | None
    stderr: float | None
    extrapolated: float | None


@dataclass(frozen=True, eq=False)
class Entropies:
    """The decomposition of one group; runs in order of S.

    Attributes:
        group: the runs.
        runs: their terms.
        laws: of cross-entropy and of each term, of the corrected error-entropy unless a run has none, and of the share
            of each term.
        resamples: number of resamples of the documents.
    """

    group: Group
    runs: tuple[RunTerms, ...]
    laws: tuple[Law, ...]
    resamples: int


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Entropies:
    """Decompose cross-entropy for each run, and fit a law to each term, to its share and to the corrected entropy."""
    evidence = weigh_group(connection, group, request, (1,), TERMS)
    points = {each.law: each for each in size_points(group, evidence, request, (), {"cross_entropy", *TERMS})}
    runs = tuple(_terms(connection, group, run, of) for run, of in zip(group.runs, evidence, strict=True))
    laws = fit_all([points[name] for name in ("cross_entropy", *TERMS)], Method.ols)
    H_N = np.array([run.jackknife for run in runs], np.float64)  # None is NaN
    series = [] if np.isnan(H_N).any() else [_without_bias(points["error_entropy"], H_N)]
    series += [replace(points[name].over(points["cross_entropy"]), law=f"{name}_share") for name in TERMS]
    laws += [fit_points(each, Method.ols) for each in series]
    return Entropies(group, runs, tuple(doubted(group, law) for law in laws), request.resamples)


def _terms(connection: duckdb.DuckDBPyConnection, group: Group, run: Run, of: Evidence) -> RunTerms:
    whole = float(of.measured["cross_entropy"])
    terms = {name: float(of.measured[name]) for name in TERMS}
    shares = {name: nats / whole for name, nats in terms.items()}
    corrected_shares = {}
    for name in TERMS:
        share_B = of.resampled[name] / of.resampled["cross_entropy"]
        share = estimate(shares[name], share_B, group.n_resampled)
        # Where a single document has all scored tokens, resamples do not differ: there is no interval either.
        varies = np.nanmax(share_B) > np.nanmin(share_B)
        corrected_shares[name] = share if varies and share.ends is not None else NO_ESTIMATE
    counts = document_ranks(connection, run.run_id, group.ties)
    columns = [counts[name].to_numpy() for name in ("doc_id", "rank", "n_tokens")]
    n_documents = np.count_nonzero(np.bincount(columns[0]))
    entropy, stderr = entropy_jackknife(*columns) if n_documents >= 2 else (None, None)
    extrapolated = entropy_extrapolated(*columns) if n_documents >= 4 else None
    return RunTerms(run, whole, terms, shares, corrected_shares, entropy, stderr, extrapolated)


def _without_bias(points: Points, H_N: Floats) -> Points:
    """The points of the corrected entropy: resamples keep their spread, about the corrected values."""
    y_BN = None if points.y_BN is None else points.y_BN - np.nanmean(points.y_BN, axis=0) + H_N
    return replace(points, law="error_entropy_corrected", y_N=H_N, y_BN=y_BN)


def keep(store: Store, entropies: Entropies) -> list[Record]:
    """Write the laws to the store; return a row for the terms of each run and for each law."""
    rows: list[Record] = []
    for each in entropies.runs:
        row: Record = {"kind": "terms", **entropies.group.names(), "run_id": each.run.run_id, **each.run.names()}
        row |= {"cross_entropy_nats": each.cross_entropy_nats}
        for name in TERMS:
            row |= {f"{name}_nats": each.terms[name], f"{name}_share": each.shares[name]}
            row |= by_name(**{f"{name}_share_corrected": each.corrected_shares[name]})
        row |= {"error_entropy_jackknife_nats": each.jackknife, "error_entropy_jackknife_stderr_nats": each.stderr}
        rows.append(row | {"error_entropy_extrapolated_nats": each.extrapolated})
    laws = [fit_record(entropies.group, law, entropies.resamples) for law in entropies.laws]
    return [*rows, *({"kind": "law", **record} for record in keep_fits(store, laws))]
