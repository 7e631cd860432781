"""Fits the law in k for each run of a group and one for all, and the exchange rate of k and size (verb klaw).

-ln RBP_k = C k^(-alpha_k) at fixed S, so a smaller model at a larger k scores like a larger model at a smaller k.
Source: RBP paper (arXiv 2510.20387), appendix B, figure 9, table 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.groups.fits import about_axis, keep_fits, record_of, with_document_doubts
from rbpx.groups.group import Group, Run, labels_of
from rbpx.groups.points.sizes import weigh_group
from rbpx.laws.in_k import JointLaw, fit_joint_law, fit_k_law
from rbpx.laws.intervals.estimate import Resampled, around, few_documents, half_width
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, exp_or_none, line, neg_ln
from rbpx.laws.power.law import PowerLawFit, fit_power_law
from rbpx.status import Status
from rbpx.store.store import Record, Store

PAPER_K: Final = (1, 2, 3, 5, 7, 10, 18, 30, 50, 78, 100)
STEP: Final = 10  # the k of the smaller model whose score a larger one is to reach at k = 1
_LN_STEP: Final = (0.0, math.log(STEP))


@dataclass(frozen=True)
class Exchange:
    """What a tenfold k is worth in size, at one model.

    Attributes:
        rate: -d ln S / d ln k at constant RBP, alpha_k / alpha_S at k = 1.
        factor: how many times larger a model must be to score at k = 1 what this one scores at k = 10.
        lo: lower end of the factor's 95 % interval; None where there is none.
        hi: upper end; None where alpha_S is not significantly above 0, so that no size may be large enough.
        is_local: whether the law in k bends. The rate is then that from k = 1 to 10, if the grid has both, and
            differs elsewhere.
    """

    rate: float
    factor: float
    lo: float | None
    hi: float | None
    is_local: bool = False

    @property
    def value(self) -> float:
        """The factor."""
        return self.factor


@dataclass(frozen=True)
class KLaw:
    """The law in k of one run, with its label; `exchange` is None without a law in S at k = 1."""

    run: Run
    label: str
    fit: PowerLawFit
    exchange: Exchange | None


@dataclass(frozen=True, eq=False)
class KLaws:
    """The laws in k of one group; runs in order of S.

    `joint` is the one law for all k and sizes, with its rivals; None below 3 sizes or 3 values of k.
    """

    group: Group
    k_grid: tuple[int, ...]
    laws: tuple[KLaw, ...]
    joint: JointLaw | None = None


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> KLaws:
    """Fit -ln RBP_k against k for each run, on the paper's grid of k unless others are requested."""
    y_NBK = None
    if group.is_measured:
        k_grid = request.k.grid(group.vocab_size, PAPER_K)
        evidence = weigh_group(connection, group, request, k_grid, ())
        y_NK = neg_ln(np.array([e.measured["rbp"] for e in evidence]))
        if group.n_resampled != 1:
            y_NBK = neg_ln(np.stack([e.resampled["rbp"] for e in evidence]))
    else:
        shared = set.intersection(*({k for k, n in run.observed if n == 1} for run in group.runs))
        k_grid = sorted(shared if request.k.is_log else shared & set(request.k.listed(PAPER_K)))
        y_NK = neg_ln(np.array([[run.observed[k, 1] for k in k_grid] for run in group.runs]))
    S, of_S = [run.x for run in group.runs if run.x is not None], None
    if 1 in k_grid:
        first = k_grid.index(1)
        resampled = None if y_NBK is None else Resampled.of(y_NBK[:, :, first].T, group.n_resampled)
        of_S = fit_power_law(S, y_NK[:, first], resampled)
    laws, n_documents = [], group.n_resampled if group.is_measured else None
    for at, (run, label) in enumerate(zip(group.runs, labels_of(group.runs), strict=True)):
        y_BK = None if y_NBK is None else y_NBK[at]
        of_k = fit_k_law(k_grid, y_NK[at], y_BK, request.method[0], n_documents)
        of_k = with_document_doubts(group, of_k)
        exchange = None if of_S is None else _exchange(group, k_grid, y_NK[at], y_NBK, at, of_k, of_S)
        laws.append(KLaw(run, label, of_k, exchange))
    return KLaws(group, tuple(k_grid), tuple(laws), fit_joint_law(S, k_grid, y_NK, y_NBK, n_documents))


