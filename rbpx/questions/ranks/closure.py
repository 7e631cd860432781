"""Tests whether one distribution of the ranks, its parameters laws in S, implies all the laws of a larger size.

The sizes below the largest, each predicted from those below it, choose a form; the largest is predicted from all
others. Separate laws of each quantity are the baseline. Source: a conjecture of the RBP paper (arXiv 2510.20387,
section 5).

Shapes: N sizes, D documents, R ranks that occur, Q nodes, Y quantities: -ln RBP_k at each k, H(P), cross-entropy.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.laws.intervals.estimate import (
    NO_ESTIMATE,
    Estimate,
    Recipe,
    by_name,
    document_t,
    estimate,
    few_documents,
    half_width,
)
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.ranks.closure import ClosureFit, fit_form, scatter_half_width
from rbpx.laws.ranks.quadrature import nodes_of
from rbpx.laws.ranks.shapes import RANK_FORMS, ln_mixture
from rbpx.questions.ranks.compare import DocumentRanks, ratio
from rbpx.runs.documents import rank_edges
from rbpx.runs.fits import fit_points, largest_standing, power_law_of
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Evidence, Points
from rbpx.status import Status
from rbpx.store.store import Record

LEAST_SIZES: Final = 4
_PER_DECADE: Final = 4  # bins of residuals
_LEAST: Final = 1e-12  # share of a bin; below it a difference of cumulative shares is rounding


@dataclass(frozen=True, eq=False)
class Sizes:
    """The sizes of a group; the largest is held out, and may occur more than once.

    `ln_y_NY` is ln of each quantity, of H(P) without the bias of counting, `ln_sd_NY` its standard deviation over
    documents.
    """

    S_N: Floats
    counted: Sequence[DocumentRanks]
    ln_y_NY: Floats
    ln_sd_NY: Floats
    V: int
    weights_BD: Floats | None
    n_effective: float

    @property
    def smaller_N(self) -> npt.NDArray[np.bool_]:
        """Whether a size is smaller than the largest."""
        return np.asarray(self.S_N < self.S_N.max())

    @property
    def choosing_S(self) -> list[float]:
        """The sizes that choose a form, each predicted from three smaller ones, or two of three."""
        smaller_S = np.unique(self.S_N[self.smaller_N])
        return list(smaller_S[min(3, len(smaller_S) - 1) :].tolist())

    def ln_y_Y(self, S: float) -> Floats:
        """Ln of each quantity of one size, the mean of its replicates."""
        return np.asarray(self.ln_y_NY[self.S_N == S].mean(axis=0))

    def ratio(self, above_D: Any, below_D: Any, over: float = 1.0) -> Estimate:
        """The ratio of two sums over documents."""
        return ratio(above_D, below_D, self.weights_BD, self.n_effective, over)


def closure_of(
    group: Group,
    k_grid: Sequence[int],
    evidence: Sequence[Evidence],
    points: Sequence[Points],
    counted: Sequence[DocumentRanks],
    weights_BD: Floats | None,
) -> Iterator[Record]:
    """Fits every form to the smaller sizes of a group, and tests its predictions of the largest.

    A row for each form, the chosen one first, and for each quantity that it predicts, then the residuals of the chosen
    one. `reach` is the largest k whose law stands, up to which RBP_k is scored; `error_separate` the median error of
    separate laws; `difference` the measured exponent of -ln RBP_1 minus that of cross-entropy.
    """
    S_N = np.array([run.non_embedding_params for run in group.runs], dtype=np.float64)
    V = max(run.vocab_size or 0 for run in group.runs)
    sizes = Sizes(S_N, counted, *_measured(evidence, group.n_effective), V, weights_BD, group.n_effective)
    reach = largest_standing(fit_points(each, Method.ols) for each in points if each.law == "rbp")
    scored_Y = np.array([reach is not None and k <= reach for k in k_grid] + [True, True])
    smaller, S_new = sizes.smaller_N, float(S_N.max())
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a share of 0 or 1 has no law
        x_N = np.log(S_N[smaller])
        level_Y, alpha_Y = line(x_N, sizes.ln_y_NY[smaller].T).T
        separate_Y = np.exp(level_Y - alpha_Y * (math.log(S_new) - x_N.mean()))
        separate = _typical((np.log(separate_Y) - sizes.ln_y_Y(S_new))[scored_Y])
    of, difference = {(each.law, each.k): each for each in points}, NO_ESTIMATE
    if 1 in k_grid:
        difference = power_law_of(group, of["rbp", 1].over(of["cross_entropy", None])).alpha
    chosen_on = [run.size for run in group.runs if run.non_embedding_params in sizes.choosing_S]
    about = {"reach": reach, "chosen_on": list(dict.fromkeys(chosen_on)), "error_separate": separate}
    about |= by_name(difference=difference)
    names = group.names() | {"run_ids": list(group.run_ids)}

    nodes = nodes_of(V, k_grid)
    seen_NQ = np.array([nodes.moved(each.rank_R, each.n_R) for each in counted])

    def fitted(at_N: npt.NDArray[np.bool_], near: ClosureFit) -> ClosureFit:
        return fit_form(near.form, nodes, S_N[at_N], seen_NQ[at_N], near)

    found = list[_Form]()
    for name, form in RANK_FORMS.items():
        fit = fit_form(form, nodes, S_N[smaller], seen_NQ[smaller])
        whole = fitted(S_N > 0, fit)
        own = fit_form(form, nodes, S_N[-1:], seen_NQ[~smaller].sum(axis=0, keepdims=True), fit)
        if all(np.isfinite(each.loglik) for each in (fit, whole, own)):
            below = {S: fitted(S_N < S, fit) for S in sizes.choosing_S}
            nats = float(fit.likelihood(S_N[~smaller], seen_NQ[~smaller]).sum() / seen_NQ[~smaller].sum())
            found.append(_Form(name, fit, whole, own, nats, _error_choice(sizes, below)))
    if not found:
        return
    largest = counted[-1]
    best_R = _at_ranks(max(found, key=lambda each: each.heldout_nats).fit, S_new, largest.rank_R)
    found.sort(key=lambda each: (not each.fit.converged, each.error_choice))
    for each in found:
        lost_D = largest.tokens_DR @ (best_R - _at_ranks(each.fit, S_new, largest.rank_R))
        behind = sizes.ratio(lost_D, largest.tokens_DR.sum(axis=1))
        held = [*_held(sizes, each, k_grid, scored_Y, separate_Y)]
        yield {"kind": "form", **names, **by_name(behind=behind), **_form(sizes, each, held, k_grid), **about}
        which = {"distribution": each.name, "n_parameters": each.fit.form.n_parameters}
        yield from ({"kind": "quantity", **names, **which, **row} for row in held)
    for row in _residuals(sizes, found[0].own, largest):
        yield {"kind": "residual", **names, "distribution": found[0].name, **row}


@dataclass(frozen=True, eq=False)
class _Form:
    """A form fitted to the smaller sizes, to all (`whole`), and to the largest alone (`own`).

    `heldout_nats` is the mean log-likelihood of a token of the largest size by `fit`; `error_choice` the median of |ln
    predicted - ln measured| over quantities, mean over the sizes that choose.
    """

    name: str
    fit: ClosureFit
    whole: ClosureFit
    own: ClosureFit
    heldout_nats: float
    error_choice: float


def _measured(evidence: Sequence[Evidence], n_effective: float) -> tuple[Floats, Floats]:
    """Ln of each quantity of each size, [N, Y], and its sd over bootstrap replicates."""
    wider = 0.0 if n_effective == 1 else math.sqrt(few_documents(n_effective))
    rows, sds = [], []
    for each in evidence:
        counted, of = each.measured, each.replicates
        plug_in = float(counted["error_entropy"])
        corrected = estimate(plug_in, of["error_entropy"], n_effective, Recipe.normal).value or plug_in
        rows.append([*neg_ln(counted["rbp"]), corrected, float(counted["cross_entropy"])])
        y_BY = np.column_stack([neg_ln(of["rbp"]), of["error_entropy"], of["cross_entropy"]])
        usable = [column[np.isfinite(column) & (column > 0)] for column in y_BY.T]
        sds.append([wider * float(np.log(c).std(ddof=1)) if len(c) > 1 else 0.0 for c in usable])
    with np.errstate(divide="ignore"):  # a share of 1 has no logarithm, and its k is left out
        return np.log(rows), np.array(sds)


def _error_choice(sizes: Sizes, fits: dict[float, ClosureFit]) -> float:
    errors = []
    for S, fit in fits.items():
        ln_y_Y = sizes.ln_y_Y(S)
        known_Y = np.isfinite(ln_y_Y)  # a measured share of 1 has no error
        with np.errstate(divide="ignore"):
            errors.append(np.median(np.abs(np.log(fit.derived(np.array([S]))[0][known_Y]) - ln_y_Y[known_Y])))
    return float(np.mean(errors))


def _typical(off: Floats) -> float | None:
    return float(np.median(np.abs(off))) if len(off) and np.all(np.isfinite(off)) else None


def _held(
    sizes: Sizes, fits: _Form, k_grid: Sequence[int], scored_Y: npt.NDArray[np.bool_], separate_Y: Floats
) -> Iterator[Record]:
    """The known quantities of the largest size, nats, as one form predicts them.

    `scored` are RBP up to `reach`, H(P) without its bias, and cross-entropy. `predicted` is from the smaller sizes,
    with the interval of a new model; `own` from the largest itself, over documents; `separate` by a law of this
    quantity alone.
    """
    S_new, smaller = float(sizes.S_N.max()), sizes.smaller_N
    predicted_Y, own_Y = (each.derived(np.array([S_new]))[0] for each in (fits.fit, fits.own))
    with np.errstate(divide="ignore", invalid="ignore"):  # a quantity of 0 has no ratio, and is left out
        ratio_NY = sizes.ln_y_NY[smaller] - np.log(fits.fit.derived(sizes.S_N[smaller]))
    measured_Y, sd_Y = np.exp(sizes.ln_y_Y(S_new)), sizes.ln_sd_NY[~smaller].max(axis=0)
    names: list[tuple[str, int | None]] = [("rbp", k) for k in k_grid]
    for at, (quantity, k) in enumerate([*names, ("error_entropy", None), ("cross_entropy", None)]):
        measured, predicted, own = (float(each_Y[at]) for each_Y in (measured_Y, predicted_Y, own_Y))
        known = np.all(np.isfinite([measured, predicted, own, *ratio_NY[:, at]]))
        if not known or min(measured, predicted, own) <= 0:
            continue
        scatter, dof, unit = scatter_half_width(ratio_NY[:, at], sizes.S_N[smaller], S_new)
        # Few misses at the new size add noise that the smaller sizes need not show.
        half = half_width(scatter=scatter, dof=dof, own=float(sd_Y[at]) / math.sqrt(unit), unit=unit)
        reach, own_reach = math.exp(half), math.exp(document_t(sizes.n_effective) * float(sd_Y[at]))
        said: Record = {"quantity": quantity, "k": k, "scored": bool(scored_Y[at]), "measured": measured}
        said |= by_name(
            predicted=Estimate(predicted, predicted / reach, predicted * reach),
            own=Estimate(own, own / own_reach, own * own_reach),
        )
        said |= {"separate": float(separate_Y[at]) if np.isfinite(separate_Y[at]) else None}
        inside = said["predicted_lo"] <= measured <= said["predicted_hi"]
        yield said | {"inside": inside, "error": relative_error(said, "predicted")}


def _form(sizes: Sizes, fits: _Form, held: Sequence[Record], k_grid: Sequence[int]) -> Record:
    """The row of one form.

    `error` is the median of |ln predicted - ln measured|; a mean square would depend on the largest k alone, with its
    few misses. It `closes` the laws if all scored are inside. `laws` are its parameters over all sizes: at_ref + slope
    ln (S / S_ref); params has the slopes through the smaller sizes.
    """
    scored = [each for each in held if each["scored"]]
    with np.errstate(divide="ignore"):
        derived_NY, x_N = np.log(fits.whole.derived(sizes.S_N)), np.log(sizes.S_N)
    converged, parameters = all(each.converged for each in (fits.fit, fits.whole, fits.own)), fits.fit.form.parameters
    alpha_1 = _slope(x_N, derived_NY[:, k_grid.index(1)]) if 1 in k_grid else None
    alpha, n_inside = _slope(x_N, derived_NY[:, -1]), sum(each["inside"] for each in scored)
    error, error_own = (
        _typical(np.array([math.log(each[by] / each["measured"]) for each in scored])) for by in ("predicted", "own")
    )
    of_parameters = zip(parameters, *fits.whole.coefficient_MP.tolist(), strict=True)
    return {
        "distribution": fits.name,
        "n_parameters": len(parameters),
        "status": Status.ok if converged else Status.not_converged,
        "error": error,
        "error_own": error_own,
        "error_choice": fits.error_choice if math.isfinite(fits.error_choice) else None,
        "heldout_nats": fits.heldout_nats,
        "alpha_rbp_1": alpha_1,
        "alpha_cross_entropy": alpha,
        "difference_derived": None if alpha_1 is None or alpha is None else alpha_1 - alpha,
        "laws": [{"parameter": p, "at_ref": a, "slope": b} for p, a, b in of_parameters],
        "closes": converged and n_inside == len(scored) > 0,
        "n_inside": n_inside,
        "n_scored": len(scored),
        "params": {"smaller": dict(zip(parameters, fits.fit.coefficient_MP[1].tolist(), strict=True))},
    }


def relative_error(held: Record, by: str) -> float | None:
    """The relative error of one prediction, if there is one."""
    return None if held[by] is None else float(held[by] / held["measured"] - 1)


def _slope(x_N: Floats, ln_y_N: Floats) -> float | None:
    return float(line(x_N, ln_y_N)[1]) if np.all(np.isfinite(ln_y_N)) else None


def _at_ranks(fit: ClosureFit, S: float, rank_R: Floats) -> Floats:
    """Ln of the share of some ranks, [R]: normalised at the nodes, evaluated at the ranks."""
    nodes, none_R = fit.nodes, np.zeros(len(rank_R))
    at = replace(nodes, x_Q=np.append(nodes.x_Q, rank_R), weight_Q=np.append(nodes.weight_Q, none_R))
    return np.asarray(ln_mixture(fit.form.shares(fit.theta(np.array([S])), at))[0, len(nodes.x_Q) :])


def _residuals(sizes: Sizes, own: ClosureFit, of: DocumentRanks) -> Iterator[Record]:
    """Observed over expected tokens in bins of ranks, at the largest size, by the form fitted to it."""
    p_V = np.exp(_at_ranks(own, float(sizes.S_N.max()), np.arange(1, sizes.V + 1, dtype=np.float64)))
    expected, tokens_D = np.concatenate([[0.0], np.cumsum(p_V)]), of.tokens_DR.sum(axis=1)
    for begin, end in pairwise(rank_edges(sizes.V, _PER_DECADE)):
        seen_D = of.tokens_DR @ ((of.rank_R >= begin) & (of.rank_R < end)).astype(np.float64)
        share = float(expected[end - 1] - expected[begin - 1])
        of_share = by_name(ratio=sizes.ratio(seen_D, tokens_D, share) if share > _LEAST else NO_ESTIMATE)
        yield {"first_rank": begin, "last_rank": end - 1, "n_tokens": int(seen_D.sum()), **of_share}
