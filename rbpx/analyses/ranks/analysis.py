"""The distribution of the ranks (verb ranks): the lognormal, its rivals and the laws that they imply.

Source: RBP paper (arXiv 2510.20387), section 5, eq. 9, appendix D, figure 8. That ranks are lognormal is a conjecture:
so it is compared with others, and the quantities it implies with the measured ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.analyses.ranks.compare import Rival, best, compare
from rbpx.config.request import Request
from rbpx.groups.evidence import Evidence
from rbpx.groups.fits import of_one_document, record_of, write_rank_fit
from rbpx.groups.group import Group, Run
from rbpx.groups.points import weigh_group
from rbpx.groups.token_ranks import document_ranks, rank_edges
from rbpx.laws.derived import derived_approximation
from rbpx.laws.interval import Estimate
from rbpx.laws.logarithms import neg_ln
from rbpx.laws.names import Method
from rbpx.laws.power import PowerLawFit, fit_power_law
from rbpx.laws.rank_fit import RankFit
from rbpx.laws.resampled import Resampled
from rbpx.status import Status
from rbpx.store.store import Record, Store

Floats = npt.NDArray[np.float64]
Of = TypeVar("Of")

DEFAULT_K: Final = (1, 10, 100, 1000, 10000)
PAPER: Final = "lognormal_paper"
_PER_DECADE: Final = 6  # bins that are drawn
_EQUATION: Final = "y = C * S^(-alpha), y what the distribution derives"


@dataclass(frozen=True, eq=False)
class RunRanks:
    """The distributions of one run.

    Attributes:
        run: which.
        rivals: the published fit first, then those over 1..V.
        measured: -ln RBP_k at each k, then cross-entropy.
        error_entropy_nats: plug-in entropy of the measured ranks, which the entropy of a distribution should equal.
    """

    run: Run
    rivals: tuple[Rival, ...]
    measured: Floats
    error_entropy_nats: float

    def rival(self, distribution: str) -> Rival:
        """One by name."""
        return next(rival for rival in self.rivals if rival.fit.distribution == distribution)

    @property
    def best(self) -> str | None:
        """The name of the distribution with the smallest AIC; None where none has numbers."""
        top = best(self.rivals)
        return None if top is None else top.fit.distribution


@dataclass(frozen=True, eq=False)
class Closure:
    """A law in S as a distribution derives it, beside the one that was measured.

    Attributes:
        distribution: which.
        quantity: "rbp", "cross_entropy", or "error_entropy": the entropy of the distribution beside H(P).
        k: of RBP, else None.
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
            return Estimate(None, None, None)
        level = float(np.exp(theta_P[0]))
        if about is None or self.ratio.status is Status.one_document:
            return Estimate(level, None, None)
        ends = about.interval(float(theta_P[0]), np.array([1.0, 0.0]))
        return Estimate(level, min(level, float(np.exp(ends[0]))), max(level, float(np.exp(ends[1]))))


@dataclass(frozen=True)
class Total:
    """The criteria of a distribution over 1..V, summed over the runs.

    Attributes:
        distribution: which; it has numbers for every run.
        aic: sum.
        bic: sum.
        n_best: runs at which it has the smallest AIC.
    """

    distribution: str
    aic: float
    bic: float
    n_best: int


@dataclass(frozen=True)
class RankBin:
    """Tokens of a run with a rank from the first to the last of a bin; their share of all, over the ranks in it."""

    size: str
    first_rank: int
    last_rank: int
    n_tokens: int
    share_per_rank: float

    @property
    def rank(self) -> float:
        """The geometric mean of the first and the last."""
        return float((self.first_rank * self.last_rank) ** 0.5)


