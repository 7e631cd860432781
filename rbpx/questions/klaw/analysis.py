"""Fits the law in k for each run of a group and one for all, and the exchange rate of k and size (verb klaw).

-ln RBP_k = C k^(-alpha_k) at fixed S, so a smaller model at a larger k scores like a larger model at a smaller k.
Source: RBP paper (arXiv 2510.20387), appendix B, figure 9, table 1.
"""

from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.exchange import Exchange, exchange_of
from rbpx.laws.in_k import JointLaw, fit_joint_law, fit_k_law
from rbpx.laws.intervals.estimate import Resampled
from rbpx.laws.names import Method
from rbpx.laws.numeric import neg_ln
from rbpx.laws.power.law import PowerLawFit, fit_power_law
from rbpx.laws.predict.verdict import with_reasons
from rbpx.runs.fits import about_axis, keep_fits, record_of, with_document_doubts
from rbpx.runs.group import Group, Run, labels_of
from rbpx.runs.points.sizes import weigh_group
from rbpx.status import Status
from rbpx.store.store import Record, Store

PAPER_K: Final = (1, 2, 3, 5, 7, 10, 18, 30, 50, 78, 100)


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
        exchange = None
        if of_S is not None:
            drawn = None if y_NBK is None else (y_NBK[at], y_NBK[:, :, k_grid.index(1)].T)
            bends = Status.bends in (of_k.reasons or ())
            exchange = exchange_of(k_grid, y_NK[at], of_k.alpha, of_S, drawn, group.n_resampled, bends)
        laws.append(KLaw(run, label, of_k, exchange))
    return KLaws(group, tuple(k_grid), tuple(laws), fit_joint_law(S, k_grid, y_NK, y_NBK, n_documents))


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
    fit = with_document_doubts(laws.group, with_reasons(replace(joint.alpha, C=joint.C), [status]))
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
