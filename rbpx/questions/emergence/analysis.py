"""Counts the windows of hits of a group of runs, predicts their shares, and fits laws in S to them.

p_{N,k} = Pr(N consecutive tokens all have rank <= k). Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import Recipe, by_name, estimate
from rbpx.laws.names import MLE, Method
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.prediction.prediction import Crossing, find_crossings
from rbpx.laws.prediction.verdict import trend_warnings
from rbpx.questions.emergence.laws import (
    WindowsLaw,
    average_crossing,
    crossing,
    fit_joint,
    fit_windows,
    outside,
    windows_law,
)
from rbpx.questions.emergence.pooled import fit_pooled
from rbpx.questions.emergence.windows import Integers, autocorrelation, count_windows, dependent_hits, window_share
from rbpx.runs.documents import text_ranks
from rbpx.runs.fits import record_of
from rbpx.runs.group import Group
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
DEFAULT_N: Final = (1, 5, 10, 50, 100)
SHARES: Final = (0.1, 0.5, 0.9)
LAGS: Final = (1, 10, 100)
POOLED: Final = "pooled law"
JOINT: Final = "joint law"


@dataclass(frozen=True, eq=False)
class Emergence:
    """Windows at one k.

    Attributes:
        k: largest rank of a hit.
        windows: for each run a row for each window length: p, the share of windows of hits, with its interval over
            documents and the number of windows, NaN where no document is so long; RBP_k^N, the share if tokens were
            independent; and where tokens are known, the share predicted by mean and autocorrelation of the hits, the
            number of independent tokens that vary as much, and the correlation of two hits at each of `LAGS`, NaN where
            no two tokens are so far apart.
        fits: the law of each window length.
        laws: their rows, then the law with one exponent and a constant for each length (pooled), and that with constant
            C N, as if tokens were independent (joint). Each has the sizes at which it reaches `SHARES`, by window
            length; outside the sizes averaged over forms, except for the joint law.
    """

    k: int
    windows: list[list[Record]]
    fits: list[PowerLaw]
    laws: list[Record]


def windows_of(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Iterator[Emergence]:
    """Counts or reads the windows at each k, and fits their laws."""
    if not group.is_measured:
        yield from _imported(group, request)
        return
    lengths, k_grid = request.n.listed(DEFAULT_N), request.k.grid(group.vocab_size, DEFAULT_K)
    weights_BD = group.weights(request)[: 0 if group.n_resampled == 1 else None]
    tokens = (text_ranks(connection, run.run_id, group.ties) for run in group.runs)
    counted = [[_counted(group.n_documents, *of_run, k, lengths) for k in k_grid] for of_run in tokens]
    for k, of_k in zip(k_grid, zip(*counted, strict=True), strict=True):
        windows, predicted = zip(*of_k, strict=True)
        p_MN = np.array([window_share(hit_DN, total_DN) for hit_DN, total_DN in windows])
        p_BMN = np.stack([window_share(hit_DN, total_DN, weights_BD) for hit_DN, total_DN in windows], axis=1)
        total_MN = np.array([total_DN.sum(axis=0) for _, total_DN in windows])
        yield _emergence(group, k, lengths, p_MN, predicted, total_MN, p_BMN)


def _counted(
    n_documents: int, doc_T: Integers, rank_T: Floats, k: int, lengths: Sequence[int]
) -> tuple[tuple[Floats, Floats], list[Record]]:
    n_D, hit_T = np.bincount(doc_T, minlength=n_documents), rank_T <= k
    rho_L, rbp = autocorrelation(hit_T, n_D, max(*lengths, *LAGS)), float(hit_T.mean())
    at = {f"autocorrelation_{lag}": float(rho_L[lag - 1]) for lag in LAGS}
    rows = []
    for N in lengths:
        p, n_effective = dependent_hits(rbp, rho_L, N)
        rows.append({"p_independent": rbp**N, "p_corrected": p, "n_effective": n_effective, **at})
    return count_windows(hit_T, doc_T, n_D, lengths), rows


def _imported(group: Group, request: Request) -> Iterator[Emergence]:
    observed_k = sorted({k for run in group.runs for k, n in run.observed if n > 1})
    for k in observed_k if not request.k.by_number else [k for k in request.k.listed() if k in observed_k]:
        observed = sorted({n for run in group.runs for k_, n in run.observed if k_ == k})
        lengths = [n for n in request.n.listed(observed) if n in observed]
        p_MN = np.array([[run.observed.get((k, n), np.nan) for n in lengths] for run in group.runs])
        alone = [[{"p_independent": run.observed.get((k, 1), np.nan) ** n} for n in lengths] for run in group.runs]
        yield _emergence(group, k, lengths, p_MN, alone)


def _emergence(
    group: Group,
    k: int,
    lengths: Sequence[int],
    p_MN: Floats,
    predicted: Sequence[Sequence[Record]],
    windows_MN: Floats | None = None,
    p_BMN: Floats | None = None,
) -> Emergence:
    S, effective = np.array([run.x for run in group.runs if run.x is not None]), group.n_effective

    @cache
    def reached(at: int) -> list[Crossing] | None:
        return find_crossings(S, neg_ln(p_MN[:, at]), [-np.log(level) for level in SHARES])

    def crossings(law: WindowsLaw, at: int, extrapolates: bool = True) -> list[Record]:
        found = [crossing(law, lengths[at], level) for level in SHARES]
        far = [extrapolates and outside(each["ln_S"], law.fit.S) > 0 for each in found]
        over = reached(at) if any(far) else None
        each_of = zip(found, far, over or (), strict=False)
        return [average_crossing(each, law, of) if is_far else each for each, is_far, of in each_of] or found

    fits, laws = list[PowerLaw](), list[Record]()
    for at, n in enumerate(lengths):
        fit = fit_windows(S, p_MN[:, at], None if p_BMN is None else p_BMN[:, :, at], effective)
        law = _doubted(group, windows_law(fit, n))
        fits.append(replace(fit, status=law.fit.status))
        laws.append(_row(group, k, "law", n, law, crossings(law, at)))
    pooled = _doubted(group, fit_pooled(S, lengths, p_MN, windows_MN, p_BMN, effective))
    joint, departs = fit_joint(S, lengths, p_MN, p_BMN, effective), pooled.params.get("bent")
    departs = departs or pooled.params.get("dependent")
    joint = _doubted(group, joint, [Status.bends] if departs else [])
    by_pooled, by_joint = (
        {str(n): crossings(law, at, law is pooled) for at, n in enumerate(lengths)} for law in (pooled, joint)
    )
    laws += [_row(group, k, POOLED, None, pooled, by_pooled), _row(group, k, JOINT, None, joint, by_joint)]
    windows = [[dict[str, Any]() for _ in lengths] for _ in group.runs]
    for m, run in enumerate(group.runs):
        for at, n in enumerate(lengths):
            of_B = np.empty(0) if p_BMN is None else p_BMN[:, m, at]
            p = by_name(p=estimate(float(p_MN[m, at]), of_B, effective, Recipe.percentile))
            n_windows = None if windows_MN is None else int(windows_MN[m, at])
            of_run = {"kind": "windows", "n": n, **group.names(), **run.names(), "k": k}
            windows[m][at] = {**of_run, **p, "n_windows": n_windows, **predicted[m][at]}
    return Emergence(k, windows, fits, laws)


def _doubted(group: Group, law: WindowsLaw, more: Sequence[Status] = ()) -> WindowsLaw:
    alpha, reasons = law.fit.alpha, [law.fit.status, *law.reasons]
    if alpha.value is not None:
        reasons += [*more, *trend_warnings(alpha.value, alpha.lo, alpha.hi)]
        reasons += [Status.one_document] if group.n_resampled == 1 else []
        if group.documents is not None and alpha.ends is not None and law.text_variance is not None:
            narrow = group.documents.leave_too_narrow((alpha.ends[1] - alpha.ends[0]) / 2, law.text_variance)
            reasons += [Status.dependent_documents] if narrow else []
    status = first_of(reasons)
    return replace(law, fit=replace(law.fit, status=status), reasons=in_order(reasons))


def _row(group: Group, k: int, kind: str, n: int | None, law: WindowsLaw, crossings: Any) -> Record:
    params = law.params | {"reasons": [reason.value for reason in law.reasons], "n": n, "crossings": crossings}
    method, of = (MLE, "pooled") if kind == POOLED else (Method.ols, n)
    return {
        "kind": kind,
        "n": n,
        **record_of(group, "emergence", law.fit, group.run_ids, method, k=k, n=of, params=params),
    }
