"""Counts the windows of hits of a group of runs, predicts their shares, and fits laws in S to them.

p_{N,k} = Pr(N consecutive tokens all have rank <= k). Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np

from rbpx.display.law_columns import estimate_in
from rbpx.laws.intervals.estimate import Recipe, by_name, estimate
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.prediction.prediction import find_crossings
from rbpx.laws.prediction.verdict import trend_warnings, with_reasons
from rbpx.questions.emergence import EmergenceKeys
from rbpx.questions.emergence.laws import average_crossing, crossing, fit_joint, fit_windows, outside
from rbpx.questions.emergence.windows import Integers, autocorrelation, count_windows, dependent_hits, window_share
from rbpx.runs.documents import text_ranks
from rbpx.runs.fits import document_doubts, record_of
from rbpx.runs.group import Group
from rbpx.status import Status
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
DEFAULT_N: Final = (1, 5, 10, 50, 100)
LAGS: Final = (1, 10, 100)
JOINT: Final = "joint law"
FEWEST: Final = 30  # windows of hits, to be spoken of


@dataclass(frozen=True, eq=False)
class Emergence:
    """Windows at one k.

    Attributes:
        windows: for each run a row for each length: p, the share of windows of hits; RBP_k^N, as if tokens were
            independent; and where tokens are known the share predicted by mean and autocorrelation of the hits, the
            number of independent tokens that vary as much, and the correlation at each of `LAGS`.
        fits: the law of each length.
        laws: their rows, each with the size at which RBP_k^N is one half; then that of the joint law with constant C N,
            which `bends` where windows are told apart from independent tokens, or the interval of the alpha of one
            length leaves out its own.
    """

    k: int
    windows: list[list[Record]]
    fits: list[PowerLaw]
    laws: list[Record]

    @property
    def spoken_of(self) -> Record | None:
        """Windows of the largest model: the second length with enough hits, or else the first."""
        several = [row for row in self.windows[-1] if row["n"] > 1 and row["p"] and row["p_independent"] > 0]  # not NaN
        carried = [row for row in several if row["n_windows"] is None or row["p"] * row["n_windows"] >= FEWEST]
        return carried[:2][-1] if carried else None

    @property
    def told(self) -> Record:
        """Those windows, or else the shortest of several tokens."""
        rows = self.windows[-1]
        return self.spoken_of or next((row for row in rows if row["n"] > 1), rows[0])

    @property
    def are_apart(self) -> bool:
        """Whether the interval of these windows leaves out independent tokens."""
        row = self.spoken_of
        return row is not None and leaves_out(estimate_in(row, "p").ends, row["p_independent"])


def windows_of(connection: duckdb.DuckDBPyConnection, group: Group, request: EmergenceKeys) -> Iterator[Emergence]:
    """Counts or reads the windows at each k, and fits their laws."""
    if not group.is_measured:
        yield from _imported(group, request)
        return
    lengths, k_grid = request.n.listed(DEFAULT_N), request.k.grid(group.vocab_size, DEFAULT_K)
    counted_n = sorted({1, *lengths})  # RBP_k is p at N = 1
    asked = slice(counted_n.index(lengths[0]), None)
    weights_BD = group.weights(request)[: 0 if group.n_resampled == 1 else None]
    tokens = (text_ranks(connection, run.run_id, group.ties) for run in group.runs)
    counted = [[_counted(group.n_documents, *of_run, k, counted_n) for k in k_grid] for of_run in tokens]
    for k, of_k in zip(k_grid, zip(*counted, strict=True), strict=True):
        windows, predicted = zip(*of_k, strict=True)
        p_MN = np.array([window_share(hit_DN, total_DN) for hit_DN, total_DN in windows])
        p_BMN = np.stack([window_share(hit_DN, total_DN, weights_BD) for hit_DN, total_DN in windows], axis=1)
        total_MN = np.array([total_DN.sum(axis=0) for _, total_DN in windows])[:, asked]
        of_rbp, of_asked = (p_MN[:, 0], p_BMN[..., 0]), (p_MN[:, asked], p_BMN[..., asked])
        yield _emergence(group, k, lengths, of_rbp, of_asked, [rows[asked] for rows in predicted], total_MN)


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


def _imported(group: Group, request: EmergenceKeys) -> Iterator[Emergence]:
    observed_k = sorted({k for run in group.runs for k, n in run.observed if n > 1})
    for k in observed_k if not request.k.by_number else [k for k in request.k.listed() if k in observed_k]:
        observed = sorted({n for run in group.runs for k_, n in run.observed if k_ == k})
        lengths = [n for n in request.n.listed(observed) if n in observed]
        rbp_M, *p_NM = (np.array([run.observed.get((k, n), np.nan) for run in group.runs]) for n in (1, *lengths))
        alone = [[{"p_independent": rbp**n} for n in lengths] for rbp in rbp_M.tolist()]
        yield _emergence(group, k, lengths, (rbp_M, None), (np.stack(p_NM, axis=1), None), alone)


def _emergence(
    group: Group,
    k: int,
    lengths: Sequence[int],
    of_rbp: tuple[Floats, Floats | None],
    of_windows: tuple[Floats, Floats | None],
    predicted: Sequence[Sequence[Record]],
    windows_MN: Floats | None = None,
) -> Emergence:
    """The rows at one k, from RBP_k [M] and the shares [M, N], with their replicates."""
    S, effective = np.array([run.x for run in group.runs if run.x is not None]), group.n_effective
    p_MN, p_BMN = of_windows
    windows = [[dict[str, Any]() for _ in lengths] for _ in group.runs]
    for m, run in enumerate(group.runs):
        for at, n in enumerate(lengths):
            of_B = np.empty(0) if p_BMN is None else p_BMN[:, m, at]
            p = by_name(p=estimate(float(p_MN[m, at]), of_B, effective, Recipe.percentile))
            n_windows = None if windows_MN is None else int(windows_MN[m, at])
            of_run = {"kind": "windows", "n": n, **group.names(), **run.names(), "k": k}
            windows[m][at] = {**of_run, **p, "n_windows": n_windows, **predicted[m][at]}
    fits, laws = list[PowerLaw](), list[Record]()
    halves = _halves(S, lengths, of_rbp[0], _doubted(group, fit_windows(S, *of_rbp, effective)))
    for at, (n, half) in enumerate(zip(lengths, halves, strict=True)):
        p_BM = None if p_BMN is None else p_BMN[..., at]
        fits.append(_doubted(group, fit_windows(S, p_MN[:, at], p_BM, effective)))
        laws.append(_row(group, k, "law", n, fits[-1], fits[-1].record() | {"half": half}))
    found, joint = Emergence(k, windows, fits, laws), fit_joint(S, lengths, p_MN, p_BMN, effective)
    departs = found.are_apart or any(leaves_out(fit.alpha.ends, joint.fit.alpha.value) for fit in fits)
    fit = _doubted(group, joint.fit, [Status.bends] if departs else [])
    laws.append(_row(group, k, JOINT, None, fit, joint.params))
    return found


def leaves_out(ends: tuple[float, float] | None, value: float | None) -> bool:
    """Whether an interval is known and excludes a number."""
    return ends is not None and value is not None and not ends[0] <= value <= ends[1]


def _halves(S: Floats, lengths: Sequence[int], rbp_M: Floats, fit: PowerLaw) -> list[Record]:
    found = [crossing(fit, 0.5 ** (1 / n)) for n in lengths]
    far = [outside(each["ln_S"], fit.S) > 0 for each in found]
    over = find_crossings(S, neg_ln(rbp_M), [np.log(2) / n for n in lengths]) if any(far) else None
    each_of = zip(found, far, over or (), strict=False)
    return [average_crossing(each, fit, of) if is_far else each for each, is_far, of in each_of] or found


def _doubted(group: Group, fit: PowerLaw, more: Sequence[Status] = ()) -> PowerLaw:
    alpha = fit.alpha
    if alpha.value is None:
        return with_reasons(fit, [fit.status])
    one = [Status.one_document] if group.n_resampled == 1 else []
    trend = trend_warnings(alpha)
    return with_reasons(fit, [fit.status, *more, *trend, *one, *document_doubts(group, fit)])


def _row(group: Group, k: int, kind: str, n: int | None, fit: PowerLaw, params: Record) -> Record:
    params = params | {"reasons": [reason.value for reason in fit.reasons or ()], "n": n}
    more: Record = {"k": k, "n": n, "params": params}
    return {"kind": kind, "n": n, **record_of(group, "emergence", fit, group.run_ids, Method.ols, **more)}