@dataclass(frozen=True, eq=False)
class Ranks:
    """The distributions of one group; runs in order of S.

    Attributes:
        group: the runs.
        k_grid: the k of the curves.
        runs: what each says.
        totals: of each distribution with numbers for every run, by their AIC.
        closures: of the published fit and of the favoured distribution.
        trends: {"mu", "sigma"}: slope on ln S is -alpha of the law through exp(mu), exp(sigma); empty where a run has
            none.
        edges: where bins of ranks begin, evenly spaced in ln rank; the last is beyond V.
        binned: the tokens of the smallest and the largest run in these bins.
    """

    group: Group
    k_grid: tuple[int, ...]
    runs: tuple[RunRanks, ...]
    totals: tuple[Total, ...]
    closures: tuple[Closure, ...]
    trends: dict[str, PowerLawFit]
    edges: tuple[int, ...]
    binned: tuple[RankBin, ...]

    @property
    def favoured(self) -> str | None:
        """The distribution with the smallest sum of AIC over the runs; None where none has numbers."""
        return self.totals[0].distribution if self.totals else None

    @property
    def ends(self) -> tuple[RunRanks, ...]:
        """The smallest and the largest run, or the only one."""
        return tuple(_ends(self.runs))


def _ends(items: Sequence[Of]) -> Sequence[Of]:
    """The first and the last of several, or the only one."""
    return items if len(items) == 1 else (items[0], items[-1])


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Ranks:
    """Fit all distributions to each run, then laws in S to what they derive."""
    k_grid = request.k.grid(min(run.vocab_size or 0 for run in group.runs), DEFAULT_K)
    weights_BD = None
    if group.n_resampled > 1:
        weights_BD = group.weights(request)
    evidence = weigh_group(connection, group, request, k_grid, ("error_entropy",))
    counts = [document_ranks(connection, run.run_id, group.ties) for run in group.runs]
    # One after another: most of it are steps so small that two threads would wait for the interpreter's lock in turns.
    rivals = [
        compare(of_run, weights_BD, k_grid, run.vocab_size or 0, group.n_resampled)
        for run, of_run in zip(group.runs, counts, strict=True)
    ]
    runs = tuple(
        RunRanks(
            run,
            tuple(of_run),
            np.append(neg_ln(of_evidence.measured["rbp"]), of_evidence.measured["cross_entropy"]),
            float(of_evidence.measured["error_entropy"]),
        )
        for run, of_run, of_evidence in zip(group.runs, rivals, evidence, strict=True)
    )
    totals = _totals(runs)
    closures: list[Closure] = []
    if group.n_sizes >= 3:
        names = [PAPER, *(total.distribution for total in totals[:1])]
        closures = [c for name in names for c in _closures(name, runs, evidence, k_grid, group)]
    edges = rank_edges(max(run.vocab_size or 1 for run in _ends(group.runs)), _PER_DECADE)
    drawn = zip(_ends(group.runs), _ends(counts), strict=True)
    binned = tuple(found for run, of_run in drawn for found in _binned(run, of_run, edges))
    return Ranks(group, tuple(k_grid), runs, totals, tuple(closures), _trends(runs, group), tuple(edges), binned)


def _totals(runs: Sequence[RunRanks]) -> tuple[Total, ...]:
    totals = []
    for rivals in zip(*(each.rivals[1:] for each in runs), strict=True):
        name, fits = rivals[0].fit.distribution, [rival.fit for rival in rivals]
        if all(fit.aic is not None for fit in fits):
            aic, bic = sum(fit.aic or 0.0 for fit in fits), sum(fit.bic or 0.0 for fit in fits)
            totals.append(Total(name, aic, bic, sum(each.best == name for each in runs)))
    return tuple(sorted(totals, key=lambda total: total.aic))


def _binned(run: Run, counts: pa.Table, edges: Sequence[int]) -> list[RankBin]:
    """As `rank_shares` counts them."""
    n_tokens = counts["n_tokens"].to_numpy()
    in_bins, _ = np.histogram(counts["rank"].to_numpy(), edges, weights=n_tokens)
    return [
        RankBin(run.size, first, end - 1, int(n), float(n / n_tokens.sum() / (end - first)))
        for (first, end), n in zip(pairwise(edges), in_bins, strict=True)
        if n > 0
    ]


