"""Fits distributions to the ranks of each run, and compares the laws that they imply with the measured ones.

The lognormal, which the paper conjectures, is compared with rivals, and forms whose parameters are laws in S with a
larger size (`closure`). Source: RBP paper (arXiv 2510.20387), section 5, eq. 9, appendix D, figure 8.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, finite_or_none, neg_ln
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.ranks.distribution import DISTRIBUTIONS
from rbpx.laws.ranks.family import FAMILIES, RankFit
from rbpx.laws.ranks.lognormal import derived_approximation
from rbpx.questions.ranks import RanksKeys
from rbpx.questions.ranks.closure import LEAST_SIZES, closure_of
from rbpx.questions.ranks.compare import PAPER, DocumentRanks, Rival, compare, ranks_by_document
from rbpx.runs.documents import document_ranks
from rbpx.runs.fits import power_law_of, rank_fit_record, record_of
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Curves, Points, size_points, weigh_group
from rbpx.status import Status
from rbpx.store.store import Record
from rbpx.ties import Ties

DEFAULT_K: Final = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
NOT_TESTED: Final = f"That needs {LEAST_SIZES} sizes, whole ranks, and a form with a likelihood."
_MEASURED: Final = ("C", "alpha", "alpha_lo", "alpha_hi", "r2", "status")  # of the law of measured values
_DERIVED: Final = {"rbp": "derived_rbp", "cross_entropy": "derived_entropy", "error_entropy": "derived_error_entropy"}


@dataclass(frozen=True, eq=False)
class Ranks:
    """The distributions of one group; runs in order of S.

    Attributes:
        rivals: of each run by name: the published fit, then those over 1..V.
        totals: the distributions with numbers for every run, in order of AIC: AIC and BIC above the least, summed, and
            the number of runs for which it is best.
        derived: the laws in S that the published fit and the best distribution imply: the row, the law of measured
            values, and that of derived ones.
        trends: rows of mu and sigma: the slope on ln S is -alpha of the law of exp(mu) or exp(sigma).
        closure: rows of forms fitted to all sizes at once; empty where `NOT_TESTED` says why.
    """

    group: Group
    k_grid: Sequence[int]
    rivals: Sequence[Mapping[str, Rival]]
    rank_fits: Sequence[Record]
    totals: Sequence[Record]
    derived: Sequence[tuple[Record, PowerLaw, PowerLaw]]
    trends: Sequence[Record]
    counted: Sequence[DocumentRanks]
    closure: Sequence[Record]

    @property
    def fits(self) -> list[Record]:
        """The rows of its laws."""
        return [*(row for row, *_ in self.derived), *self.trends]


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: RanksKeys) -> Ranks:
    """Fits all distributions to each run, then laws in S to what they imply."""
    k_grid = request.k.grid(group.vocab_size, DEFAULT_K)
    weights_BD = group.weights(request) if group.n_resampled > 1 else None
    evidence = weigh_group(connection, group, request, k_grid, ("error_entropy",))
    counts = [document_ranks(connection, run.run_id, group.ties) for run in group.runs]
    of_runs = [ranks_by_document(each, group.n_documents) for each in counts]
    # Not in threads: the steps are so small that threads would mostly wait for the interpreter's lock.
    rivals = [
        compare(of, weights_BD, k_grid, run.vocab_size or 0, group.n_effective)
        for run, of in zip(group.runs, of_runs, strict=True)
    ]
    rank_fits = [
        rank_fit_record(run, group.ties, rival.fit, rival.implied | of_run)
        for run, of, each in zip(group.runs, rivals, evidence, strict=True)
        for of_run in [_measured(each.measured, k_grid)]
        for rival in of.values()
    ]
    totals = _totals(rank_fits)
    derived, trends, closure = list[tuple[Record, PowerLaw, PowerLaw]](), list[Record](), list[Record]()
    if group.n_sizes >= 3:
        measured = size_points(group, evidence, request, k_grid, ("rbp", "cross_entropy", "error_entropy"))
        measured = [points for points in measured if points.doubt is not Status.not_positive]  # k beyond V
        for name in (PAPER, *(total["distribution"] for total in totals[:1])):
            derived += _derived([each[name] for each in rivals], measured, k_grid, group)
        trends = list(_trends([each[PAPER] for each in rivals], measured[0], group))
        if group.n_sizes >= LEAST_SIZES and group.ties is not Ties.mid:
            closure = list(closure_of(group, k_grid, evidence, measured, of_runs, weights_BD))
    return Ranks(group, k_grid, rivals, rank_fits, totals, derived, trends, of_runs, closure)


def _measured(measured: Curves, k_grid: Sequence[int]) -> Record:
    *shares, nats = finite_or_none(np.append(neg_ln(measured["rbp"]), measured["cross_entropy"]))
    of_k, entropy = dict(zip(map(str, k_grid), shares, strict=True)), float(measured["error_entropy"])
    return {"measured_neg_ln_rbp": of_k, "measured_cross_entropy_nats": nats, "measured_error_entropy_nats": entropy}


def _totals(rank_fits: Sequence[Record]) -> list[Record]:
    fitted = {name: [row for row in rank_fits if row["distribution"] == name] for name in DISTRIBUTIONS}
    fitted = {name: rows for name, rows in fitted.items() if all(row["aic"] is not None for row in rows)}
    summed = {each: {name: sum(row[each] for row in fitted[name]) for name in fitted} for each in ("aic", "bic")}
    totals = list[Record]()
    for name in sorted(fitted, key=summed["aic"].__getitem__):
        above = {f"{each}_above_least": of[name] - min(of.values()) for each, of in summed.items()}
        n_best = sum(row["params"]["is_best"] for row in fitted[name])
        totals.append({"distribution": name, "n_parameters": FAMILIES[name].n_parameters, **above, "n_best": n_best})
    return totals


def _points(rivals: Sequence[Rival], like: Points, at: int) -> Points | None:
    known = [rival.curve[at] for rival in rivals if rival.curve is not None]
    curves_B = [rival.curve_B[:, at] for rival in rivals if rival.curve_B is not None]
    if len(known) < len(rivals) or not np.isfinite(known).all():
        return None
    return replace(like, y_N=np.array(known), y_BN=np.column_stack(curves_B) if len(curves_B) == len(rivals) else None)


def _derived(
    rivals: Sequence[Rival], measured: Sequence[Points], k_grid: Sequence[int], group: Group
) -> Iterator[tuple[Record, PowerLaw, PowerLaw]]:
    approximated, name = _approximated([rival.fit for rival in rivals]), rivals[0].fit.distribution
    for of in measured:
        derived = _points(rivals, of, len(k_grid) if of.k is None else k_grid.index(of.k))
        if derived is None:
            return
        law, by_form, ratio = (power_law_of(group, points) for points in (of, derived, derived.over(of)))
        y_N = approximated.get((of.law, of.k))
        params = by_form.record() | {"distribution": name, "quantity": of.law}
        params |= {"measured": {column: law.columns()[column] for column in _MEASURED}}
        params |= by_name(level=_level(ratio), alpha_more=ratio.alpha)
        params |= {"alpha_approximated": None if y_N is None else fit_power_law(of.S_N, y_N).alpha.value}
        params |= {"equation": "y = C * S^(-alpha), y what the distribution derives"}
        more: Record = {"k": of.k, "n": name, "params": params}
        row = record_of(group, _DERIVED[of.law], by_form, group.run_ids, Method.ols, **more)
        yield {"kind": "closure", "distribution": name, **row}, law, by_form


def _level(ratio: PowerLaw) -> Estimate:
    """Derived over measured at the geometric mean of the sizes.

    Its interval is centred on the level minus its bias, which counted entropies have, and widened to contain the level.
    """
    theta_P, about = ratio.theta_P, ratio.uncertainty
    if theta_P is None:
        return NO_ESTIMATE
    ends = (None, None) if about is None or ratio.alpha.lo is None else about.interval(theta_P[0], np.array([1.0, 0.0]))
    return Estimate(float(theta_P[0]), *ends).exp()


def _approximated(fits: Sequence[RankFit]) -> dict[tuple[str, int | None], Floats]:
    """-ln RBP_1 and cross-entropy of each run by the paper's approximation."""
    pairs = [(fit.params.get("mu"), fit.params.get("sigma")) for fit in fits if fit.distribution == PAPER]
    if not pairs or any(None in pair for pair in pairs):
        return {}
    return dict(
        zip((("rbp", 1), ("cross_entropy", None)), derived_approximation(*np.array(pairs, float).T), strict=True)
    )


def _trends(rivals: Sequence[Rival], like: Points, group: Group) -> Iterator[Record]:
    for at, name in ((-2, "mu"), (-1, "sigma")):
        if (points := _points(rivals, like, at)) is not None:
            trend = power_law_of(group, points)
            params = trend.record() | {"equation": f"exp({name}) = C * S^(-alpha)", "distribution": PAPER}
            row = record_of(group, f"lognormal_{name}", trend, group.run_ids, Method.ols, params=params)
            yield {"kind": "trend", **row}
