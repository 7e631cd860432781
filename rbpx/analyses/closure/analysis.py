"""Closure (verb closure): chooses a form of the rank distribution by the smaller sizes and tests it on the largest.

Source: that cross-entropy and RBP follow from one distribution is a conjecture of the RBP paper (arXiv 2510.20387,
section 5), for a lognormal whose parameters are laws in S. Shapes: N sizes, Y quantities, as in `held_out`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np

from rbpx.analyses.closure.held_out import FormResult, Held, Measured, Residual, judge_forms
from rbpx.config.request import Request
from rbpx.groups.documents import document_ranks
from rbpx.groups.fits import fit_points, largest_standing
from rbpx.groups.group import Group
from rbpx.groups.points.sizes import Evidence, size_points, weigh_group
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Recipe, by_name, estimate, few_documents
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.laws.power.law import PowerLawFit, fit_power_law
from rbpx.status import Status
from rbpx.store.store import Record, Store
from rbpx.ties import Ties

DEFAULT_K: Final = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)


@dataclass(frozen=True, eq=False)
class Closures:
    """The forms of one group.

    Attributes:
        group: the runs, in order of S.
        k_grid: the k of RBP.
        reach: the largest k whose law stands, up to which RBP_k is scored; None where no law stands.
        forms: what each form predicts; the one that comes closest at the sizes that choose first.
        chosen_on: the sizes that choose; empty where there are too few to hold one out beside the largest.
        separate: median error of separate laws over the same quantities; None where nothing is scored.
        exponents: the measured law of -ln RBP_1 over cross-entropy, whose alpha is the difference of both exponents;
            None where k = 1 is not asked for.
        residuals: by rank, of the first form when fitted to the largest size itself.
        status: ok, or why there are no forms.
    """

    group: Group
    k_grid: tuple[int, ...]
    reach: int | None
    forms: tuple[FormResult, ...]
    chosen_on: tuple[str, ...]
    separate: float | None
    exponents: PowerLawFit | None
    residuals: tuple[Residual, ...]
    status: Status


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Closures:
    """Fit every form to the smaller sizes of a group, and judge what it predicts of the largest."""
    k_grid = request.k.grid(group.vocab_size, DEFAULT_K)
    if group.ties is Ties.mid:
        return Closures(group, tuple(k_grid), None, (), (), None, None, (), Status.mid_ranks)
    evidence = weigh_group(connection, group, request, k_grid, ("error_entropy",))
    points = size_points(group, evidence, request, k_grid, ("rbp", "cross_entropy"))
    reach = largest_standing(fit_points(each, Method.ols) for each in points[:-1])
    with np.errstate(divide="ignore"):  # a share of 1 has no logarithm, and its k is left out
        ln_y_NY = np.log(_quantities(evidence, group))
    sizes = Measured(
        S_N=np.array([run.non_embedding_params for run in group.runs], dtype=np.float64),
        counts=[document_ranks(connection, run.run_id, group.ties) for run in group.runs],
        ln_y_NY=ln_y_NY,
        ln_sd_NY=_spread(evidence, group),
        V=max(run.vocab_size or 0 for run in group.runs),
        weights_BD=group.weights(request) if group.n_resampled > 1 else None,
        n_resampled=group.n_resampled,
    )
    scored_Y = [reach is not None and k <= reach for k in k_grid] + [True, True]
    forms, residuals, separate = judge_forms(sizes, k_grid, scored_Y)
    ratio = points[k_grid.index(1)].over(points[-1]) if 1 in k_grid else None
    exponents = None if ratio is None else fit_power_law(sizes.S_N, ratio.y_N, ratio.resampled)
    chosen_on = tuple(dict.fromkeys(run.size for run in group.runs if run.non_embedding_params in sizes.choosing_S))
    return Closures(group, tuple(k_grid), reach, forms, chosen_on, separate, exponents, residuals, Status.ok)


def _quantities(evidence: Sequence[Evidence], group: Group) -> Floats:
    """-ln RBP_k, H(P) less the bias of counting, and cross-entropy of each size, [N, Y]."""
    rows = []
    for each in evidence:
        plug_in, D = float(each.measured["error_entropy"]), group.n_resampled
        corrected = estimate(plug_in, each.resampled["error_entropy"], D, Recipe.normal).value or plug_in
        rows.append([*neg_ln(each.measured["rbp"]), corrected, float(each.measured["cross_entropy"])])
    return np.array(rows)


def _spread(evidence: Sequence[Evidence], group: Group) -> Floats:
    """Standard deviation over resampled documents of ln of each quantity, [N, Y]; 0 where there is one document."""
    wider = 0.0 if group.n_resampled == 1 else math.sqrt(few_documents(group.n_resampled))
    rows = []
    for each in evidence:
        of = each.resampled
        y_BY = np.column_stack([neg_ln(of["rbp"]), of["error_entropy"], of["cross_entropy"]])
        usable = [column[np.isfinite(column) & (column > 0)] for column in y_BY.T]
        rows.append([wider * float(np.log(c).std(ddof=1)) if len(c) > 1 else 0.0 for c in usable])
    return np.array(rows)


def keep(store: Store, closures: Closures) -> list[Record]:
    """A row for each form and for each of its quantities, and the residuals of the first; no law is stored."""
    names = closures.group.names() | {"run_ids": list(closures.group.run_ids)}
    measured = NO_ESTIMATE if closures.exponents is None else closures.exponents.exponent
    rows: list[Record] = []
    for form in closures.forms:
        about: Record = names | {"distribution": form.name, "n_parameters": form.n_parameters}
        row: Record = {"kind": "form", **about, "reach": closures.reach, "status": form.status.value}
        row |= {name: getattr(form, name) for name in ("closes", "n_inside", "n_scored", "error", "error_own")}
        row |= {"error_choice": form.error_choice, "chosen_on": list(closures.chosen_on)}
        row |= {"error_separate": closures.separate, "heldout_nats": form.heldout_nats, **by_name(behind=form.behind)}
        row |= {"alpha_rbp_1": form.alpha_rbp_1, "alpha_cross_entropy": form.alpha_cross_entropy}
        row |= {"difference_derived": form.difference, **by_name(difference=measured)}
        rows.append(row | {"laws": list(form.laws), "params": {"smaller": form.slopes}})
        rows += [{"kind": "quantity", **about, **_of_quantity(held)} for held in form.held]
    for each in closures.residuals:
        row = {"kind": "residual", **names, "distribution": closures.forms[0].name, **vars(each)}
        rows.append(row | by_name(ratio=each.ratio))
    return rows


def _of_quantity(held: Held) -> Record:
    row: Record = {name: getattr(held, name) for name in ("quantity", "k", "scored", "measured")}
    row |= by_name(predicted=held.foretold, own=held.fitted)
    row |= {name: getattr(held, name) for name in ("separate", "inside", "error")}
    return row | {name: None for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