def _exchange(
    group: Group,
    k_grid: Sequence[int],
    y_K: Floats,
    y_NBK: Floats | None,
    at: int,
    of_k: PowerLawFit,
    of_S: PowerLawFit,
) -> Exchange | None:
    """The exchange rate; both exponents are refitted to the same resamples, so that the noise they share counts."""
    if of_k.alpha is None or of_S.alpha is None or of_S.alpha <= 0:
        return None
    is_local = Status.bends in (of_k.reasons or ())
    alpha_k, ends = of_k.alpha, [k_grid.index(k) for k in (1, STEP) if k in k_grid]
    between = is_local and len(ends) == 2
    if between:
        alpha_k = float(line(_LN_STEP, np.log(y_K[ends]))[1])
    rate = alpha_k / of_S.alpha
    factor = exp_or_none(rate * _LN_STEP[1])
    if factor is None:  # no size is so large
        return None
    about, (_, alpha_sd) = of_S.uncertainty, of_S.alpha_sds
    if about is None or alpha_sd is None:  # too few resamples for an interval
        return Exchange(rate, factor, None, None, is_local)
    text = 0.0
    if y_NBK is not None:
        y_BN = y_NBK[:, :, k_grid.index(1)].T
        usable_B = np.isfinite(np.log(y_NBK[at])).all(axis=1) & np.isfinite(np.log(y_BN)).all(axis=1)
        ln_y_BK = np.log(y_NBK[at][usable_B])
        alpha_k_B = (line(_LN_STEP, ln_y_BK[:, ends]) if between else line(np.log(k_grid), ln_y_BK))[:, 1]
        alpha_S_B = line(np.log(of_S.S), np.log(y_BN[usable_B]))[:, 1]
        text = few_documents(group.n_resampled) * float(np.var(alpha_k_B / alpha_S_B, ddof=1))
    models_sd = rate / of_S.alpha * alpha_sd
    half = half_width(shared=text, scatter=models_sd, dof=about.dof, n_documents=about.n_documents)
    falls = of_S.alpha_lo is not None and of_S.alpha_lo > 0
    lo, hi = (exp_or_none(max(end, 0.0) * _LN_STEP[1]) for end in around(rate, half))
    return Exchange(rate, factor, lo, hi if falls else None, is_local)


def keep(store: Store, laws: KLaws) -> list[Record]:
    """Write the laws of a group to the store, and return them."""
    records = []
    for law in laws.laws:
        run, exchange = law.run, None if law.exchange is None else vars(law.exchange)
        params = law.fit.record() | {"k": list(laws.k_grid), "exchange": exchange, "equation": "y = C * k^(-alpha)"}
        more = run.names() | {"params": params | {"non_embedding_params": run.non_embedding_params}}
        more["params"] |= about_axis(laws.group)
        records.append(record_of(laws.group, "k_law", law.fit, run.run_ids, law.fit.method, **more))
    if laws.joint is not None and laws.joint.alpha.alpha is not None:
        records.append(_joint_record(laws, laws.joint))
    return keep_fits(store, records)


def _joint_record(laws: KLaws, joint: JointLaw) -> Record:
    """The row of the one law of a group: C at S = 1 and k = 1, alpha that of S; params have its tests and rivals."""
    status = Status.ok if joint.holds else Status.bends
    fit = with_document_doubts(laws.group, replace(joint.alpha, C=joint.C, status=status))
    params = {name: value for name, value in fit.record().items() if name not in ("C_lo", "C_hi")}
    params |= {
        "equation": "y = C * k^(-kappa) * S^(-alpha)",
        "k": list(joint.of_range),
        "range": None if joint.range is None else list(joint.range),
        "n_ranges": joint.n_ranges,
        "kappa": vars(joint.kappa),
        "drift": vars(joint.drift),
        "bend": None if joint.bend is None else vars(joint.bend),
        "forms": [vars(form) for form in joint.forms],
    }
    params |= about_axis(laws.group)
    return record_of(laws.group, "joint_law", fit, laws.group.run_ids, Method.ols, params=params)
