"""Decomposition of cross-entropy by rank (verb entropy): its three terms for each run, their laws and shares.

CE = H(P) + KL(P || Q) - ln(sum S): error-entropy, self-alignment, confidence. Source: arXiv 2510.04067, which
claims that only error-entropy scales.
"""

from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.analyses.entropy.bias import entropy_extrapolated, entropy_jackknife
from rbpx.config.request import Request
from rbpx.groups.evidence import Evidence
from rbpx.groups.fits import Law, doubted, fit_all, fit_points, fit_record, keep_fits
from rbpx.groups.group import Group, Run
from rbpx.groups.points import Points, size_points, weigh_group
from rbpx.groups.token_ranks import document_ranks
from rbpx.laws.bootstrap import estimate
from rbpx.laws.interval import Estimate
from rbpx.laws.names import Method
from rbpx.store.store import Record, Store

Floats = npt.NDArray[np.float64]

TERMS: Final = ("error_entropy", "self_alignment", "confidence")


@dataclass(frozen=True)
class Corrected:
    """Error-entropy of one run without (most of) the bias of counting; nats, None where there are too few documents.

    Attributes:
        jackknife: by leaving out documents; still too small.
        stderr: its standard error over documents.
        extrapolated: from halves and quarters of the documents; too large, or None where nothing can be extrapolated.
    """

    jackknife: float | None = None
    stderr: float | None = None
    extrapolated: float | None = None


@dataclass(frozen=True, eq=False)
class RunTerms:
    """The decomposition of one run.

    Attributes:
        run: which.
        cross_entropy_nats: the whole.
        terms: {term: nats}; they add up to the whole.
        shares: {term: share of the whole as counted (plug-in)}; they add up to 1, and may be below 0 or above 1.
        corrected_shares: the same less the bias that resampled documents show, each inside its 95 % interval over
            documents; without an interval nothing is known of the bias, so all are None.
        corrected: error-entropy without the bias of counting.
    """

    run: Run
    cross_entropy_nats: float
    terms: dict[str, float]
    shares: dict[str, float]
    corrected_shares: dict[str, Estimate]
    corrected: Corrected


@dataclass(frozen=True, eq=False)
class Entropies:
    """The decomposition of one group; runs in order of S.

    Attributes:
        group: the runs.
        runs: their terms.
        laws: of cross-entropy and of each term.
        corrected: the law of the corrected error-entropy; None where a run has none.
        shares: the law of each term over cross-entropy: how its share changes with S.
        resamples: of the documents.
    """

    group: Group
    runs: tuple[RunTerms, ...]
    laws: tuple[Law, ...]
    corrected: Law | None
    shares: tuple[Law, ...]
    resamples: int

    @property
    def all_laws(self) -> tuple[Law, ...]:
        """In the order in which they are printed."""
        return (*self.laws, *(() if self.corrected is None else (self.corrected,)), *self.shares)


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Entropies:
    """Decompose cross-entropy for each run, and fit a law to each term, to its share and to the corrected entropy."""
    evidence = weigh_group(connection, group, request, (1,), TERMS)
    points = {each.law: each for each in size_points(group, evidence, request, (), {"cross_entropy", *TERMS})}
    corrected = [_corrected(connection, group, run) for run in group.runs]
    runs = tuple(
        _terms(run, of, fixed, group.n_resampled)
        for run, of, fixed in zip(group.runs, evidence, corrected, strict=True)
    )
    laws = tuple(
        doubted(group, law) for law in fit_all([points[name] for name in ("cross_entropy", *TERMS)], Method.ols)
    )
    law = None
    jackknives = [fixed.jackknife for fixed in corrected if fixed.jackknife is not None]
    if len(jackknives) == len(runs):
        H_N = np.array(jackknives)
        law = doubted(group, fit_points(_without_bias(points["error_entropy"], H_N), Method.ols))
    shares = tuple(
        doubted(group, fit_points(_share(points[name], points["cross_entropy"]), Method.ols)) for name in TERMS
    )
    return Entropies(group, runs, laws, law, shares, request.resamples)


def _terms(run: Run, of: Evidence, corrected: Corrected, n_documents: int) -> RunTerms:
    whole = float(of.measured["cross_entropy"])
    terms = {name: float(of.measured[name]) for name in TERMS}
    shares = {name: nats / whole for name, nats in terms.items()}
    corrected_shares = {}
    for name in TERMS:
        share_B = of.resampled[name] / of.resampled["cross_entropy"]
        share = estimate(shares[name], share_B, n_documents)
        # Where all scored tokens are of one document, the others change nothing: no interval either.
        varies = np.nanmax(share_B) > np.nanmin(share_B)
        corrected_shares[name] = share if varies and share.ends is not None else Estimate(None, None, None)
    return RunTerms(run, whole, terms, shares, corrected_shares, corrected)


def _corrected(connection: duckdb.DuckDBPyConnection, group: Group, run: Run) -> Corrected:
    counts = document_ranks(connection, run.run_id, group.ties)
    columns = [counts[name].to_numpy() for name in ("doc_id", "rank", "n_tokens")]
    n_documents = np.count_nonzero(np.bincount(columns[0]))
    if n_documents < 2:
        return Corrected()
    entropy, stderr = entropy_jackknife(*columns)
    return Corrected(entropy, stderr, entropy_extrapolated(*columns) if n_documents >= 4 else None)


def _without_bias(points: Points, H_N: Floats) -> Points:
    """The corrected entropies with the spread, not the bias, of the resamples."""
    y_BN = points.y_BN
    if y_BN is not None:
        y_BN = y_BN - np.nanmean(y_BN, axis=0) + H_N
    return replace(points, law="error_entropy_corrected", y_N=H_N, y_BN=y_BN)


def _share(term: Points, whole: Points) -> Points:
    y_BN = None if term.y_BN is None or whole.y_BN is None else term.y_BN / whole.y_BN
    return replace(term, law=f"{term.law}_share", y_N=term.y_N / whole.y_N, y_BN=y_BN)


def keep(store: Store, entropies: Entropies) -> list[Record]:
    """Write the laws to the store; return the terms and the laws, a row each, for programs."""
    rows: list[Record] = [{"kind": "terms", **entropies.group.names(), **_row(each)} for each in entropies.runs]
    laws = [fit_record(entropies.group, law, entropies.resamples) for law in entropies.all_laws]
    return [*rows, *({"kind": "law", **record} for record in keep_fits(store, laws))]


def _row(each: RunTerms) -> Record:
    row: Record = {"run_id": each.run.run_id, **each.run.names(), "cross_entropy_nats": each.cross_entropy_nats}
    for name in TERMS:
        share = each.corrected_shares[name]
        row |= {f"{name}_nats": each.terms[name], f"{name}_share": each.shares[name]}
        row |= {f"{name}_share_corrected": share.value}
        row |= {f"{name}_share_corrected_lo": share.lo, f"{name}_share_corrected_hi": share.hi}
    row |= {"error_entropy_jackknife_nats": each.corrected.jackknife}
    row |= {"error_entropy_jackknife_stderr_nats": each.corrected.stderr}
    return row | {"error_entropy_extrapolated_nats": each.corrected.extrapolated}
