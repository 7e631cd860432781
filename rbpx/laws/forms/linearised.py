"""Averages forms in several axes, linearised about their optima, with a smooth misfit.

Each form is linearised about its robust optimum, ln y = f + J (theta - theta_0), with a wide normal prior on its
constants; it may bend or drift. Misfit is a Gaussian process in the logarithms of the axes, plus scatter, part of which
the checkpoints of a run share. Weights are prior * evidence^.85: small misfit common to all forms would otherwise
separate them too confidently (P. Gruenwald and T. van Ommen, Bayesian Analysis 12, 2017). docs/explanation/surfaces.md
says how the constants were chosen.

Shapes: N points, T targets, A axes, P constants, V scales, G components, R runs of n points each.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import softmax

from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.numeric import Floats

_LENGTHS: Final = (0.7, 1.4, 2.8, 5.6)  # of the misfit, in the logarithm of an axis
_MISFITS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)  # standard deviation of the misfit over that of the scatter
_NONE: Final = 0.2  # prior weight of no misfit
_IN_COMMON: Final = (0.0, 0.5, 0.9, 0.97)  # shared part of the variance of the checkpoints of a run
_SCALES: Final = np.array([0.25, 0.4, 0.63, 1.0, 1.6, 2.5, 4.0, 6.0])  # of the scatter over its estimate
_SCATTER: Final = 0.006  # of ln y, prior
_SCATTER_COUNTS: Final = 2.0  # points that the prior counts for
_DRIFTS: Final = 0.4  # prior weight of a form that drifts
_BENT: Final = 0.24  # prior weight of one bend, where bends are possible
_BENDS: Final = (0.33, 0.67)  # quantiles of an axis
_BENDING: Final = 0.4  # prior standard deviation of the relative change of an exponent at a bend
_MIXING: Final = 0.1  # of that of the first axis with one unit of the logarithm of the second
_ROUNDING: Final = 0.5  # of a logarithm, the width of a bend
_FEWEST: Final = 4  # values along an axis, for a bend
_SAME: Final = 0.01  # of a logarithm
_OWN: Final = 0.25  # prior standard deviation of the relative change of an exponent by unit of its own logarithm
_OTHER: Final = 0.5  # by unit of the logarithm of another axis
_EVIDENCE: Final = 0.85
_OUTLYING: Final = 5.0  # standard deviations, from the median, beyond which a point counts less
_EXACT: Final = 1e-7  # of ln y, the least distance from a form
_NUGGET: Final = 1e-8  # of the variance of the misfit, against rounding
_NOWHERE: Final = 1e5  # logarithm of an axis, beyond the reach of misfit
_NORMAL: Final = 10**6  # degrees of freedom


@dataclass(frozen=True, eq=False)
class LinearisedForm:
    """A form linearised about its optimum.

    Attributes:
        prior: of these constants; with sum 1 where the form has several optima.
        J_NP: derivatives of ln y by its constants, times their prior standard deviations.
        slope_NA: derivatives by the logarithm of each axis.
    """

    name: str
    prior: float
    ln_y_N: Floats
    J_NP: Floats
    slope_NA: Floats
    ln_y_T: Floats
    J_TP: Floats
    slope_TA: Floats


@dataclass(frozen=True, eq=False)
class FormMixture:
    """Averaged forms: a mixture of ln y for each of T targets, and the form of each component."""

    mixture: TMixture
    name_G: NDArray[np.str_]

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each form."""
        names = dict.fromkeys(self.name_G.tolist())
        return {name: float(self.mixture.weight[0, self.name_G == name].sum()) for name in names}


def average_linearised(
    forms: Sequence[LinearisedForm], x_NA: Floats, x_TA: Floats | None, ln_y_N: Floats, run_N: NDArray[np.int64]
) -> FormMixture:
    """Averages forms that are linearised at the same points; x are logarithms of axes, `run_N` the run of each point.

    Without `x_TA` targets are functions of the constants alone, without misfit and scatter.
    """
    found = [(each.form.name, *_posterior(each)) for each in _components(forms, x_NA, x_TA, ln_y_N, run_N)]
    names, centres, scales, ln_weights = zip(*found, strict=True)
    centre_TG, scale_TG = np.hstack(centres), np.hstack(scales)
    weight_TG = np.broadcast_to(softmax(np.concatenate(ln_weights)), centre_TG.shape)
    return FormMixture(TMixture(centre_TG, scale_TG, weight_TG, _NORMAL), np.repeat(names, len(_SCALES)))


