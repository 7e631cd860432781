"""Tests a law against its own points for a bend, an outlying size (at the end or elsewhere), or growing scatter.

Each departure is a covariance R of the scatter. Let J be the derivatives of ln y by the law's parameters near the best
fit, W an orthonormal basis of their complement, and w = W ln y. The likelihood of a departure over that of equal,
independent scatter, with the law and the scale integrated out, is

    |W R W'|^(-1/2) (w' (W R W')^(-1) w / w'w)^(-(N-P)/2)

The statistic of a kind is the mean of its likelihoods. Under the law w has a uniform direction, so the null
distribution is simulated: p is how often a statistic is as large, and the least p, each divided by the share of its
kind in the level, is below `cut` in one draw of twenty.

Shapes: N sizes, P parameters, Q = N - P degrees of freedom, A departures, K their kinds, B draws.

Source:
    M. L. King, Testing for Autocorrelation in Linear Regression Models: a Survey, 1987, section 3. P. H. Westfall and
    S. S. Young, Resampling-Based Multiple Testing, 1993, section 2.3: the simulated least p.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.intervals.lack_of_fit import is_rounding
from rbpx.laws.numeric import Floats


class Departure(StrEnum):
    """Kinds of misfit: a smooth bend, an outlying end, another outlying size, growing scatter."""

    bend = "bend"
    end = "end"
    run = "run"
    scatter = "scatter"


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance of the scatter under one departure.

    Attributes:
        along_N: the direction v in which a model or a curve departs, where R = I + v v'; else `other_NN` is R.
        grows: sd of the scatter at the largest size over that at the smallest.
    """

    kind: Departure
    prior: float = 1.0
    along_N: Floats | None = None
    other_NN: Floats | None = None
    grows: float = 1.0

    @property
    def R_NN(self) -> Floats:
        """The covariance, with variance 1 for an undisturbed model."""
        if self.along_N is None:
            return np.asarray(self.other_NN)
        return np.eye(len(self.along_N)) + np.outer(self.along_N, self.along_N)

    def of_new(self, x_T: Floats, x_N: Floats) -> Floats:
        """The variance of undisturbed new models at ln S, [T]."""
        return np.asarray(self.grows ** (2 * (x_T - x_N[0]) / (x_N[-1] - x_N[0])))


_PRIOR: Final = {Departure.bend: 0.45, Departure.end: 0.2, Departure.run: 0.1, Departure.scatter: 0.25}
_SHARE: Final = {Departure.bend: 2.0, Departure.end: 1.5, Departure.run: 0.5, Departure.scatter: 1.0}
# shares of the level: a wrong form is likelier than one wrong run
_TIMES: Final = (4.0, 16.0)  # sd of the departure over that of the scatter
_GROWS: Final = (10.0, 100.0)  # sd of the scatter at the largest size over that at the smallest
_TWO_ENDS: Final = (1 / 3, 1.0)  # relative deviations of the two largest sizes, if both are outlying
_NEIGHBOURS: Final = 0.15  # of the span of ln S: correlation length of a smooth curve


def departures(x_N: Floats) -> tuple[Covariance, ...]:
    """The departures at 3 or more different ln S in increasing order."""
    t_N = (x_N - x_N[0]) / (x_N[-1] - x_N[0])
    each = list(_covariances(t_N))
    counts = Counter(departure.kind for departure in each)
    return tuple(replace(departure, prior=_PRIOR[departure.kind] / counts[departure.kind]) for departure in each)


def _covariances(t_N: Floats) -> Iterator[Covariance]:
    equal_NN = np.eye(len(t_N))
    line_N2 = np.linalg.qr(np.column_stack([np.ones(len(t_N)), t_N]))[0]
    curve_N = t_N**2 - line_N2 @ (line_N2.T @ t_N**2)
    curve_N /= np.abs(curve_N).max()
    smooth_NN = np.exp(-(((t_N[:, None] - t_N) / _NEIGHBOURS) ** 2) / 2)
    for times in _TIMES:
        yield from [Covariance(Departure.bend, along_N=times * curve_N)] * 3  # a curve counts three times
        yield Covariance(Departure.bend, other_NN=equal_NN + times**2 * smooth_NN)
        for far_N in (equal_NN[-1], _TWO_ENDS[0] * equal_NN[-2] + _TWO_ENDS[1] * equal_NN[-1]):
            yield Covariance(Departure.end, along_N=times * far_N)
        for size_N in equal_NN[:-1]:
            yield Covariance(Departure.run, along_N=times * size_N)
    for grows in _GROWS:
        yield Covariance(Departure.scatter, other_NN=np.diag(grows ** (2 * t_N)), grows=grows)


@dataclass(frozen=True, eq=False)
class Misfit:
    """The result of a test.

    Attributes:
        p: of each kind, the probability of a likelihood at least as large under the law.
        cut: bound of p divided by the share of its kind.
        direction_N: unit vector of the residuals, of `length`.
    """

    p: Mapping[Departure, float]
    cut: float
    direction_N: Floats
    length: float

    @property
    def found(self) -> list[Departure]:
        """The kinds of departure that are significant."""
        return [kind for kind, p in self.p.items() if p <= self.cut * _SHARE[kind]]


