"""Counts the windows of hits of a group of runs, predicts them, and fits their laws in S.

p_{N,k} = Pr(N consecutive tokens all have rank <= k). Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.names import MLE, Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.prediction.verdict import judged, trend_doubts
from rbpx.questions.emergence.correlation import (
    Integers,
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
from rbpx.runs.fits import of_dependent_documents, of_one_document, record_of
from rbpx.runs.group import Group
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
DEFAULT_N: Final = (1, 5, 10, 50, 100)
LEVELS: Final = (0.1, 0.5, 0.9)
LAGS: Final = (1, 10, 100)
_OfAll = TypeVar("_OfAll", PooledFit, JointFit)
AnyFit = PowerLaw | PooledFit | JointFit
Fit = TypeVar("Fit", bound=AnyFit, covariant=True)
POOLED: Final = "pooled law"
JOINT: Final = "joint law"


class Hits(NamedTuple):
    """The hits of one run: its windows, how they depend on each other, and what that predicts.

    Attributes:
        windows: how many there are of each length, and how many are of hits.
        share: RBP_k.
        rows: for each length the share of windows of hits as predicted from mean and autocorrelation of the hits, the
            number of independent tokens that vary as much as such a window, and the correlation of two hits at each of
            `LAGS`, NaN where no two tokens are so far apart.
        adjacent: correlation of adjacent tokens with its interval over documents; none with a single document.
        n_pairs: pairs of adjacent tokens that are both hits.
        n_pairs_alone: as many as independent tokens would have.
    """

    windows: Windows
    share: float
    rows: list[Record]
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

    def row(self, group: Group, k: int) -> Record:
        """Its row of `fits`, with its kind and n."""
        crossings: Any = {str(n): [one.record() for one in each] for n, each in self.crossings.items()}
        params = self.fit.record() | {"n": self.n, "crossings": crossings.get(str(self.n), crossings)}
        method, n = (MLE, "pooled") if self.kind == POOLED else (Method.ols, self.n)
        record = record_of(group, "emergence", self.fit, group.run_ids, method, k=k, n=n, params=params)
        return {"kind": self.kind, "n": self.n, **record}


@dataclass(frozen=True, eq=False)
class Emergence:
    """Windows at one k.

    Attributes:
        k: a hit has at most this rank.
        by_run: for each run a row for each window length: p, the share of windows of hits, NaN where no document is so
            long; RBP_k^N, the share if tokens were independent, NaN where RBP_k is not known; and what is known of the
            dependence of hits where there are tokens.
        laws: one for each window length.
        pooled: the law with one exponent for all lengths and a constant for each.
        joint: the law for all lengths if tokens were independent, C N S^-alpha.
        shares_N: of the largest run, the shares with their intervals over documents; none of imported shares.
        hits: of the largest run; None of imported shares.
    """

    k: int
    by_run: list[list[Record]]
    laws: tuple[ShownLaw[PowerLaw], ...]
    pooled: ShownLaw[PooledFit]
    joint: ShownLaw[JointFit]
    shares_N: list[Estimate]
    hits: Hits | None

    @property
    def all_laws(self) -> list[ShownLaw[AnyFit]]:
        """The law of each length, then the pooled and the joint one."""
        return [*self.laws, self.pooled, self.joint]


def windows_of(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Iterator[Emergence]:
    """Count or read the windows at each k, and fit their laws."""
    if not group.is_measured:
        yield from _imported(group, request)
        return
    lengths, k_grid = request.n.listed(DEFAULT_N), request.k.grid(group.vocab_size, DEFAULT_K)
    weights_BD = None if group.n_resampled == 1 else group.weights(request)
    tokens = (text_ranks(connection, run.run_id, group.ties) for run in group.runs)
    hits = [[_hits(group, *of_run, k, lengths, weights_BD) for k in k_grid] for of_run in tokens]
    for k, of_k in zip(k_grid, zip(*hits, strict=True), strict=True):
        windows = [each.windows for each in of_k]
        p_BMN = None if weights_BD is None else np.stack([window_share(each, weights_BD) for each in windows], axis=1)
        yield _emergence(group, k, lengths, np.array([*map(window_share, windows)]), p_BMN, of_k)


def _hits(
    group: Group, doc_T: Integers, rank_T: Floats, k: int, lengths: Sequence[int], weights_BD: Floats | None
) -> Hits:
    n_scored, hit_T = np.bincount(doc_T, minlength=group.n_documents), rank_T <= k
    found, rbp = streaks(hit_T, doc_T), float(hit_T.mean())
    windows, pairs = (count_windows(n_scored, *found, of) for of in (lengths, [2]))
    rho_L = autocorrelation(np.split(hit_T, np.cumsum(n_scored)[:-1]), max(*lengths, *LAGS))
    at = {f"autocorrelation_{lag}": float(rho_L[lag - 1]) for lag in LAGS}
    predicted = zip(beta_binomial_share(rbp, rho_L, lengths), effective_tokens(rho_L, lengths), strict=True)
    rows = [{"p_corrected": float(p), "n_effective": float(n), **at} for p, n in predicted]
    rho_B = None if weights_BD is None else adjacent_correlation(hit_T, n_scored, weights_BD)
    adjacent = _with_interval(float(rho_L[0]), rho_B, group.n_resampled)
    return Hits(windows, rbp, rows, adjacent, int(pairs.hit_DN.sum()), float(rbp**2 * pairs.total_DN.sum()))


def _with_interval(value: float, of_B: Floats | None, n_documents: int) -> Estimate:
    return estimate(value, np.empty(0) if of_B is None else of_B, n_documents, Recipe.percentile)


def _imported(group: Group, request: Request) -> Iterator[Emergence]:
    observed_k = sorted({k for run in group.runs for k, n in run.observed if n > 1})
    for k in observed_k if not request.k.by_number else [k for k in request.k.listed() if k in observed_k]:
        observed = sorted({n for run in group.runs for k_, n in run.observed if k_ == k})
        lengths = [n for n in request.n.listed(observed) if n in observed]
        p_MN = np.array([[run.observed.get((k, n), np.nan) for n in lengths] for run in group.runs])
        yield _emergence(group, k, lengths, p_MN)


def _emergence(
    group: Group, k: int, lengths: Sequence[int], p_MN: Floats, p_BMN: Floats | None = None, hits: Sequence[Hits] = ()
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
        laws.append(ShownLaw(n, fit, {n: reached(n, first_of([fit.status]), partial(windows_crossing, fit))}))
    windows_MN = np.array([each.windows.total_DN.sum(axis=0) for each in hits]) if hits else None
    pooled = fit_pooled(S, lengths, p_MN, windows_MN, p_BMN, n_documents)
    joint = fit_joint(S, lengths, p_MN, p_BMN, n_documents)
    if group.n_resampled == 1:
        pooled, joint = _without_interval(pooled), _without_interval(joint)
    pooled = _of_dependent_documents(group, pooled)
    joint = _judged_joint(joint, pooled)
    by_pooled = {n: reached(n, pooled.status, partial(pooled_crossing, pooled, n)) for n in lengths}
    by_joint = {n: tuple(joint_crossing(joint, n, level) for level in LEVELS) for n in lengths}
    rbp_M = np.array([each.share for each in hits] or [run.observed.get((k, 1), np.nan) for run in group.runs])
    by_run = [
        [
            {"kind": "windows", "n": n, **group.names(), **run.names(), "k": k, "p": float(p_MN[m, at])}
            | {"p_independent": float(rbp_M[m] ** n), **(hits[m].rows[at] if hits else {})}
            for at, n in enumerate(lengths)
        ]
        for m, run in enumerate(group.runs)
    ]
    shares_N = [
        _with_interval(float(p), None if p_BMN is None else p_BMN[:, -1, at], n_documents)
        for at, p in enumerate(p_MN[-1])
    ]
    shown = tuple(laws), ShownLaw(None, pooled, by_pooled, POOLED), ShownLaw(None, joint, by_joint, JOINT)
    return Emergence(k, by_run, *shown, shares_N, hits[-1] if hits else None)


def _of_dependent_documents(group: Group, pooled: PooledFit) -> PooledFit:
    """The pooled law, with a status where documents depend on each other more than its interval allows for."""
    if group.documents is None or pooled.found is None or pooled.alpha.lo is None or pooled.alpha.hi is None:
        return pooled
    variance = float(pooled.found.scatter.sequences_PP[-1, -1])
    if not group.documents.leave_too_narrow((pooled.alpha.hi - pooled.alpha.lo) / 2, variance):
        return pooled
    reasons = in_order([*pooled.reasons, Status.dependent_documents])
    return replace(pooled, status=first_of(reasons), reasons=reasons)


def _judged_joint(joint: JointFit, pooled: PooledFit) -> JointFit:
    """The joint law with every doubt: it bends where the pooled law does, or where the constants do not grow as N."""
    if joint.alpha.value is None:
        return replace(joint, reasons=in_order([joint.status]))
    reasons = [joint.status, *trend_doubts(joint.alpha.value, joint.alpha.lo, joint.alpha.hi)]
    reasons += [Status.bends] if pooled.bent or pooled.dependent else []
    reasons += [status for status in pooled.reasons if status is Status.dependent_documents]
    return replace(joint, status=first_of(reasons), reasons=in_order(reasons))


def _without_interval(fit: _OfAll) -> _OfAll:
    """The law of a single document, which cannot be resampled, so that there is no interval."""
    if fit.alpha.value is None:
        return fit
    reasons = (Status.one_document, *([Status.bends] if Status.bends in fit.reasons else []))
    alpha, C = replace(fit.alpha, lo=None, hi=None), Estimate(fit.C.value)
    return replace(fit, alpha=alpha, C=C, interval=None, status=first_of(reasons), reasons=in_order(reasons))