def draw_linearised(
    forms: Sequence[LinearisedForm],
    x_NA: Floats,
    x_TA: Floats,
    ln_y_N: Floats,
    run_N: NDArray[np.int64],
    n: int,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Joint draws of ln y of the law at all targets, [n, T], and of the scatter of a run about it, [n]."""
    found = list(_components(forms, x_NA, x_TA, ln_y_N, run_N))
    weight_GV = softmax(np.concatenate([_posterior(each)[2] for each in found]))
    rng = np.random.default_rng(seed)
    times_GV = rng.multinomial(n, weight_GV).reshape(len(found), len(_SCALES))
    apart_TT = ((x_TA[:, None] - x_TA) ** 2).sum(axis=2)
    drawn, scatter = [], []
    for each, times_V in zip(found, times_GV, strict=True):
        if not times_V.any():
            continue
        kind, (scale_V, theta_PV, known_PV, toward_TP, _) = each.kind, each.coefficients
        root_TT = np.zeros((1, 1))
        if kind.misfit:
            left_TT = kind.misfit**2 * np.exp(-apart_TT / (2 * kind.length**2)) - kind.white_TN @ kind.white_TN.T
            root_TT = np.linalg.cholesky(left_TT + _NUGGET * kind.misfit**2 * np.eye(len(left_TT)))
        centre_T = each.form.ln_y_T + kind.white_TN @ each.left_N
        for v in np.flatnonzero(times_V).tolist():
            constants_KP = theta_PV[:, v] + rng.standard_normal((times_V[v], len(theta_PV))) / np.sqrt(known_PV[:, v])
            misfit_KT = rng.standard_normal((times_V[v], len(root_TT))) @ root_TT.T
            drawn.append(centre_T + constants_KP @ toward_TP.T + scale_V[v] * misfit_KT)
            scatter.append(np.full(times_V[v], scale_V[v]))
    return np.vstack(drawn), np.concatenate(scatter)


def without_each(
    forms: Sequence[LinearisedForm], x_NA: Floats, x_TA: Floats, ln_y_N: Floats, run_N: NDArray[np.int64]
) -> Floats:
    """The move of the mean of ln y at each target without run r, [R, T]; forms stay linearised, with their scatter.

    With K the inverse covariance of the points, the error of a run predicted by the others is e_r from K_rr e_r = (K
    y)_r; it moves the targets by -W_r e_r, W being their weights on the points.
    """
    runs, means, moves, ln_weights, ln_without = _by_count(run_N), [], [], [], []
    for each in _components(forms, x_NA, x_TA, ln_y_N, run_N):
        centre_TV, _, ln_weight_V = _posterior(each)
        off_RTV, ln_density_RV = _left_out(each, runs)
        means.append(centre_TV)
        moves.append(off_RTV)
        ln_weights.append(ln_weight_V)
        ln_without.append(ln_weight_V - _EVIDENCE * ln_density_RV)
    mean_TG, move_RTG = np.hstack(means), np.concatenate(moves, axis=2)
    weight_RG = softmax(np.hstack(ln_without), axis=1)
    now_T = mean_TG @ softmax(np.concatenate(ln_weights))
    return np.asarray(np.einsum("rtg,rg->rt", mean_TG - move_RTG, weight_RG) - now_T)


@dataclass(frozen=True, eq=False)
class _Kind:
    """One kind of scatter.

    Attributes:
        misfit: its standard deviation over that of the scatter.
        root_NN: lower root of the covariance of the points over the variance of the scatter.
        white_TN: covariance of targets and points, whitened.
        rest_T: remaining variance of a new run, over that of the scatter.
    """

    length: float
    misfit: float
    root_NN: Floats
    white_TN: Floats
    rest_T: Floats

    @cached_property
    def white_NN(self) -> Floats:
        return np.asarray(solve_triangular(self.root_NN, np.eye(len(self.root_NN)), lower=True, check_finite=False))

    @cached_property
    def inverse_NN(self) -> Floats:
        return self.white_NN.T @ self.white_NN


@dataclass(frozen=True, eq=False)
class _Component:
    """One form, unchanged, bent or drifting, with one kind of scatter, by which the points are whitened.

    Attributes:
        ln_prior: with the determinant of the kind.
        left_N: ln y, measured minus the form.
        J_NP: derivatives by coefficients that are standard normal.
    """

    form: LinearisedForm
    kind: _Kind
    ln_prior: float
    left_N: Floats
    J_NP: Floats
    J_TP: Floats

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Scales [V], and of independent combinations of the coefficients mean and precision, [P, V].

        Then their derivatives at the targets [T, P], and whitened at the points [N, P].
        """
        (N, P), J_NP = self.J_NP.shape, self.J_NP
        square_P, turn_PP = np.linalg.eigh(J_NP.T @ J_NP)
        square_P = np.maximum(square_P, 0.0)
        turned_NP, toward_TP = J_NP @ turn_PP, (self.J_TP - self.kind.white_TN @ J_NP) @ turn_PP
        pull_P = turned_NP.T @ self.left_N
        usable_P = square_P > _EXACT**2 * max(float(square_P.max()), 1.0)
        unexplained = float(self.left_N @ self.left_N - (pull_P[usable_P] ** 2 / square_P[usable_P]).sum())
        square = max(unexplained, 0.0) + _SCATTER_COUNTS * _SCATTER**2
        scale_V = _SCALES * math.sqrt(square / (max(N - P, 0) + _SCATTER_COUNTS))
        known_PV = square_P[:, None] / scale_V**2 + 1
        return scale_V, pull_P[:, None] / scale_V**2 / known_PV, known_PV, toward_TP, turned_NP


def _components(
    forms: Sequence[LinearisedForm], x_NA: Floats, x_TA: Floats | None, ln_y_N: Floats, run_N: NDArray[np.int64]
) -> Iterator[_Component]:
    place_TA = np.full(forms[0].slope_TA.shape, _NOWHERE) if x_TA is None else x_TA
    ways = [(at, *way) for at, form in enumerate(forms) for way in _changing(form, x_NA, place_TA)]
    left_KN = np.array([ln_y_N - form.ln_y_N for form in forms])
    best_N = left_KN[np.argmin(np.abs(left_KN).sum(axis=1))]
    # A robust fit passes through about as many points as it has constants; the others show the usual distance.
    n_constants = min(form.J_NP.shape[1] for form in forms)
    left_over_N = np.sort(np.abs(best_N))[n_constants:]
    typical = 1.4826 * float(np.median(left_over_N)) + _EXACT if len(left_over_N) else math.inf
    outlying_N = np.maximum(1.0, np.abs(best_N) / (_OUTLYING * typical))
    columns = np.hstack([left_KN.T, *(J_NP for *_, J_NP, _ in ways)])
    for ln_prior, length, misfit, R_NN, R_TN in _scatters(x_NA, place_TA, outlying_N, run_N):
        L_NN = np.asarray(np.linalg.cholesky(R_NN), np.float64)
        white = solve_triangular(L_NN, np.hstack([columns, R_TN.T]), lower=True, check_finite=False)
        white_TN = white[:, columns.shape[1] :].T
        ln_det, first = 2 * float(np.log(np.diag(L_NN)).sum()), len(forms)
        rest_T = np.zeros(len(R_TN)) if x_TA is None else 1 + misfit**2 - (white_TN**2).sum(axis=1)
        kind = _Kind(length, misfit, L_NN, white_TN, rest_T)
        for at, prior, J_NP, J_TP in ways:
            ln_known = math.log(prior * forms[at].prior) + ln_prior - _EVIDENCE * ln_det / 2
            last = first + J_NP.shape[1]
            yield _Component(forms[at], kind, ln_known, white[:, at], white[:, first:last], J_TP)
            first = last


def _changing(form: LinearisedForm, x_NA: Floats, x_TA: Floats) -> list[tuple[float, Floats, Floats]]:
    """Prior weight and columns of a form: unchanged, with each bend, and drifting.

    Where the exponent of axis a grows by d with ln b, ln y changes by d times its slope in a times both logarithms,
    about their means.
    """
    (N, A), x = x_NA.shape, np.vstack([x_NA, x_TA])
    slope, away = np.vstack([form.slope_NA, form.slope_TA]), x - x_NA.mean(axis=0)
    bends = [(_MIXING * slope[:, 0] * away[:, :2].prod(axis=1))[:, None]] if A > 1 else []
    for a, x_N in enumerate(x_NA.T):
        places = np.unique(np.round(x_N / _SAME))
        for at in np.quantile(places * _SAME, _BENDS).tolist() if len(places) >= _FEWEST else []:
            knee = _ROUNDING * np.logaddexp(0.0, (x[:, a] - at) / _ROUNDING)
            bends.append((_BENDING * slope[:, a] * knee)[:, None])
    drift = [(_OWN if a == b else _OTHER) * slope[:, a] * away[:, a] * away[:, b] for a in range(A) for b in range(A)]
    changes = [(_BENT / len(bends), each) for each in bends] + [(_DRIFTS, np.column_stack(drift))]
    changed = [(prior, np.hstack([form.J_NP, each[:N]]), np.hstack([form.J_TP, each[N:]])) for prior, each in changes]
    return [(1 - sum(prior for prior, _ in changes), form.J_NP, form.J_TP), *changed]


def _scatters(
    x_NA: Floats, x_TA: Floats, outlying_N: Floats, run_N: NDArray[np.int64]
) -> Iterator[tuple[float, float, float, Floats, Floats]]:
    """For each kind ln prior, length and size of the misfit, covariance [N, N], and that with the targets [T, N]."""
    same_NN = run_N[:, None] == run_N
    apart_NN = ((x_NA[:, None] - x_NA) ** 2).sum(axis=2)
    apart_TN = ((x_TA[:, None] - x_NA) ** 2).sum(axis=2)
    shares = _IN_COMMON if len(np.unique(run_N)) < len(run_N) else (0.0,)
    kinds = [(math.inf, 0.0, _NONE)]
    kinds += [
        (length, misfit, (1 - _NONE) / len(_LENGTHS) / len(_MISFITS)) for length in _LENGTHS for misfit in _MISFITS
    ]
    for share in shares:
        own_NN = (share * same_NN + (1 - share) * np.eye(len(run_N))) * np.outer(outlying_N, outlying_N)
        for length, misfit, prior in kinds:
            of_NN, of_TN = (misfit**2 * np.exp(-apart / (2 * length**2)) for apart in (apart_NN, apart_TN))
            yield math.log(prior / len(shares)), length, misfit, own_NN + of_NN, of_TN


def _posterior(of: _Component) -> tuple[Floats, Floats, Floats]:
    """Centre and standard deviation of the targets, [T, V], and ln of prior times tempered evidence, [V]."""
    scale_V, theta_PV, known_PV, toward_TP, _ = of.coefficients
    pull_PV = theta_PV * known_PV * scale_V**2
    square_V = (of.left_N @ of.left_N - (pull_PV * theta_PV).sum(axis=0)) / scale_V**2
    ln_evidence_V = -(square_V + 2 * len(of.left_N) * np.log(scale_V) + np.log(known_PV).sum(axis=0)) / 2
    centre_TV = (of.form.ln_y_T + of.kind.white_TN @ of.left_N)[:, None] + toward_TP @ theta_PV
    variance_TV = scale_V**2 * of.kind.rest_T[:, None] + toward_TP**2 @ (1 / known_PV)
    return centre_TV, np.sqrt(variance_TV), of.ln_prior + _EVIDENCE * ln_evidence_V


def _by_count(run_N: NDArray[np.int64]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """By number of points, the runs [R] and the indices of their points [R, n]."""
    places = [np.flatnonzero(run_N == run) for run in range(int(run_N.max()) + 1)]
    counts = np.array([len(each) for each in places])
    return [
        (np.flatnonzero(counts == n), np.array([each for each in places if len(each) == n])) for n in np.unique(counts)
    ]


def _left_out(of: _Component, runs: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]) -> tuple[Floats, Floats]:
    """Move of the targets by each run, [R, T, V], and ln density of its points given the others, [R, V]."""
    scale_V, theta_PV, known_PV, toward_TP, turned_NP = of.coefficients
    kind, white_NN = of.kind, of.kind.white_NN
    each_PV, K_NP = 1 / (scale_V**2 * known_PV), white_NN.T @ turned_NP
    K_y_NV = white_NN.T @ (of.left_N[:, None] - turned_NP @ theta_PV) / scale_V**2
    by_theta_NTV = np.tensordot(K_NP, each_PV[:, None] * toward_TP.T[..., None], axes=1)
    weight_NTV = by_theta_NTV + (white_NN.T @ kind.white_TN.T)[..., None]
    n_runs = sum(len(of_R) for of_R, _ in runs)
    move_RTV, ln_density_RV = np.empty((n_runs, *weight_NTV.shape[1:])), np.empty((n_runs, len(scale_V)))
    for of_R, at_Rn in runs:
        own_RnP = K_NP[at_Rn]
        known_VRnP = each_PV.T[:, None, None] * own_RnP
        K_VRnn = kind.inverse_NN[at_Rn[:, :, None], at_Rn[:, None]] - known_VRnP @ np.swapaxes(own_RnP, 1, 2)
        K_VRnn /= scale_V[:, None, None, None] ** 2
        K_y_VRn = np.moveaxis(K_y_NV[at_Rn], 2, 0)
        off_VRn = np.linalg.solve(K_VRnn, K_y_VRn[..., None])[..., 0]
        move_RTV[of_R] = np.einsum("rntv,vrn->rtv", weight_NTV[at_Rn], off_VRn)
        ln_density_RV[of_R] = (np.linalg.slogdet(K_VRnn)[1] - (K_y_VRn * off_VRn).sum(axis=2)).T / 2
    return move_RTV, ln_density_RV
