"""Regimes of k and the noise floor (verb regimes): up to which k the law of RBP_k holds, and why it ends.

At large k only few tokens are misses, so their count is noise: its binomial part is known from the count, its part
from the choice of documents from resampling. Source: RBP paper (arXiv 2510.20387), section 3.3, figure 6.
"""

import math
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.groups.fits import Law, doubted, fit_points, fit_record
from rbpx.groups.points import Points, size_points, weigh_group
from rbpx.groups.selection import Group
from rbpx.groups.standing import stands, supported
from rbpx.store.store import Record, Store


@dataclass(frozen=True)
class Regime:
    """The law at one k.

    Attributes:
        k: the k.
        law: its law in S.
        n_misses: tokens of the largest model with a rank above k; None where the tokens were not counted.
        signal: change of ln y from the smallest to the largest model, by the law.
        binomial_sd: of ln y at the largest model, if its tokens were independent.
        document_sd: of ln y at the largest model, over resampled documents.
        stands: whether the law holds (`rbpx.groups.standing`).
    """

    k: int
    law: Law
    n_misses: int | None
    signal: float | None
    binomial_sd: float | None
    document_sd: float | None
    stands: bool


@dataclass(frozen=True, eq=False)
class Regimes:
    """The laws of one group over k.

    Attributes:
        supported: the largest k up to which the law holds at every k of the grid; None if not at the smallest.
    """

    group: Group
    regimes: tuple[Regime, ...]
    supported: int | None
    resamples: int


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Regimes:
    """Fit the law at every k, log-spaced up to V unless others are requested."""
    method = request.methods()[0]
    if group.is_measured:
        k_grid = request.k_grid(min(run.vocab_size or 0 for run in group.runs), "log")
        evidence = weigh_group(connection, group, request, k_grid, ())
        points = size_points(group, evidence, request, k_grid, {"rbp"})
    else:
        points = size_points(group, [], replace(request, k=request.k or "log"), [], {"rbp"})
    regimes = []
    for series in points:
        law = doubted(group, fit_points(series, method))
        regimes.append(_regime(series, law))
    return Regimes(group, tuple(regimes), supported(regime.law for regime in regimes), request.resamples)


def _regime(points: Points, law: Law) -> Regime:
    n_misses = signal = binomial_sd = document_sd = None
    largest = points.runs[-1]
    y = float(points.y_N[-1])
    if largest.n_tokens is not None and 0 < y < math.inf:
        share = math.exp(-y)
        n_misses = round(largest.n_tokens * (1 - share))
        binomial_sd = math.sqrt((1 - share) / (share * largest.n_tokens)) / y
    if points.y_BN is not None and points.doubt is None:
        column = points.y_BN[:, -1]
        usable = column[np.isfinite(column) & (column > 0)]
        document_sd = float(np.log(usable).std(ddof=1)) if len(usable) > 1 else None
    fit = law.fit
    if fit.alpha is not None:
        signal = fit.alpha * math.log(max(points.S_N) / min(points.S_N))
    return Regime(points.k or 0, law, n_misses, signal, binomial_sd, document_sd, stands(law))


def keep(store: Store, regimes: Regimes) -> list[Record]:
    """Write the laws to the store, each with what its k adds, and return them."""
    records = []
    for regime in regimes.regimes:
        record = fit_record(regimes.group, regime.law, regimes.resamples)
        more = {name: value for name, value in vars(regime).items() if name not in ("k", "law")}
        record["params"] = record["params"] | {"regime": more | {"supported_up_to_k": regimes.supported}}
        store.write_record("fits", record["fit_id"], record)
        records.append(record)
    return records
