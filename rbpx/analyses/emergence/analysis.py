"""Emergence (verb emergence): windows of hits of a group of runs, measured and predicted, and their laws in S.

p_{N,k} = Pr(N consecutive tokens all have rank <= k). Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.analyses.emergence.correlation import autocorrelation, beta_binomial_share, effective_tokens
from rbpx.analyses.emergence.crossing import (
    Crossing,
    joint_crossing,
    line_covariance,
    pooled_crossing,
    windows_crossing,
)
from rbpx.analyses.emergence.extrapolated import Extrapolation
from rbpx.analyses.emergence.hit_windows import Windows, count_windows, streaks, window_share
from rbpx.analyses.emergence.law import JointFit, fit_joint, fit_windows
from rbpx.analyses.emergence.pooled import PooledFit, fit_pooled
from rbpx.config.request import Request
from rbpx.groups.fits import keep_fits, of_dependent_documents, of_one_document, record_of
from rbpx.groups.group import Group, Run
from rbpx.groups.token_ranks import text_ranks
from rbpx.laws.names import MLE, Method
from rbpx.laws.power_fit import LawFit, PowerLawFit
from rbpx.laws.power_intervals import NO_INTERVALS
from rbpx.laws.verdict import judged, trend_doubts
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record, Store

Floats = npt.NDArray[np.float64]

DEFAULT_K: Final = (1, 10, 100)
DEFAULT_N: Final = (1, 5, 10, 50, 100)
LEVELS: Final = (0.1, 0.5, 0.9)
LAGS: Final = (1, 10, 100)
_OfAll = TypeVar("_OfAll", PooledFit, JointFit)
POOLED: Final = "pooled law"
JOINT: Final = "joint law"


@dataclass(frozen=True, eq=False)
class Dependence:
    """How the hits of one run depend on each other, and what that predicts.

    Attributes:
        autocorrelation: correlation of two hits at each of `LAGS`; NaN where no two tokens are so far apart.
        effective_N: number of independent tokens that vary as a window of N does.
        corrected_N: share of windows of hits, from mean and autocorrelation of the hits.
    """

    autocorrelation: tuple[float, ...]
    effective_N: Floats
    corrected_N: Floats


@dataclass(frozen=True, eq=False)
class WindowLaw:
    """A law of windows.

    Attributes:
        n: their length.
        fit: its numbers.
        crossings: where it reaches each of `LEVELS`; outside the sizes, over forms.
    """

    n: int
    fit: PowerLawFit
    crossings: tuple[Crossing, ...]


@dataclass(frozen=True, eq=False)
class ShownLaw:
    """A law of one length, or of all.

    Attributes:
        n: the length; None for a law of all.
        fit: its numbers.
        params: what else `fits` keeps of it.
        crossings: as of `WindowLaw`; empty for a law of all lengths.
        kind: as rows for programs name it.
        r2_p: of the joint law, R2 of the shares themselves.
    """

    n: int | None
    fit: LawFit
    params: Record
    crossings: tuple[Crossing, ...] = ()
    kind: str = "law"
    r2_p: float | None = None


@dataclass(frozen=True, eq=False)
class Emergence:
    """Windows at one k; M sizes, N window lengths.

    Attributes:
        lengths: the window lengths.
        measured_MN: shares of windows of hits; NaN where no document is so long.
        independent_MN: RBP_k^N, what they were if tokens were independent; NaN where RBP_k is not known.
        dependence: of each run; empty where there are no tokens to look at.
        laws: one a window length.
        pooled: one exponent for all of them, and a constant for each.
        pooled_crossings: where the pooled law reaches each of `LEVELS`, by window length; outside the sizes over forms.
        joint: the law for all of them if tokens were independent, C N S^-alpha.
        joint_crossings: where the joint law does, by itself: it is what independent tokens would show.
    """

    k: int
    lengths: tuple[int, ...]
    measured_MN: Floats
    independent_MN: Floats
    dependence: tuple[Dependence, ...]
    laws: tuple[WindowLaw, ...]
    pooled: PooledFit
    pooled_crossings: dict[int, tuple[Crossing, ...]]
    joint: JointFit
    joint_crossings: dict[int, tuple[Crossing, ...]]

    @property
    def all_laws(self) -> list[ShownLaw]:
        """The law of each length, then the pooled and the joint one, each with all that `fits` keeps of it."""
        own = [{"n": law.n, "crossings": [_plain(crossing) for crossing in law.crossings]} for law in self.laws]
        laws = [
            ShownLaw(law.n, law.fit, law.fit.record() | of, law.crossings)
            for law, of in zip(self.laws, own, strict=True)
        ]
        return [*laws, _pooled(self), _joint(self)]


@dataclass(frozen=True, eq=False)
class Emergences:
    """The windows of one group at every requested k."""

    group: Group
    by_k: tuple[Emergence, ...]


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Emergences:
    """Count or read the windows at each k, and fit their laws."""
    if not group.is_measured:
        return Emergences(group, tuple(_imported(group, request)))
    lengths = request.n.listed(DEFAULT_N)
    k_grid = request.k.grid(min(run.vocab_size or 0 for run in group.runs), DEFAULT_K)
    weights_BD = group.weights(request)
    counted = [_count(connection, group, run, k_grid, lengths) for run in group.runs]
    by_k = [_measured(group, k, lengths, weights_BD, [of_run[at] for of_run in counted]) for at, k in enumerate(k_grid)]
    return Emergences(group, tuple(by_k))


_Counted = tuple[Windows, Dependence, float]


def _measured(group: Group, k: int, lengths: Sequence[int], weights_BD: Any, counted: Sequence[_Counted]) -> Emergence:
    shares, totals, resampled, dependence, rbp = [], [], [], [], []
    for windows, depends, share in counted:
        totals.append(windows.total_DN.sum(axis=0))
        shares.append(window_share(windows))
        resampled.append(window_share(windows, weights_BD))
        dependence.append(depends)
        rbp.append(share)
    p_BMN = None if group.n_resampled == 1 else np.stack(resampled, axis=1)
    return _emergence(group, k, lengths, np.array(shares), np.array(rbp), np.array(totals), p_BMN, dependence)


def _count(
    connection: duckdb.DuckDBPyConnection, group: Group, run: Run, k_grid: Sequence[int], lengths: Sequence[int]
) -> list[_Counted]:
    """The windows of one run at each k; its tokens are read once."""
    doc_T, rank_T = text_ranks(connection, run.run_id, group.ties)
    n_scored = np.bincount(doc_T, minlength=group.n_documents)
    return [_count_hits(rank_T <= k, doc_T, n_scored, lengths) for k in k_grid]


def _count_hits(
    hit_T: npt.NDArray[np.bool_], doc_T: npt.NDArray[np.int64], n_scored: npt.NDArray[np.int64], lengths: Sequence[int]
) -> _Counted:
    windows = count_windows(n_scored, *streaks(hit_T, doc_T), lengths)
    rbp = float(hit_T.mean())
    rho_L = autocorrelation(np.split(hit_T, np.cumsum(n_scored)[:-1]), max(*lengths, *LAGS))
    at = tuple(float(rho_L[lag - 1]) for lag in LAGS)
    return windows, Dependence(at, effective_tokens(rho_L, lengths), beta_binomial_share(rbp, rho_L, lengths)), rbp


def _imported(group: Group, request: Request) -> list[Emergence]:
    observed_k = sorted({k for run in group.runs for k, n in run.observed if n > 1})
    k_grid = observed_k if not request.k.by_number else [k for k in request.k.listed() if k in observed_k]
    by_k = []
    for k in k_grid:
        observed = sorted({n for run in group.runs for k_, n in run.observed if k_ == k})
        lengths = [n for n in request.n.listed(observed) if n in observed]
        p_MN = np.array([[run.observed.get((k, n), np.nan) for n in lengths] for run in group.runs])
        rbp_M = np.array([run.observed.get((k, 1), np.nan) for run in group.runs])
        by_k.append(_emergence(group, k, lengths, p_MN, rbp_M, None, None, []))
    return by_k


def _emergence(
    group: Group,
    k: int,
    lengths: Sequence[int],
    p_MN: Floats,
    rbp_M: Floats,
    windows_MN: npt.NDArray[np.int64] | None,
    p_BMN: Floats | None,
    dependence: Sequence[Dependence],
) -> Emergence:
    S, n_documents = [run.x for run in group.runs if run.x is not None], group.n_resampled
    extrapolated = {n: Extrapolation(S, p_MN[:, at], LEVELS) for at, n in enumerate(lengths)}
    laws = []
    for at, n in enumerate(lengths):
        p_BM = None if p_BMN is None else p_BMN[:, :, at]
        fit = judged(of_one_document(group, fit_windows(S, p_MN[:, at], p_BM, n_documents)))
        fit = of_dependent_documents(group, fit)
        covariance = None if p_BM is None else line_covariance(S, p_BM, n_documents)
        alone = [windows_crossing(fit, level, covariance) for level in LEVELS]
        laws.append(WindowLaw(n, fit, tuple(extrapolated[n].of(crossing, fit.status) for crossing in alone)))
    pooled = fit_pooled(S, lengths, p_MN, windows_MN, p_BMN, n_documents)
    joint = fit_joint(S, lengths, p_MN, p_BMN, n_documents)
    if group.n_resampled == 1:
        pooled = pooled if pooled.alpha is None else _without_interval(pooled)
        joint = joint if joint.alpha is None else _without_interval(joint)
    pooled = _of_dependent_documents(group, pooled)
    joint = _judged_joint(joint, pooled)
    pooled_crossings = {
        n: tuple(extrapolated[n].of(pooled_crossing(pooled, n, level), pooled.status) for level in LEVELS)
        for n in lengths
    }
    documents = joint.document_22 is not None
    crossings = {n: tuple(joint_crossing(joint, n, q, documents=documents) for q in LEVELS) for n in lengths}
    independent_MN = rbp_M[:, None] ** np.array(lengths)
    more = (tuple(laws), pooled, pooled_crossings, joint, crossings)
    return Emergence(k, tuple(lengths), p_MN, independent_MN, tuple(dependence), *more)


def _of_dependent_documents(group: Group, pooled: PooledFit) -> PooledFit:
    """The pooled law with a status where its documents depend on each other more than its interval allows for."""
    if group.documents is None or pooled.found is None or pooled.alpha_lo is None or pooled.alpha_hi is None:
        return pooled
    variance = float(pooled.found.scatter.sequences_PP[-1, -1])
    if not group.documents.leave_too_narrow((pooled.alpha_hi - pooled.alpha_lo) / 2, variance):
        return pooled
    reasons = in_order([*pooled.reasons, Status.dependent_documents])
    return replace(pooled, status=first_of(reasons), reasons=reasons)


def _judged_joint(joint: JointFit, pooled: PooledFit) -> JointFit:
    """The joint law bends where its exponent does, or where its constants do not grow as N."""
    if joint.alpha is None:
        return replace(joint, reasons=(joint.status,))
    reasons = [joint.status, *trend_doubts(joint.alpha, joint.alpha_lo, joint.alpha_hi)]
    reasons += [Status.bends] if pooled.bent or pooled.dependent else []
    reasons += [status for status in pooled.reasons if status is Status.dependent_documents]
    return replace(joint, status=first_of(reasons), reasons=in_order(reasons))


def _without_interval(fit: _OfAll) -> _OfAll:
    """A law whose interval is unknown, because one document cannot be resampled."""
    reasons = (Status.one_document, *([Status.bends] if Status.bends in (fit.reasons or ()) else []))
    unknown: dict[str, Any] = {"alpha_lo": None, "alpha_hi": None, "ends": NO_INTERVALS, "interval": None}
    return replace(fit, **unknown, status=first_of(reasons), reasons=in_order(reasons))


def keep(store: Store, result: Emergences) -> list[Record]:
    """Write the laws to the store; return the windows and the laws, a row each, for programs."""
    rows: list[Record] = []
    for emergence in result.by_k:
        rows += _window_rows(result.group, emergence)
        for law in emergence.all_laws:
            method, n = (MLE, "pooled") if law.kind == POOLED else (Method.ols, law.n)
            more = {"k": emergence.k, "n": n, "params": law.params}
            records = [record_of(result.group, "emergence", law.fit, result.group.run_ids, method, **more)]
            rows += [{"kind": law.kind, "n": law.n, **record} for record in keep_fits(store, records)]
    return rows


def _window_rows(group: Group, emergence: Emergence) -> list[Record]:
    rows = []
    for m, run in enumerate(group.runs):
        for at, n in enumerate(emergence.lengths):
            row: Record = {"kind": "windows", "n": n, **group.names(), **run.names(), "k": emergence.k}
            row |= {"p": float(emergence.measured_MN[m, at]), "p_independent": float(emergence.independent_MN[m, at])}
            if emergence.dependence:
                depends = emergence.dependence[m]
                row |= {"p_corrected": float(depends.corrected_N[at]), "n_effective": float(depends.effective_N[at])}
                row |= {f"autocorrelation_{lag}": rho for lag, rho in zip(LAGS, depends.autocorrelation, strict=True)}
            rows.append(row)
    return rows


def _pooled(emergence: "Emergence") -> ShownLaw:
    """The pooled law has a constant for each window length, so C is empty."""
    pooled = emergence.pooled
    more: Record = {name: getattr(pooled, name) for name in ("models_sd", "n_left_out", "n_sizes")}
    more |= {"C": {str(n): vars(constant) for n, constant in pooled.constants.items()}, "n": None}
    more |= {"crossings": {str(n): [_plain(c) for c in each] for n, each in emergence.pooled_crossings.items()}}
    return ShownLaw(None, pooled, pooled.record() | more, kind=POOLED)


def _joint(emergence: "Emergence") -> ShownLaw:
    """What the joint law has beyond the columns of any other goes into params."""
    joint = emergence.joint
    crossings = {str(n): [_plain(c) for c in each] for n, each in emergence.joint_crossings.items()}
    more: Record = {"n": None, "crossings": crossings, "C_lo": joint.constant.lo, "C_hi": joint.constant.hi}
    more |= {"alpha_within": joint.alpha_within, "r2_lnln": joint.r2}
    more |= {name: getattr(joint, name) for name in ("r2_p", "n_left_out", "n_sizes")}
    return ShownLaw(None, joint, joint.record() | more, kind=JOINT, r2_p=joint.r2_p)


def _plain(crossing: Crossing) -> Record:
    sizes = {"S": crossing.S, "lo": crossing.lo, "hi": crossing.hi, "method": crossing.method}
    return {**vars(crossing), **sizes, "law": None if crossing.law is None else _plain(crossing.law)}