LEVEL: Final = 0.05
_DRAWS: Final = 4000
_SEED: Final = 20251020
_FEWEST: Final = 2  # degrees of freedom; a single one has no direction
_DEPENDENT: Final = 1e-9  # of the largest singular value of J: smaller ones are dependent columns
_DIGITS: Final = 3  # of sizes and derivatives: laws equal to them share their draws


def misfit(x_N: Floats, ln_y_N: ArrayLike, J_NP: Floats, level: float = LEVEL) -> Misfit | None:
    """Tests a law against its own points; `level` is the share of true laws in which anything is found.

    `ln_y_N` may be anything linear in the parameters near the best law, `J_NP` are its derivatives. None with fewer
    than 2 degrees of freedom, or where the points lie on the law to within rounding.
    """
    y_N, seen = np.asarray(ln_y_N, np.float64), _likelihoods(tuple(x_N.tolist()), tuple(map(tuple, J_NP.T.tolist())))
    w_Q = seen.basis_QN @ y_N
    if len(w_Q) < _FEWEST or is_rounding(w_Q, y_N):
        return None
    columns = tuple(_rounded(column) for column in J_NP.T)
    null_BK, least_B = _null(_rounded((x_N - x_N[0]) / (x_N[-1] - x_N[0])), columns)
    (p_K,) = _p(null_BK, seen.of_kinds(w_Q[None]))
    cut = float(np.nextafter(least_B[int(level * len(least_B))], 0))  # at most a share `level` of the draws is below
    length = float(np.sqrt(w_Q @ w_Q))
    return Misfit(dict(zip(Departure, p_K.tolist(), strict=True)), cut, seen.basis_QN.T @ w_Q / length, length)


def _rounded(column_N: Floats) -> tuple[float, ...]:
    return tuple(np.round(column_N / np.abs(column_N).max(), _DIGITS).tolist())


@dataclass(frozen=True, eq=False)
class _Likelihoods:
    """The departures in the complement of the parameters.

    Where R = I + v v', w' (W R W')^(-1) w = w'w - (u'w)^2 with u = W v / sqrt(1 + |W v|^2). These come first, then the
    others, O.

    Attributes:
        ln_weight_A: logarithm of prior times |W R W'|^(-1/2).
        inverse_OQQ: of W R W' of the others.
    """

    basis_QN: Floats
    ln_weight_A: Floats
    u_VQ: Floats
    inverse_OQQ: Floats
    kind_A: NDArray[np.str_]

    def of_kinds(self, w_BQ: Floats) -> Floats:
        """Logarithm of the mean likelihood of each kind, [B, K]."""
        square_B = (w_BQ**2).sum(axis=1)
        others = [((w_BQ @ inverse_QQ) * w_BQ).sum(axis=1) for inverse_QQ in self.inverse_OQQ]
        form_BA = np.column_stack([square_B[:, None] - (w_BQ @ self.u_VQ.T) ** 2, *others])
        ln_BA = self.ln_weight_A - w_BQ.shape[1] / 2 * np.log(form_BA / square_B[:, None])
        return np.stack([np.logaddexp.reduce(ln_BA[:, self.kind_A == kind], axis=1) for kind in Departure], axis=1)


@lru_cache(maxsize=64)  # the lines of all quantities of a group have the same sizes and derivatives
def _likelihoods(x: tuple[float, ...], columns: tuple[tuple[float, ...], ...]) -> _Likelihoods:
    each, J_NP = departures(np.array(x)), np.array(columns).T
    left_NN, singular_P, _ = np.linalg.svd(J_NP / np.abs(J_NP).max(axis=0))
    basis_QN = left_NN[:, int((singular_P > _DEPENDENT * singular_P[0]).sum()) :].T
    along = [departure for departure in each if departure.along_N is not None]
    others = [departure for departure in each if departure.along_N is None]
    along_VQ = np.array([departure.along_N for departure in along]) @ basis_QN.T
    R_OQQ = np.array([basis_QN @ departure.R_NN @ basis_QN.T for departure in others])
    square_V, ordered = (along_VQ**2).sum(axis=1), (*along, *others)
    ln_det_A = np.append(np.log1p(square_V), np.linalg.slogdet(R_OQQ)[1])
    return _Likelihoods(
        basis_QN,
        np.log([departure.prior for departure in ordered]) - ln_det_A / 2,
        along_VQ / np.sqrt(1 + square_V)[:, None],
        np.linalg.inv(R_OQQ),
        np.array([departure.kind for departure in ordered]),
    )


def _p(sorted_BK: Floats, ln_MK: Floats) -> Floats:
    below_MK = [np.searchsorted(null_B, ln_M) for null_B, ln_M in zip(sorted_BK.T, ln_MK.T, strict=True)]
    return np.asarray(1 + len(sorted_BK) - np.stack(below_MK, axis=1)) / (1 + len(sorted_BK))


@lru_cache(maxsize=1024)
def _null(t: tuple[float, ...], columns: tuple[tuple[float, ...], ...]) -> tuple[Floats, Floats]:
    """Sorted statistics of normal scatter about a law, [B, K], and sorted least p by share of the level, [B]."""
    seen = _likelihoods(t, columns)
    ln_BK = seen.of_kinds(np.random.default_rng(_SEED).standard_normal((_DRAWS, len(seen.basis_QN))))
    sorted_BK = np.sort(ln_BK, axis=0)
    return sorted_BK, np.sort((_p(sorted_BK, ln_BK) / [*_SHARE.values()]).min(axis=1))
