"""Forms in several axes, each near its optimum, with misfit that varies smoothly: weighed and mixed.

Along one axis a grid over what is not linear in a form is small (`rbpx.laws.forms.candidates`). In size and tokens
each form is taken as linear about its robust optimum, ln y = f + J (theta - theta_0), with a wide normal prior on its
constants. It may bend, one more column says that the exponent of an axis changes at one place or with another axis,
or drift, more columns say that each exponent changes steadily along its own axis and along the others. No form is
exact, so what a form leaves is a Gaussian process in the logarithms of the axes plus scatter, of which the
checkpoints of one run have a part in common. Form, bend or drift, length and size of the misfit, that part, and the
size of it all are averaged over, with weights prior * evidence^.85: the evidence is tempered because small deviations
from all forms would otherwise tell one from another with too much confidence (P. Gruenwald and T. van Ommen, Bayesian
Analysis 12, 2017). The scatter has a prior, as a few runs leave nothing that tells it. Points far off the best form
have their scatter enlarged to what they are off.

The numbers below were chosen on drawn worlds (benchmarks/surface_predictions.py; docs/explanation/surfaces.md).

Shapes: N points, T targets, A axes, P constants, K columns of all forms side by side, V scales, G components, R runs of
n points each.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.numeric import Floats

_LENGTHS: Final = (0.7, 1.4, 2.8, 5.6)  # of the misfit, in the logarithm of an axis
_MISFITS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)  # its standard deviation over that of the scatter
_NONE: Final = 0.2  # prior weight of no misfit
_IN_COMMON: Final = (0.0, 0.5, 0.9, 0.97)  # share of the variance that the checkpoints of a run have in common
_SCALES: Final = np.array([0.25, 0.4, 0.63, 1.0, 1.6, 2.5, 4.0, 6.0])  # of the scatter over its estimate
_SCATTER: Final = 0.006  # of ln y, before any point is seen
_SCATTER_COUNTS: Final = 2.0  # points that this is worth
_DRIFTS: Final = 0.4  # prior weight of a form that drifts
_BENT: Final = 0.24  # of one with one bend, where it may have any
_BENDS: Final = (0.33, 0.67)  # quantiles of an axis
_BENDING: Final = 0.4  # prior standard deviation of the relative change of an exponent at a bend
_MIXING: Final = 0.1  # of that of the first axis with one unit of the logarithm of the second
_ROUNDING: Final = 0.5  # of a logarithm, the width of a bend
_FEWEST: Final = 4  # places along an axis, for a bend
_SAME: Final = 0.01  # of a logarithm
_OWN: Final = 0.25  # prior standard deviation of the relative change of an exponent with one unit of its own logarithm
_OTHER: Final = 0.5  # with one of the logarithm of another axis
_EVIDENCE: Final = 0.85
_OUTLYING: Final = 5.0  # standard deviations by the median, beyond which a point counts less
_EXACT: Final = 1e-7  # of ln y: the least distance from a form that is believed
_NUGGET: Final = 1e-8  # of the variance of the misfit, so that rounding leaves it positive
_NOWHERE: Final = 1e5  # logarithm of an axis, where no misfit reaches
_NORMAL: Final = 10**6  # degrees of freedom


@dataclass(frozen=True, eq=False)
class Nearby:
    """A form near its optimum.

    Attributes:
        name: of the form.
        prior: of these constants; 1 in all where the form has several.
        ln_y_N: at the points.
        J_NP: derivatives by its constants, each times the prior standard deviation of the constant.
        slope_NA: derivatives by the logarithm of each axis.
        ln_y_T: at the targets.
        J_TP: as J_NP.
        slope_TA: as slope_NA.
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
class Mixed:
    """What the forms say of the targets: a mixture of ln y for each of T, and the form of each component."""

    mixture: TMixture
    name_G: NDArray[np.str_]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each form; they sum to 1."""
        names = dict.fromkeys(self.name_G.tolist())
        return {name: float(self.mixture.weight[0, self.name_G == name].sum()) for name in names}


def mix(forms: Sequence[Nearby], x_NA: Floats, x_TA: Floats | None, ln_y_N: Floats, run_N: NDArray[np.int64]) -> Mixed:
    """Weigh and mix forms.

    Args:
        forms: near their optima at the same points; at least one.
        x_NA: logarithms of the axes at the points.
        x_TA: at the targets; None where these are not ln y of a new run but functions of the constants alone, which
            neither misfit nor scatter moves (with slopes of 0).
        ln_y_N: what was measured.
        run_N: which run each point is of.
    """
    names, parts = [], []
    shape_TA = forms[0].slope_TA.shape
    for kind, way, left_N in _weighed(
        forms, x_NA, np.full(shape_TA, _NOWHERE) if x_TA is None else x_TA, ln_y_N, run_N
    ):
        form = forms[way.place]
        if x_TA is None:
            kind = replace(kind, rest_T=np.zeros(len(kind.rest_T)))
        centre_TV, scale_TV, ln_evidence_V = _posterior(way, left_N, kind)
        parts.append((form.ln_y_T[:, None] + centre_TV, scale_TV, kind.ln_prior + way.ln_prior + ln_evidence_V))
        names += [form.name] * len(_SCALES)
    centre_TG, scale_TG = (np.hstack([part[i] for part in parts]) for i in (0, 1))
    weight_G = _shares(np.concatenate([part[2] for part in parts]))
    weight_TG = np.broadcast_to(weight_G, centre_TG.shape)
    return Mixed(TMixture(centre_TG, scale_TG, weight_TG, _NORMAL), np.array(names))


def draw(
    forms: Sequence[Nearby], x_NA: Floats, x_TA: Floats, ln_y_N: Floats, run_N: NDArray[np.int64], n: int, seed: int = 0
) -> tuple[Floats, Floats]:
    """Draws of the law at all targets together, over forms, misfit and constants.

    Args:
        forms: as all but n and seed in `mix`.
        x_NA: there.
        x_TA: there.
        ln_y_N: there.
        run_N: there.
        n: how many.
        seed: of them.

    Returns:
        Ln y of the law [n, T], and the standard deviation of the scatter of a run about it [n].
    """
    found = list(_weighed(forms, x_NA, x_TA, ln_y_N, run_N))
    ln_weight_GV = [kind.ln_prior + way.ln_prior + _posterior(way, left_N, kind)[2] for kind, way, left_N in found]
    rng = np.random.default_rng(seed)
    times_GV = rng.multinomial(n, _shares(np.concatenate(ln_weight_GV))).reshape(len(found), len(_SCALES))
    apart_TT = ((x_TA[:, None] - x_TA) ** 2).sum(axis=2)
    drawn, scatter = [], []
    for (kind, way, left_N), times_V in zip(found, times_GV, strict=True):
        if not times_V.any():
            continue
        scale_V, theta_PV, known_PV, toward_TP, _ = _coefficients(way, left_N, kind)
        root_TT = np.zeros((1, 1))
        if kind.misfit:
            left_TT = kind.misfit**2 * np.exp(-apart_TT / (2 * kind.length**2)) - kind.white_TN @ kind.white_TN.T
            root_TT = np.linalg.cholesky(left_TT + _NUGGET * kind.misfit**2 * np.eye(len(left_TT)))
        centre_T = forms[way.place].ln_y_T + kind.white_TN @ left_N
        for v in np.flatnonzero(times_V).tolist():
            constants_KP = theta_PV[:, v] + rng.standard_normal((times_V[v], len(theta_PV))) / np.sqrt(known_PV[:, v])
            misfit_KT = rng.standard_normal((times_V[v], len(root_TT))) @ root_TT.T
            drawn.append(centre_T + constants_KP @ toward_TP.T + scale_V[v] * misfit_KT)
            scatter.append(np.full(times_V[v], scale_V[v]))
    return np.vstack(drawn), np.concatenate(scatter)


def without_each(
    forms: Sequence[Nearby], x_NA: Floats, x_TA: Floats, ln_y_N: Floats, run_N: NDArray[np.int64]
) -> Floats:
    """By how much the mean of ln y moves at each target where one run is left out, [R, T]: run r is row r.

    Each form stays near its optimum of all runs, and the scatter that of all. What a run is off, foretold from the
    others, is K_rr e_r = (K y)_r with K the inverse of the covariance of the points; it moves the targets by -W_r e_r,
    W their weights on the points, and its density leaves the evidence.

    Args:
        forms: as all in `mix`.
        x_NA: there.
        x_TA: there.
        ln_y_N: there.
        run_N: there, from 0 up without gaps.
    """
    runs, means, moves, ln_weights, ln_without = _by_count(run_N), [], [], [], []
    for kind, way, left_N in _weighed(forms, x_NA, x_TA, ln_y_N, run_N):
        centre_TV, _, ln_evidence_V = _posterior(way, left_N, kind)
        off_RTV, ln_density_RV = _left_out(way, left_N, kind, runs)
        means.append(forms[way.place].ln_y_T[:, None] + centre_TV)
        moves.append(off_RTV)
        ln_weights.append(kind.ln_prior + way.ln_prior + ln_evidence_V)
        ln_without.append(ln_weights[-1] - _EVIDENCE * ln_density_RV)
    mean_TG, move_RTG = np.hstack(means), np.concatenate(moves, axis=2)
    weight_RG = np.array([_shares(each_G) for each_G in np.hstack(ln_without)])
    now_T = mean_TG @ _shares(np.concatenate(ln_weights))
    return np.asarray(np.einsum("rtg,rg->rt", mean_TG - move_RTG, weight_RG) - now_T)


@dataclass(frozen=True, eq=False)
class _Kind:
    """One kind of scatter; what follows is whitened by it.

    Attributes:
        ln_prior: with what its determinant says.
        length: of the misfit; infinite without.
        misfit: its standard deviation over that of the scatter.
        root_NN: of the covariance of the points over the variance of the scatter, below the diagonal.
        white_TN: covariance of targets and points.
        rest_T: variance of a new run that the points leave, over that of the scatter.
    """

    ln_prior: float
    length: float
    misfit: float
    root_NN: Floats
    white_TN: Floats
    rest_T: Floats

    @cached_property
    def white_NN(self) -> Floats:
        """What whitens: the inverse of that root."""
        return np.asarray(solve_triangular(self.root_NN, np.eye(len(self.root_NN)), lower=True, check_finite=False))

    @cached_property
    def inverse_NN(self) -> Floats:
        """The inverse of the covariance itself."""
        return self.white_NN.T @ self.white_NN


@dataclass(frozen=True, eq=False)
class _Way:
    """One form, as it is, bent or drifting.

    Attributes:
        place: of the form.
        ln_prior: of that, and of the constants.
        J_NP: derivatives, whitened; the prior of their coefficients is standard normal.
        J_TP: at the targets.
    """

    place: int
    ln_prior: float
    J_NP: Floats
    J_TP: Floats


def _weighed(
    forms: Sequence[Nearby], x_NA: Floats, x_TA: Floats, ln_y_N: Floats, run_N: NDArray[np.int64]
) -> Iterator[tuple[_Kind, _Way, Floats]]:
    """Each kind of scatter with each way, and what the form leaves, whitened."""
    ways = [(place, *way) for place, form in enumerate(forms) for way in _changing(form, x_NA, x_TA)]
    left_KN = np.array([ln_y_N - form.ln_y_N for form in forms])
    best_N = left_KN[np.argmin(np.abs(left_KN).sum(axis=1))]
    # A robust fit goes through about as many points as it has constants: the others say how far off is usual.
    n_constants = min(form.J_NP.shape[1] for form in forms)
    left_over_N = np.sort(np.abs(best_N))[n_constants:]
    typical = 1.4826 * float(np.median(left_over_N)) + _EXACT if len(left_over_N) else math.inf
    outlying_N = np.maximum(1.0, np.abs(best_N) / (_OUTLYING * typical))
    columns = np.hstack([left_KN.T, *(J_NP for *_, J_NP, _ in ways)])
    for ln_prior, length, misfit, R_NN, R_TN in _scatters(x_NA, x_TA, outlying_N, run_N):
        L_NN = np.asarray(np.linalg.cholesky(R_NN), np.float64)
        white = solve_triangular(L_NN, np.hstack([columns, R_TN.T]), lower=True, check_finite=False)
        white_TN = white[:, columns.shape[1] :].T
        ln_det, at = 2 * float(np.log(np.diag(L_NN)).sum()), len(forms)
        rest_T = 1 + misfit**2 - (white_TN**2).sum(axis=1)
        kind = _Kind(ln_prior - _EVIDENCE * ln_det / 2, length, misfit, L_NN, white_TN, rest_T)
        for place, prior, J_NP, J_TP in ways:
            way = _Way(place, math.log(prior * forms[place].prior), white[:, at : at + J_NP.shape[1]], J_TP)
            yield kind, way, white[:, place]
            at += J_NP.shape[1]


def _shares(ln_weight_G: Floats) -> Floats:
    weight_G = np.exp(ln_weight_G - ln_weight_G.max())
    return np.asarray(weight_G / weight_G.sum())


def _changing(form: Nearby, x_NA: Floats, x_TA: Floats) -> list[tuple[float, Floats, Floats]]:
    """The prior weight and the columns of a form as it is, of each bend that it may have, and of one that drifts.

    Where the exponent of axis a grows by the share d with each unit of the logarithm of axis b, ln y changes by d times
    its slope in a times both logarithms, about their means.
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


