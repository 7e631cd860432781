"""Fits distributions to the ranks of each run, and compares the laws that they imply with measured ones (verb ranks).

That ranks are lognormal is a conjecture: so the lognormal is compared with rivals, the quantities that it implies with
the measured ones, and forms whose parameters are laws in S with a larger size (`closure`).

Source: RBP paper (arXiv 2510.20387), section 5, eq. 9, appendix D, figure 8.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.chart.figure import spread
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name, reaching
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.laws.power.law import PowerLawFit, finite_or_none, fit_power_law
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.ranks.lognormal import derived_approximation
from rbpx.questions.ranks import closure
from rbpx.questions.ranks.closure import Closure, closure_of
from rbpx.questions.ranks.compare import Counted, Rival, best, compare, counted
from rbpx.runs.documents import RankBin, document_ranks, rank_edges
from rbpx.runs.fits import keep_fits, power_law_of, rank_fit_record, record_of
from rbpx.runs.group import Group, Run
from rbpx.runs.points.sizes import Curves, Points, size_points, weigh_group
from rbpx.status import Status
from rbpx.store.store import Record, Store
from rbpx.ties import Ties

DEFAULT_K: Final = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
PAPER: Final = "lognormal_paper"
_PER_DECADE: Final = 6  # bins that are drawn
_MEASURED: Final = ("C", "alpha", "alpha_lo", "alpha_hi", "r2", "status")  # of a law beside the derived one
_DERIVED: Final = {"rbp": "derived_rbp", "cross_entropy": "derived_entropy", "error_entropy": "derived_error_entropy"}


@dataclass(frozen=True, eq=False)
class RunRanks:
    """The distributions of one run.

    Attributes:
        run: the run.
        rivals: the published fit first, then the distributions over 1..V.
        measured: RBP_k, cross-entropy, and the plug-in entropy of the ranks, which that of a true distribution equals.
    """

    run: Run
    rivals: list[Rival]
    measured: Curves

    def rival(self, distribution: str) -> Rival:
        """The one with this name."""
        return next(rival for rival in self.rivals if rival.fit.distribution == distribution)

    @property
    def best(self) -> str | None:
        """The name of the distribution with the smallest AIC; None where none has numbers."""
        return best([rival.fit for rival in self.rivals])


@dataclass(frozen=True, eq=False)
class Derived:
    """A law in S as a distribution derives it, beside the one that was measured.

    Attributes:
        distribution: its name.
        quantity: "rbp", "cross_entropy", or "error_entropy": the entropy of the distribution beside H(P).
        k: the k of RBP, else None.
        measured: the law through what was measured.
        derived: the law through what follows from the fitted distributions.
        ratio: the law of their ratio: its level is that of derived over measured, its alpha the difference of both.
        approximated: the derived law by the paper's approximation; None where it has none.
    """

    distribution: str
    quantity: str
    k: int | None
    measured: PowerLawFit
    derived: PowerLawFit
    ratio: PowerLawFit
    approximated: PowerLawFit | None = None

    @cached_property
    def level(self) -> Estimate:
        """Derived over measured at the geometric mean of the sizes, and its 95 % interval.

        The interval is centred on the level less its bias, which counted entropies have, and reaches to the level.
        """
        theta_P, about = self.ratio.theta_P, self.ratio.uncertainty
        if theta_P is None:
            return NO_ESTIMATE
        level = float(np.exp(theta_P[0]))
        if about is None or self.ratio.status is Status.one_document:
            return Estimate(level)
        lo, hi = np.exp(about.interval(float(theta_P[0]), np.array([1.0, 0.0]))).tolist()
        return Estimate(level, *reaching(level, (lo, hi)))

    @property
    def meets(self) -> bool | None:
        """Whether the derived law is the measured one: intervals of their difference hold 0 and 1; None without any."""
        level, more = self.level.ends, self.ratio.exponent
        if level is None or more.ends is None:
            return None
        return level[0] <= 1 <= level[1] and not more.leaves_out_0


@dataclass(frozen=True)
class Total:
    """The criteria of a distribution over 1..V, summed over the runs.

    Attributes:
        distribution: its name; it has numbers for every run.
        aic: the sum of AIC.
        bic: the sum of BIC.
        n_best: the number of runs for which it has the smallest AIC.
    """

    distribution: str
    aic: float
    bic: float
    n_best: int


@dataclass(frozen=True)
class SizeBin(RankBin):
    """The tokens of a run in a bin of ranks, and their share of all its tokens divided by the ranks in the bin."""

    size: str
    share_per_rank: float


@dataclass(frozen=True, eq=False)
class Ranks:
    """The distributions of one group; runs in order of S.

    Attributes:
        group: the runs.
        k_grid: the k of the curves.
        runs: the distributions of each.
        totals: the criteria of each distribution with numbers for every run, in order of AIC.
        derived: the laws of the published fit and of the favoured distribution.
        trends: of "mu" and "sigma": the slope on ln S is -alpha of the law through exp(mu) or exp(sigma); empty where
            a run has neither.
        edges: where bins of ranks begin, evenly spaced in ln rank; the last lies beyond V.
        binned: the tokens of the smallest and the largest run in these bins.
        closure: forms that are fitted to all sizes at once; None where `without_closure` says why.
    """

    group: Group
    k_grid: tuple[int, ...]
    runs: tuple[RunRanks, ...]
    totals: tuple[Total, ...]
    derived: tuple[Derived, ...]
    trends: dict[str, PowerLawFit]
    edges: tuple[int, ...]
    binned: tuple[SizeBin, ...]
    closure: Closure | None

    @property
    def without_closure(self) -> str:
        """Why there is no closure, where there is none."""
        if self.group.ties is Ties.mid:
            return f"{Status.mid_ranks.label}. {Status.mid_ranks.remedy}"
        few = self.group.n_sizes < closure.LEAST_SIZES
        return f"that needs {closure.LEAST_SIZES} sizes." if few else "no form has a likelihood."

    @property
    def ends(self) -> list[RunRanks]:
        """The smallest and the largest run, or the only one."""
        return spread(self.runs, 2)


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Ranks:
    """Fit all distributions to each run, then laws in S to what they derive."""
    k_grid = request.k.grid(group.vocab_size, DEFAULT_K)
    weights_BD = group.weights(request) if group.n_resampled > 1 else None
    evidence = weigh_group(connection, group, request, k_grid, ("error_entropy",))
    counts = [document_ranks(connection, run.run_id, group.ties) for run in group.runs]
    of_runs = [counted(each, group.n_documents) for each in counts]
    # One after another: the steps are so small that two threads would mostly wait for the interpreter's lock.
    runs = tuple(
        RunRanks(run, compare(of, weights_BD, k_grid, run.vocab_size or 0, group.n_resampled), each.measured)
        for run, of, each in zip(group.runs, of_runs, evidence, strict=True)
    )
    totals = _totals(runs)
    derived, trends, closes = list[Derived](), dict[str, PowerLawFit](), None
    if group.n_sizes >= 3:
        measured = size_points(group, evidence, request, k_grid, ("rbp", "cross_entropy", "error_entropy"))
        measured = [points for points in measured if points.doubt is not Status.beyond_vocabulary]
        for name in (PAPER, *(total.distribution for total in totals[:1])):
            derived += _derived(name, runs, measured, k_grid, group)
        trends = _trends(runs, measured[0], group)
        if group.n_sizes >= closure.LEAST_SIZES and group.ties is not Ties.mid:
            closes = closure_of(group, k_grid, evidence, measured, of_runs, weights_BD)
    edges = rank_edges(max(run.vocab_size or 1 for run in spread(group.runs, 2)), _PER_DECADE)
    drawn = zip(spread(group.runs, 2), spread(of_runs, 2), strict=True)
    binned = tuple(found for run, of_run in drawn for found in _binned(run, of_run, edges))
    return Ranks(group, tuple(k_grid), runs, totals, tuple(derived), trends, tuple(edges), binned, closes)


def _totals(runs: Sequence[RunRanks]) -> tuple[Total, ...]:
    totals = []
    for rivals in zip(*(each.rivals[1:] for each in runs), strict=True):
        name, fits = rivals[0].fit.distribution, [rival.fit for rival in rivals]
        if all(fit.aic is not None for fit in fits):
            aic, bic = sum(fit.aic or 0.0 for fit in fits), sum(fit.bic or 0.0 for fit in fits)
            totals.append(Total(name, aic, bic, sum(each.best == name for each in runs)))
    return tuple(sorted(totals, key=lambda total: total.aic))


def _binned(run: Run, of: Counted, edges: Sequence[int]) -> list[SizeBin]:
    """Count the tokens of a run in bins, as `rank_shares` does."""
    in_bins, _ = np.histogram(of.rank_R, edges, weights=of.n_R)
    return [
        SizeBin(first, end - 1, int(n), run.size, float(n / of.n_R.sum() / (end - first)))
        for (first, end), n in zip(pairwise(edges), in_bins, strict=True)
        if n > 0
    ]


def _derived(
    name: str, runs: Sequence[RunRanks], measured: Sequence[Points], k_grid: Sequence[int], group: Group
) -> list[Derived]:
    rivals = [each.rival(name) for each in runs]
    curves = [rival.curve for rival in rivals if rival.curve is not None]
    if len(curves) < len(runs):
        return []
    resampled = [rival.curve_B for rival in rivals if rival.curve_B is not None]
    derived_NK, derived_BNK = np.array(curves), np.stack(resampled, axis=1) if len(resampled) == len(runs) else None
    approximated = _approximated([rival.fit for rival in rivals])
    laws = []
    for of in measured:
        at = len(k_grid) if of.k is None else k_grid.index(of.k)
        derived_BN = None if derived_BNK is None else derived_BNK[:, :, at]
        derived = replace(of, y_N=derived_NK[:, at], y_BN=derived_BN)
        law, by_form, ratio = (power_law_of(group, points) for points in (of, derived, derived.over(of)))
        y_N = approximated.get((of.law, of.k))
        by_paper = None if y_N is None else fit_power_law(of.S_N, y_N)
        laws.append(Derived(name, of.law, of.k, law, by_form, ratio, by_paper))
    return laws


def _approximated(fits: Sequence[RankFit]) -> dict[tuple[str, int | None], Floats]:
    """-ln RBP_1 and cross-entropy of each run by the paper's approximation; nothing without mu and sigma."""
    pairs = [(fit.params.get("mu"), fit.params.get("sigma")) for fit in fits if fit.distribution == PAPER]
    if not pairs or any(None in pair for pair in pairs):
        return {}
    approximation = derived_approximation(*np.array(pairs, float).T)
    return {("rbp", 1): approximation.neg_ln_rbp_1, ("cross_entropy", None): approximation.cross_entropy_nats}


