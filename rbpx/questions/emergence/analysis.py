"""Emergence (verb emergence): counts the windows of hits of a group of runs, predicts them, and fits their laws in S.

p_{N,k} = Pr(N consecutive tokens all have rank <= k). Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, estimate
from rbpx.laws.names import MLE, Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.intervals import NO_INTERVALS
from rbpx.laws.power.law import PowerLawFit
from rbpx.laws.predict.verdict import judged, trend_doubts
from rbpx.questions.emergence.correlation import (
    Windows,
    adjacent_correlation,
    autocorrelation,
    beta_binomial_share,
    count_windows,
    effective_tokens,
    streaks,
    window_share,
)
from rbpx.questions.emergence.crossing import Crossing, Extrapolation, joint_crossing, pooled_crossing, windows_crossing
from rbpx.questions.emergence.law import JointFit, fit_joint, fit_windows
from rbpx.questions.emergence.pooled import PooledFit, fit_pooled
from rbpx.runs.documents import text_ranks
from rbpx.runs.fits import keep_fits, of_dependent_documents, of_one_document, record_of
from rbpx.runs.group import Group, Run
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record, Store

DEFAULT_K: Final = (1, 10, 100)
DEFAULT_N: Final = (1, 5, 10, 50, 100)
LEVELS: Final = (0.1, 0.5, 0.9)
LAGS: Final = (1, 10, 100)
_OfAll = TypeVar("_OfAll", PooledFit, JointFit)
AnyFit = PowerLawFit | PooledFit | JointFit
Fit = TypeVar("Fit", bound=AnyFit, covariant=True)
POOLED: Final = "pooled law"
JOINT: Final = "joint law"


@dataclass(frozen=True, eq=False)
class Dependence:
    """How the hits of one run depend on each other, and what that predicts.

    Attributes:
        autocorrelation: correlation of two hits at each of `LAGS`; NaN where no two tokens are so far apart.
        effective_N: number of independent tokens that vary as much as a window of N does.
        corrected_N: share of windows of hits as predicted from mean and autocorrelation of the hits.
        adjacent: correlation of adjacent tokens with its interval over documents; none with a single document.
        n_pairs: pairs of adjacent tokens that are both hits.
        n_pairs_alone: as many as independent tokens would have.
    """

    autocorrelation: tuple[float, ...]
    effective_N: Floats
    corrected_N: Floats
    adjacent: Estimate
    n_pairs: int
    n_pairs_alone: float


@dataclass(frozen=True, eq=False)
class ShownLaw(Generic[Fit]):
    """A law of one window length, or of all.

    Attributes:
        n: the length; None for a law of all.
        fit: its numbers.
        crossings: where it reaches each of `LEVELS`, by window length; over forms outside the sizes, except for the
            joint law, which says what independent tokens would show.
        kind: its name in rows for programs.
    """

    n: int | None
    fit: Fit
    crossings: dict[int, tuple[Crossing, ...]]
    kind: str = "law"

    def params(self) -> Record:
        """What `fits` keeps of it beside the columns; the pooled law has a constant for each window length."""
        fit, crossings = self.fit, {str(n): [one.record() for one in each] for n, each in self.crossings.items()}
        more: Record = {"n": self.n, "crossings": crossings if self.n is None else crossings[str(self.n)]}
        if isinstance(fit, PooledFit):
            constants = {str(n): vars(constant) for n, constant in fit.constants.items()}
            of_all = {name: getattr(fit, name) for name in ("models_sd", "n_left_out", "n_sizes")}
            more = {**of_all, "C": constants, **more}
        elif isinstance(fit, JointFit):
            more |= {"C_lo": fit.constant.lo, "C_hi": fit.constant.hi, "alpha_within": fit.alpha_within}
            more |= {"r2_lnln": fit.r2, "r2_p": fit.r2_p, "n_left_out": fit.n_left_out, "n_sizes": fit.n_sizes}
        return fit.record() | more


@dataclass(frozen=True, eq=False)
class Emergence:
    """Windows at one k; M sizes, N window lengths.

    Attributes:
        k: a hit has at most this rank.
        lengths: the window lengths.
        measured_MN: shares of windows of hits; NaN where no document is so long.
        independent_MN: RBP_k^N, the shares if tokens were independent; NaN where RBP_k is not known.
        dependence: of the hits of each run; empty where there are no tokens to look at.
        laws: one for each window length.
        pooled: the law with one exponent for all lengths and a constant for each.
        joint: the law for all lengths if tokens were independent, C N S^-alpha.
        shares_N: of the largest run, the shares with their intervals over documents; none of imported shares.
        windows_N: of the largest run, how many windows there are; None of imported shares.
    """

    k: int
    lengths: tuple[int, ...]
    measured_MN: Floats
    independent_MN: Floats
    dependence: tuple[Dependence, ...]
    laws: tuple[ShownLaw[PowerLawFit], ...]
    pooled: ShownLaw[PooledFit]
    joint: ShownLaw[JointFit]
    shares_N: tuple[Estimate, ...]
    windows_N: tuple[int, ...] | None

    @property
    def all_laws(self) -> list[ShownLaw[AnyFit]]:
        """The law of each length, then the pooled and the joint one."""
        return [*self.laws, self.pooled, self.joint]


@dataclass(frozen=True, eq=False)
class Emergences:
    """The windows of one group at every requested k."""

    group: Group
    by_k: tuple[Emergence, ...]


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Emergences:
    """Count or read the windows at each k, and fit their laws."""
    if not group.is_measured:
        return Emergences(group, tuple(_imported(group, request)))
    lengths, k_grid = request.n.listed(DEFAULT_N), request.k.grid(group.vocab_size, DEFAULT_K)
    weights_BD = None if group.n_resampled == 1 else group.weights(request)
    counted = [_count(connection, group, run, k_grid, lengths, weights_BD) for run in group.runs]
    by_k = []
    for k, of_k in zip(k_grid, zip(*counted, strict=True), strict=True):
        windows, dependence, rbp = zip(*of_k, strict=True)
        p_MN = np.array([window_share(each) for each in windows])
        totals_MN = np.array([each.total_DN.sum(axis=0) for each in windows])
        p_BMN = None if weights_BD is None else np.stack([window_share(each, weights_BD) for each in windows], axis=1)
        by_k.append(_emergence(group, k, lengths, p_MN, np.array(rbp), totals_MN, p_BMN, dependence))
    return Emergences(group, tuple(by_k))


def _count(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    run: Run,
    k_grid: Sequence[int],
    lengths: Sequence[int],
    weights_BD: Floats | None,
) -> Iterator[tuple[Windows, Dependence, float]]:
    """At each k the windows of one run, the dependence of its hits and their share; reads its tokens once."""
    doc_T, rank_T = text_ranks(connection, run.run_id, group.ties)
    n_scored = np.bincount(doc_T, minlength=group.n_documents)
    for k in k_grid:
        hit_T = rank_T <= k
        found, rbp = streaks(hit_T, doc_T), float(hit_T.mean())
        windows, pairs = (count_windows(n_scored, *found, of) for of in (lengths, [2]))
        rho_L = autocorrelation(np.split(hit_T, np.cumsum(n_scored)[:-1]), max(*lengths, *LAGS))
        at = tuple(float(rho_L[lag - 1]) for lag in LAGS)
        corrected_N = beta_binomial_share(rbp, rho_L, lengths)
        rho_B = None if weights_BD is None else adjacent_correlation(hit_T, n_scored, weights_BD)
        adjacent = _with_interval(at[0], rho_B, group.n_resampled)
        n_pairs = int(pairs.hit_DN.sum()), float(rbp**2 * pairs.total_DN.sum())
        yield windows, Dependence(at, effective_tokens(rho_L, lengths), corrected_N, adjacent, *n_pairs), rbp


def _with_interval(value: float, of_B: Floats | None, n_documents: int) -> Estimate:
    if not np.isfinite(value):
        return NO_ESTIMATE
    return Estimate(value) if of_B is None else estimate(value, of_B, n_documents, Recipe.percentile)


def _imported(group: Group, request: Request) -> Iterator[Emergence]:
    observed_k = sorted({k for run in group.runs for k, n in run.observed if n > 1})
    for k in observed_k if not request.k.by_number else [k for k in request.k.listed() if k in observed_k]:
        observed = sorted({n for run in group.runs for k_, n in run.observed if k_ == k})
        lengths = [n for n in request.n.listed(observed) if n in observed]
        p_MN = np.array([[run.observed.get((k, n), np.nan) for n in lengths] for run in group.runs])
        rbp_M = np.array([run.observed.get((k, 1), np.nan) for run in group.runs])
        yield _emergence(group, k, lengths, p_MN, rbp_M, None, None, [])


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

    def reached(n: int, status: Status, crossing: Callable[[float], Crossing]) -> tuple[Crossing, ...]:
        return tuple(extrapolated[n].of(crossing(level), status) for level in LEVELS)

    laws = []
    for at, n in enumerate(lengths):
        p_BM = None if p_BMN is None else p_BMN[:, :, at]
        fit = judged(of_one_document(group, fit_windows(S, p_MN[:, at], p_BM, n_documents)))
        fit = of_dependent_documents(group, fit)
        laws.append(ShownLaw(n, fit, {n: reached(n, fit.status, partial(windows_crossing, fit))}))
    pooled = fit_pooled(S, lengths, p_MN, windows_MN, p_BMN, n_documents)
    joint = fit_joint(S, lengths, p_MN, p_BMN, n_documents)
    if group.n_resampled == 1:
        pooled, joint = _without_interval(pooled), _without_interval(joint)
    pooled = _of_dependent_documents(group, pooled)
    joint = _judged_joint(joint, pooled)
    by_pooled = {n: reached(n, pooled.status, partial(pooled_crossing, pooled, n)) for n in lengths}
    by_joint = {n: tuple(joint_crossing(joint, n, level) for level in LEVELS) for n in lengths}
    independent_MN = rbp_M[:, None] ** np.array(lengths)
    shown = tuple(laws), ShownLaw(None, pooled, by_pooled, POOLED), ShownLaw(None, joint, by_joint, JOINT)
    shares_N = tuple(
        _with_interval(float(p), None if p_BMN is None else p_BMN[:, -1, at], n_documents)
        for at, p in enumerate(p_MN[-1])
    )
    windows_N = None if windows_MN is None else tuple(map(int, windows_MN[-1]))
    return Emergence(k, tuple(lengths), p_MN, independent_MN, tuple(dependence), *shown, shares_N, windows_N)


def _of_dependent_documents(group: Group, pooled: PooledFit) -> PooledFit:
    """The pooled law, with a status where documents depend on each other more than its interval allows for."""
    if group.documents is None or pooled.found is None or pooled.alpha_lo is None or pooled.alpha_hi is None:
        return pooled
    variance = float(pooled.found.scatter.sequences_PP[-1, -1])
    if not group.documents.leave_too_narrow((pooled.alpha_hi - pooled.alpha_lo) / 2, variance):
        return pooled
    reasons = in_order([*pooled.reasons, Status.dependent_documents])
    return replace(pooled, status=first_of(reasons), reasons=reasons)


def _judged_joint(joint: JointFit, pooled: PooledFit) -> JointFit:
    """The joint law with every doubt: it bends where the pooled law does, or where the constants do not grow as N."""
    if joint.alpha is None:
        return replace(joint, reasons=(joint.status,))
    reasons = [joint.status, *trend_doubts(joint.alpha, joint.alpha_lo, joint.alpha_hi)]
    reasons += [Status.bends] if pooled.bent or pooled.dependent else []
    reasons += [status for status in pooled.reasons if status is Status.dependent_documents]
    return replace(joint, status=first_of(reasons), reasons=in_order(reasons))


def _without_interval(fit: _OfAll) -> _OfAll:
    """The law of a single document, which cannot be resampled, so that there is no interval."""
    if fit.alpha is None:
        return fit
    reasons = (Status.one_document, *([Status.bends] if Status.bends in fit.reasons else []))
    unknown: dict[str, Any] = {"alpha_lo": None, "alpha_hi": None, "ends": NO_INTERVALS, "interval": None}
    return replace(fit, **unknown, status=first_of(reasons), reasons=in_order(reasons))


def keep(store: Store, result: Emergences) -> list[Record]:
    """Write the laws to the store; return the windows and the laws, a row each, for programs."""
    rows: list[Record] = []
    for emergence in result.by_k:
        rows += _window_rows(result.group, emergence)
        for law in emergence.all_laws:
            method, n = (MLE, "pooled") if law.kind == POOLED else (Method.ols, law.n)
            more = {"k": emergence.k, "n": n, "params": law.params()}
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