def _closures(
    name: str, runs: Sequence[RunRanks], evidence: Sequence[Evidence], k_grid: Sequence[int], group: Group
) -> list[Closure]:
    rivals = [each.rival(name) for each in runs]
    curves = [rival.curve for rival in rivals if rival.curve is not None]
    if len(curves) < len(runs):
        return []
    S = [each.run.non_embedding_params for each in runs]
    derived_NK, resampled = np.array(curves), [rival.curve_B for rival in rivals if rival.curve_B is not None]
    derived_BNK = np.stack(resampled, axis=1) if len(resampled) == len(runs) else None
    approximated_N2 = _approximated([rival.fit for rival in rivals])
    closures = []
    quantities = [("rbp", k, at) for at, k in enumerate(k_grid)]
    for quantity, k, at in [*quantities, ("cross_entropy", None, len(k_grid)), ("error_entropy", None, len(k_grid))]:
        y_N = np.array([_quantity(e.measured, quantity, at) for e in evidence])
        y_BN = (
            np.column_stack([_quantity(e.resampled, quantity, at) for e in evidence]) if group.n_resampled > 1 else None
        )
        derived_BN = None if derived_BNK is None or y_BN is None else derived_BNK[:, :, at]
        with np.errstate(divide="ignore", invalid="ignore"):  # -ln RBP of 0 or 1 has no ratio; the fit says so
            ratio_N = derived_NK[:, at] / y_N
            ratio_BN = None if derived_BN is None or y_BN is None else derived_BN / y_BN
        place = {("rbp", 1): 0, ("cross_entropy", None): 1}.get((quantity, k))
        by_paper = None if approximated_N2 is None or place is None else fit_power_law(S, approximated_N2[:, place])
        closures.append(
            Closure(
                name,
                quantity,
                k,
                of_one_document(group, fit_power_law(S, y_N, _drawn(group, y_BN))),
                of_one_document(group, fit_power_law(S, derived_NK[:, at], _drawn(group, derived_BN))),
                of_one_document(group, fit_power_law(S, ratio_N, _drawn(group, ratio_BN))),
                by_paper,
            )
        )
    return closures


def _drawn(group: Group, y_BN: Floats | None) -> Resampled | None:
    return None if y_BN is None else Resampled.of(y_BN, group.n_resampled)


def _quantity(curves: dict[str, Floats], quantity: str, at: int) -> Any:
    return neg_ln(curves["rbp"][..., at]) if quantity == "rbp" else curves[quantity]


def _approximated(fits: Sequence[RankFit]) -> Floats | None:
    """(-ln RBP_1, cross-entropy) of each run by the paper's approximation, which needs mu and sigma; shape [N, 2]."""
    pairs = [(fit.params.get("mu"), fit.params.get("sigma")) for fit in fits if fit.distribution == PAPER]
    if not pairs or any(mu is None or sigma is None for mu, sigma in pairs):
        return None
    mu_N, sigma_N = np.array(pairs, float).T
    approximation = derived_approximation(mu_N, sigma_N)
    return np.column_stack([approximation.neg_ln_rbp_1, approximation.cross_entropy_nats])


def _trends(runs: Sequence[RunRanks], group: Group) -> dict[str, PowerLawFit]:
    """A straight line of mu, and of sigma, on ln S is a power law of exp(mu), the median of the lognormal."""
    fits = [each.rival(PAPER) for each in runs]
    if group.n_sizes < 3 or any(rival.fit.params.get("mu") is None for rival in fits):
        return {}
    S, resampled = [each.run.non_embedding_params for each in runs], [rival.mu_sigma_B2 for rival in fits]
    trends = {}
    for at, name in enumerate(("mu", "sigma")):
        y_BN = None
        if all(each is not None for each in resampled):
            with np.errstate(over="ignore"):  # a resample whose mu is beyond all sizes is infinite, and left out
                y_BN = np.exp(np.column_stack([each[:, at] for each in resampled if each is not None]))
        y_N = np.exp([float(rival.fit.params[name] or 0.0) for rival in fits])
        trends[name] = of_one_document(group, fit_power_law(S, y_N, _drawn(group, y_BN)))
    return trends


