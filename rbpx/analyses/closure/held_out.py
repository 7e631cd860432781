"""What forms of the rank distribution, fitted to the smaller sizes, say of the largest one, and how far they are off.

Shapes: N sizes, D documents, R ranks that occur, Q places, Y quantities: -ln RBP_k at each k, H(P), cross-entropy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from rbpx.analyses.closure.results import FormResult, Held, Line, Residual
from rbpx.groups.token_ranks import rank_edges
from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.closure import FormFit, fit_form, scatter_half_width
from rbpx.laws.interval import Estimate, document_t, half_width
from rbpx.laws.logarithms import line
from rbpx.laws.rank_shapes import RANK_FORMS, Places, RankForm, mixed, places_of
from rbpx.status import Status

__all__ = ["Measured", "judge_forms"]

Floats = npt.NDArray[np.float64]

_PER_DECADE: Final = 4  # bins of residuals
_LEAST: Final = 1e-12  # share of a bin, below which a difference of cumulative shares is rounding


@dataclass(frozen=True, eq=False)
class Measured:
    """The sizes of one group, in order.

    Attributes:
        S_N: sizes; the last may occur more than once (replicates), and is held out.
        counts: of each, doc_id, rank, n_tokens (`document_ranks`).
        ln_y_NY: ln of each quantity.
        ln_sd_NY: its standard deviation over documents.
        V: the largest vocabulary.
        weights_BD: how often each document is drawn in each resample; None for a single document.
        n_resampled: documents, or texts that several were cut from.
    """

    S_N: Floats
    counts: Sequence[pa.Table]
    ln_y_NY: Floats
    ln_sd_NY: Floats
    V: int
    weights_BD: Floats | None
    n_resampled: int


def judge_forms(
    sizes: Measured, k_grid: Sequence[int], scored_Y: Sequence[bool]
) -> tuple[tuple[FormResult, ...], tuple[Residual, ...], float | None]:
    """Every form against the largest size.

    Returns:
        The forms: those with the most quantities inside first, and among these the closest; the residuals of the first
        at the largest size, and the error of separate laws.
    """
    places = places_of(sizes.V, k_grid)
    seen_NQ = np.array([places.nodes.moved(*_by_rank(counts)) for counts in sizes.counts])
    smaller = sizes.S_N < sizes.S_N.max()
    separate_Y = _straight(sizes, smaller)
    results, held_fits, own_fits = [], [], []
    for name, form in RANK_FORMS.items():
        fit = fit_form(form, places, sizes.S_N[smaller], seen_NQ[smaller])
        whole = fit_form(form, places, sizes.S_N, seen_NQ)
        own = fit_form(form, places, sizes.S_N[~smaller][:1], seen_NQ[~smaller].sum(axis=0, keepdims=True))
        if not all(np.isfinite(each.loglik) for each in (fit, whole, own)):
            continue
        held = _held(sizes, smaller, fit, own, k_grid, scored_Y, separate_Y)
        results.append(_result(name, form, sizes, smaller, seen_NQ, (fit, whole, own), held, k_grid))
        held_fits.append(fit)
        own_fits.append(own)
    if not results:
        return (), (), None
    top = max(range(len(results)), key=lambda at: results[at].heldout_nats)
    compared = _compared(sizes, results, held_fits, held_fits[top])
    order = sorted(range(len(compared)), key=lambda at: _key(compared[at]))
    scored = np.array(scored_Y)
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of 0 or 1 has no law, and no error
        off_Y = np.log(separate_Y) - _at_largest(sizes, smaller)
    separate = _typical(off_Y[scored])
    return tuple(compared[at] for at in order), _residuals(sizes, own_fits[order[0]], places), separate


def _key(result: FormResult) -> tuple[bool, float, float]:
    off = -result.heldout_nats if result.error is None else result.error
    return result.status is not Status.ok, -float(result.n_inside), off


def _typical(off: Floats) -> float | None:
    return float(np.median(np.abs(off))) if len(off) and np.all(np.isfinite(off)) else None


def _by_rank(counts: pa.Table) -> tuple[Floats, Floats]:
    rank_R, column = np.unique(counts["rank"].to_numpy(), return_inverse=True)
    return rank_R, np.bincount(column, counts["n_tokens"].to_numpy()).astype(np.float64)


def _at_largest(sizes: Measured, smaller: npt.NDArray[np.bool_]) -> Floats:
    """Ln of each quantity of the largest size, the mean of its replicates, [Y]."""
    return np.asarray(sizes.ln_y_NY[~smaller].mean(axis=0))


def _straight(sizes: Measured, smaller: npt.NDArray[np.bool_]) -> Floats:
    """What separate laws through the smaller sizes say of the largest, [Y]; no number where a share is 0 or 1."""
    x_N = np.log(sizes.S_N[smaller])
    beyond = float(np.log(sizes.S_N.max())) - x_N.mean()
    with np.errstate(invalid="ignore", over="ignore"):
        level_alpha_Y2 = line(x_N, sizes.ln_y_NY[smaller].T)
        return np.asarray(np.exp(level_alpha_Y2[:, 0] - level_alpha_Y2[:, 1] * beyond))


def _held(
    sizes: Measured,
    smaller: npt.NDArray[np.bool_],
    fit: FormFit,
    own: FormFit,
    k_grid: Sequence[int],
    scored_Y: Sequence[bool],
    separate_Y: Floats,
) -> tuple[Held, ...]:
    S_new = float(sizes.S_N.max())
    predicted_Y, own_Y = fit.derived(np.array([S_new]))[0], own.derived(np.array([S_new]))[0]
    with np.errstate(divide="ignore", invalid="ignore"):  # a quantity of 0 has no ratio, and is left out
        ratio_NY = sizes.ln_y_NY[smaller] - np.log(fit.derived(sizes.S_N[smaller]))
    measured_Y, sd_Y = np.exp(_at_largest(sizes, smaller)), sizes.ln_sd_NY[~smaller].max(axis=0)
    names: list[tuple[str, int | None]] = [("rbp", k) for k in k_grid]
    held = []
    for at, (quantity, k) in enumerate([*names, ("error_entropy", None), ("cross_entropy", None)]):
        values = (measured_Y[at], predicted_Y[at], own_Y[at])
        usable = all(np.isfinite(values)) and min(values) > 0 and np.all(np.isfinite(ratio_NY[:, at]))
        if not usable:
            continue
        scatter, dof, unit = scatter_half_width(ratio_NY[:, at], sizes.S_N[smaller], S_new)
        # few misses are noise of their own at the new size, which the scatter of the smaller ones need not show
        half = half_width(scatter=scatter, dof=dof, own=float(sd_Y[at]) / math.sqrt(unit), unit=unit)
        reach, own_reach = math.exp(half), math.exp(document_t(sizes.n_resampled) * float(sd_Y[at]))
        held.append(
            Held(
                quantity,
                k,
                bool(scored_Y[at]),
                float(values[0]),
                float(values[1]),
                float(values[1]) / reach,
                float(values[1]) * reach,
                float(values[2]),
                float(values[2]) / own_reach,
                float(values[2]) * own_reach,
                float(separate_Y[at]),
            )
        )
    return tuple(held)


def _result(
    name: str,
    form: RankForm,
    sizes: Measured,
    smaller: npt.NDArray[np.bool_],
    seen_NQ: Floats,
    fits: tuple[FormFit, FormFit, FormFit],
    held: tuple[Held, ...],
    k_grid: Sequence[int],
) -> FormResult:
    fit, whole, own = fits
    scored = [each for each in held if each.scored]
    of_predicted = _typical(np.array([math.log(each.predicted / each.measured) for each in scored]))
    of_own = _typical(np.array([math.log(each.own / each.measured) for each in scored]))
    heldout_nats = float(fit.likelihood(sizes.S_N[~smaller], seen_NQ[~smaller]).sum() / seen_NQ[~smaller].sum())
    with np.errstate(divide="ignore"):
        derived_NY, x_N = np.log(whole.derived(sizes.S_N)), np.log(sizes.S_N)
    alpha_1 = _slope(x_N, derived_NY[:, k_grid.index(1)]) if 1 in k_grid else None
    converged = all(each.converged for each in (fit, whole, own))
    at_ref_P, slope_P = whole.coefficient_MP
    return FormResult(
        name,
        form.label,
        form.n_parameters,
        Status.ok if converged else Status.not_converged,
        held,
        of_predicted,
        of_own,
        heldout_nats,
        None,
        alpha_1,
        _slope(x_N, derived_NY[:, -1]),
        tuple(Line(p, float(a), float(b)) for p, a, b in zip(form.parameters, at_ref_P, slope_P, strict=True)),
        dict(zip(form.parameters, fit.coefficient_MP[1].tolist(), strict=True)),
    )


def _slope(x_N: Floats, ln_y_N: Floats) -> float | None:
    """The exponent of the line; None where a form takes a share for 0 or 1."""
    return float(line(x_N, ln_y_N)[1]) if np.all(np.isfinite(ln_y_N)) else None


def _compared(
    sizes: Measured, results: Sequence[FormResult], fits: Sequence[FormFit], best: FormFit
) -> list[FormResult]:
    """Each form with what it loses to the most likely one at the largest size, over resampled documents."""
    counts = sizes.counts[-1]
    rank_R, column = np.unique(counts["rank"].to_numpy(), return_inverse=True)
    doc, tokens = counts["doc_id"].to_numpy(), counts["n_tokens"].to_numpy().astype(np.float64)
    n_documents = int(doc.max()) + 1 if sizes.weights_BD is None else sizes.weights_BD.shape[1]
    tokens_DR = csr_array((tokens, (doc, column)), (n_documents, len(rank_R)))
    tokens_D = np.asarray(tokens_DR.sum(axis=1), dtype=np.float64)
    best_R = _at_ranks(best, float(sizes.S_N.max()), rank_R)
    compared = []
    for result, fit in zip(results, fits, strict=True):
        lost_D = tokens_DR @ (best_R - _at_ranks(fit, float(sizes.S_N.max()), rank_R))
        value = float(lost_D.sum() / tokens_D.sum())
        behind = Estimate(value, None, None)
        if sizes.weights_BD is not None:
            with np.errstate(invalid="ignore"):  # a resample that draws no token has no mean, and is left out
                lost_B = (sizes.weights_BD @ lost_D) / (sizes.weights_BD @ tokens_D)
            behind = estimate(value, lost_B, sizes.n_resampled, Recipe.uncentred)
        compared.append(FormResult(**{**vars(result), "behind": behind}))
    return compared


def _at_ranks(fit: FormFit, S: float, rank_R: Floats) -> Floats:
    """Ln of the share of some ranks, [R]: normalised at the places, evaluated at the ranks."""
    places = fit.places
    at = Places(
        np.concatenate([places.x_Q, rank_R]),
        np.concatenate([places.ln_x_Q, np.log(rank_R)]),
        np.concatenate([places.ln_ranks_Q, np.full(len(rank_R), -np.inf)]),
        places.V,
        places.upto_K,
        places.nodes,
    )
    return np.asarray(mixed(fit.form.shares(fit.theta(np.array([S])), at))[0, len(places.x_Q) :])


def _residuals(sizes: Measured, own: FormFit, places: Places) -> tuple[Residual, ...]:
    """Observed over expected tokens in bins of ranks, at the largest size, for a form fitted to that size itself."""
    V, S = places.V, float(sizes.S_N.max())
    edges = rank_edges(V, _PER_DECADE)
    p_V = np.exp(_at_ranks(own, S, np.arange(1, V + 1, dtype=np.float64)))
    expected = np.concatenate([[0.0], np.cumsum(p_V)])
    counts = sizes.counts[-1]
    rank, doc, tokens = (counts[name].to_numpy() for name in ("rank", "doc_id", "n_tokens"))
    n_documents = int(doc.max()) + 1 if sizes.weights_BD is None else sizes.weights_BD.shape[1]
    tokens_D = np.bincount(doc, tokens, n_documents)
    residuals = []
    for begin, end in pairwise(edges):
        here = (rank >= begin) & (rank < end)
        seen_D = np.bincount(doc[here], tokens[here], n_documents)
        share = float(expected[end - 1] - expected[begin - 1])
        ratio = float(seen_D.sum() / tokens_D.sum() / share) if share > _LEAST else None
        lo = hi = None
        if sizes.weights_BD is not None and ratio is not None:
            with np.errstate(invalid="ignore"):
                ratio_B = (sizes.weights_BD @ seen_D) / (sizes.weights_BD @ tokens_D) / share
            ends = estimate(ratio, ratio_B, sizes.n_resampled, Recipe.uncentred)
            lo, hi = ends.lo, ends.hi
        residuals.append(Residual(begin, end - 1, int(seen_D.sum()), ratio, lo, hi))
    return tuple(residuals)