def _trends(runs: Sequence[RunRanks], like: Points, group: Group) -> dict[str, PowerLawFit]:
    """The lines of mu and sigma on ln S, fitted as power laws of exp(mu) and exp(sigma)."""
    fits = [each.rival(PAPER) for each in runs]
    if any(rival.fit.params.get("mu") is None for rival in fits):
        return {}
    resampled = [rival.mu_sigma_B2 for rival in fits if rival.mu_sigma_B2 is not None]
    trends = {}
    for at, name in enumerate(("mu", "sigma")):
        y_N, y_BN = np.exp([float(rival.fit.params[name] or 0.0) for rival in fits]), None
        if len(resampled) == len(runs):
            with np.errstate(over="ignore"):  # a resample whose mu is beyond all sizes is infinite, and left out
                y_BN = np.exp(np.column_stack([each[:, at] for each in resampled]))
        trends[name] = power_law_of(group, replace(like, y_N=y_N, y_BN=y_BN))
    return trends


def keep(store: Store, ranks: Ranks) -> Any:
    """Write each distribution to `rank_fits` and the derived laws to `fits`; return a row for each, for programs."""
    rows: list[Record] = []
    kept: list[Record] = []
    for each in ranks.runs:
        for rival in each.rivals:
            record = rank_fit_record(each.run, ranks.group.ties, rival.fit, _implied(rival, each, ranks))
            kept.append(record)
            rows.append({"kind": "distribution", **ranks.group.names(), **each.run.names(), **record})
    derived = keep_fits(store, [_record(ranks.group, law) for law in ranks.derived])
    rows += [{"kind": "closure", "distribution": record["params"]["distribution"], **record} for record in derived]
    trends = []
    for name, trend in ranks.trends.items():
        params = trend.record() | {"equation": f"exp({name}) = C * S^(-alpha)", "distribution": PAPER}
        run_ids = ranks.group.run_ids
        trends.append(record_of(ranks.group, f"lognormal_{name}", trend, run_ids, Method.ols, params=params))
    rows += [{"kind": "trend", **record} for record in keep_fits(store, trends)]
    rows += [] if ranks.closure is None else closure.records(ranks.group, ranks.closure)
    return {"rows": rows, "rank_fits": kept}