def _posterior(way: _Way, left_N: Floats, kind: _Kind) -> tuple[Floats, Floats, Floats]:
    """What one kind of scatter, at each scale, says of the targets beyond the form, and how likely it makes the points.

    Returns:
        Centre and standard deviation [T, V], and the tempered ln evidence [V] but for ln |R|.
    """
    scale_V, theta_PV, known_PV, toward_TP, _ = _coefficients(way, left_N, kind)
    pull_PV = theta_PV * known_PV * scale_V**2
    square_V = (left_N @ left_N - (pull_PV * theta_PV).sum(axis=0)) / scale_V**2
    ln_evidence_V = -(square_V + 2 * len(left_N) * np.log(scale_V) + np.log(known_PV).sum(axis=0)) / 2
    centre_TV = toward_TP @ theta_PV + (kind.white_TN @ left_N)[:, None]
    variance_TV = scale_V**2 * kind.rest_T[:, None] + toward_TP**2 @ (1 / known_PV)
    return centre_TV, np.sqrt(variance_TV), _EVIDENCE * ln_evidence_V


def _coefficients(way: _Way, left_N: Floats, kind: _Kind) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Scales [V], and independent combinations of the coefficients.

    Returns:
        The scales, mean and precision [P, V], derivatives at the targets [T, P], and whitened at the points [N, P].
    """
    (N, P), J_NP = way.J_NP.shape, way.J_NP
    square_P, turn_PP = np.linalg.eigh(J_NP.T @ J_NP)
    square_P = np.maximum(square_P, 0.0)
    turned_NP, toward_TP = J_NP @ turn_PP, (way.J_TP - kind.white_TN @ J_NP) @ turn_PP
    pull_P = turned_NP.T @ left_N
    usable_P = square_P > _EXACT**2 * max(float(square_P.max()), 1.0)
    unexplained = float(left_N @ left_N - (pull_P[usable_P] ** 2 / square_P[usable_P]).sum())
    square = max(unexplained, 0.0) + _SCATTER_COUNTS * _SCATTER**2
    scale_V = _SCALES * math.sqrt(square / (max(N - P, 0) + _SCATTER_COUNTS))
    known_PV = square_P[:, None] / scale_V**2 + 1
    return scale_V, pull_P[:, None] / scale_V**2 / known_PV, known_PV, toward_TP, turned_NP


def _by_count(run_N: NDArray[np.int64]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Runs of as many points, [R], and the places of these, [R, n]; for each such number."""
    places = [np.flatnonzero(run_N == run) for run in range(int(run_N.max()) + 1)]
    counts = np.array([len(each) for each in places])
    return [
        (np.flatnonzero(counts == n), np.array([each for each in places if len(each) == n])) for n in np.unique(counts)
    ]


def _left_out(
    way: _Way, left_N: Floats, kind: _Kind, runs: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]
) -> tuple[Floats, Floats]:
    """What each run moves the targets by, [R, T, V], and the ln density of its points given the others, [R, V]."""
    scale_V, theta_PV, known_PV, toward_TP, turned_NP = _coefficients(way, left_N, kind)
    white_NN = kind.white_NN
    each_PV, K_NP = 1 / (scale_V**2 * known_PV), white_NN.T @ turned_NP
    K_y_NV = white_NN.T @ (left_N[:, None] - turned_NP @ theta_PV) / scale_V**2
    by_theta_NTV = np.tensordot(K_NP, each_PV[:, None] * toward_TP.T[..., None], axes=1)
    weight_NTV = by_theta_NTV + (white_NN.T @ kind.white_TN.T)[..., None]
    n_runs = sum(len(of) for of, _ in runs)
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