def keep(store: Store, ranks: Ranks) -> list[Record]:
    """Write each distribution to `rank_fits` and the derived laws to `fits`; return them, a row each, for programs."""
    rows: list[Record] = []
    for each in ranks.runs:
        for rival in each.rivals:
            record = write_rank_fit(store, each.run, ranks.group.ties, rival.fit, _implied(rival, each, ranks))
            rows.append({"kind": "distribution", **ranks.group.names(), **each.run.names(), **record})
    for closure in ranks.closures:
        record = _write_closure(store, ranks.group, closure)
        rows.append({"kind": "closure", "distribution": closure.distribution, **record})
    for name, trend in ranks.trends.items():
        params = trend.record() | {"equation": f"exp({name}) = C * S^(-alpha)", "distribution": PAPER}
        record = record_of(ranks.group, f"lognormal_{name}", trend, ranks.group.run_ids, Method.ols, params=params)
        store.write_record("fits", record["fit_id"], record)
        rows.append({"kind": "trend", **record})
    return rows


def _implied(rival: Rival, of: RunRanks, ranks: Ranks) -> Record:
    """The entries of `rank_fits` beside the parameters of a distribution."""
    implied: Record = {"is_best": rival.fit.distribution == of.best}
    if rival.behind is not None:
        behind = rival.behind
        implied |= {"nats_behind": behind.value, "nats_behind_lo": behind.lo, "nats_behind_hi": behind.hi}
    for name, (lo, hi) in rival.interval.items():
        implied |= {f"{name}_lo": lo, f"{name}_hi": hi}
    if rival.curve is not None:
        ks = [str(k) for k in ranks.k_grid]
        implied |= {"derived_neg_ln_rbp": dict(zip(ks, rival.curve[:-1].tolist(), strict=True))}
        implied |= {"derived_entropy_nats": float(rival.curve[-1])}
    finite = [value if np.isfinite(value) else None for value in of.measured.tolist()]
    implied |= {"measured_neg_ln_rbp": dict(zip(map(str, ranks.k_grid), finite[:-1], strict=True))}
    return implied | {"measured_cross_entropy_nats": finite[-1], "measured_error_entropy_nats": of.error_entropy_nats}


def _write_closure(store: Store, group: Group, closure: Closure) -> Record:
    level = closure.level
    ratio, measured, by_paper = closure.ratio, closure.measured, closure.approximated
    beside = {
        "distribution": closure.distribution,
        "quantity": closure.quantity,
        "measured": {name: getattr(measured, name) for name in ("C", "alpha", "alpha_lo", "alpha_hi", "r2", "status")},
        "level": level.value,
        "level_lo": level.lo,
        "level_hi": level.hi,
        "alpha_more": ratio.alpha,
        "alpha_more_lo": ratio.alpha_lo,
        "alpha_more_hi": ratio.alpha_hi,
        "alpha_approximated": None if by_paper is None else by_paper.alpha,
        "equation": _EQUATION,
    }
    law = {"rbp": "derived_rbp", "cross_entropy": "derived_entropy", "error_entropy": "derived_error_entropy"}
    record = record_of(
        group,
        law[closure.quantity],
        closure.derived,
        group.run_ids,
        Method.ols,
        k=closure.k,
        n=closure.distribution,
        params=closure.derived.record() | beside,
    )
    store.write_record("fits", record["fit_id"], record)
    return record