def _implied(rival: Rival, of: RunRanks, ranks: Ranks) -> Record:
    """The entries of `rank_fits` beside the parameters of a distribution."""
    implied: Record = {"is_best": rival.fit.distribution == of.best}
    if rival.behind is not None:
        implied |= by_name(nats_behind=rival.behind)
    for name, (lo, hi) in rival.interval.items():
        implied |= {f"{name}_lo": lo, f"{name}_hi": hi}
    if rival.curve is not None:
        implied |= {"derived_neg_ln_rbp": dict(zip(map(str, ranks.k_grid), rival.curve[:-1].tolist(), strict=True))}
        implied |= {"derived_entropy_nats": float(rival.curve[-1])}
    *shares, nats = finite_or_none(np.append(neg_ln(of.measured["rbp"]), of.measured["cross_entropy"]))
    implied |= {"measured_neg_ln_rbp": dict(zip(map(str, ranks.k_grid), shares, strict=True))}
    entropy = float(of.measured["error_entropy"])
    return implied | {"measured_cross_entropy_nats": nats, "measured_error_entropy_nats": entropy}


def _record(group: Group, law: Derived) -> Record:
    measured = {name: getattr(law.measured, name) for name in _MEASURED}
    params = law.derived.record() | {"distribution": law.distribution, "quantity": law.quantity}
    params |= {"measured": measured, **by_name(level=law.level, alpha_more=law.ratio.exponent)}
    params |= {"alpha_approximated": None if law.approximated is None else law.approximated.alpha}
    params |= {"equation": "y = C * S^(-alpha), y what the distribution derives"}
    more: Record = {"k": law.k, "n": law.distribution, "params": params}
    return record_of(group, _DERIVED[law.quantity], law.derived, group.run_ids, Method.ols, **more)
