"""Fits each form that a law may have, on a grid, to series of values, and weights the forms by their fit.

    power    y = C S^-alpha
    offset   y = E + C S^-alpha, E from 0 to the smallest y: evenly spaced values, and others near the best E of a
             series, closer if it scatters less; each stands for its neighbourhood
    bend     y = C S^-alpha with another exponent above one of three sizes, or with an exponent that changes slowly
             towards the largest sizes (from 5 sizes on)

Each is fitted with every scatter of the models (`rbpx.laws.forms.scatters`). With E, bend and scatter fixed, two
parameters are left, and ln y of a new model has Student's t with n - 2 degrees of freedom (with three sizes one more,
of a prior on the scatter). The weight is prior SSE^(-(n-2)/2) |R|^(-1/2) |J' R^-1 J|^-.25, with R the covariance of the
scatter and J the derivatives of ln y. Grid, priors and the exponent were chosen by coverage and width
(docs/explanation/uncertainty.md).

Shapes: B series, N sizes, T others, R scatters, F forms (with their E or bend), H held numbers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from rbpx.laws.forms.scatters import SCATTER, SCATTER_COUNTS, ScatterModel, scatters_at
from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.misfit import Departure
from rbpx.laws.numeric import Floats
from rbpx.laws.priors import FixedValues

_MIN_SIZES_TO_BEND: Final = 5
_FEWEST: Final = 3  # sizes, which do not show the scatter
_OFFSETS: Final = np.linspace(0, 0.98, 22)[1:]  # of the smallest y, with three sizes, which fit some E exactly, or
# with other fixed parameters
_EVEN: Final = (np.arange(8) + 0.5) / 8  # of the smallest y, elsewhere
_NEAR: Final = (np.arange(13) + 0.5) / 13  # and quantiles of Cauchy's distribution about the best E
_MOST: Final = 1 - 1e-4
_STARTS: Final = 1 - np.geomspace(1, 1 - _MOST, 24)  # of that search
_RATIOS: Final = {0.25: 1, 0.35: 2, 0.5: 4, 0.65: 4, 0.8: 4, 1.25: 4, 1.5: 3, 1.8: 2, 2.2: 1}  # of the exponents above
# and below a bend: prior weight
_BENDS: Final = (0.25, 0.5, 0.75)  # quantiles of ln S
_ROUNDING: Final = 0.5  # of ln S, the width of a bend
_SLOW_RATIOS: Final = {0.35: 1, 0.5: 2, 0.7: 2, 1.4: 3, 1.8: 3, 2.5: 2, 3.5: 1}  # the same for slow bends,
# about the last of these places
_SLOW: Final = 0.5  # of the prior weight of bends
_SLOWLY: Final = 0.25  # of the span of ln S, the width of a slow bend
_FLATNESS: Final = 0.25  # exponent of 1 / |J' R^-1 J|
_STEPS: Final = 4  # of Gauss-Newton, from the weighted line of each form
_SINGULAR: Final = 8 * float(np.finfo(np.float64).eps)  # of a determinant
_EXACT: Final = 1e-13  # relative to |ln y|; a form with smaller residuals is exact
_HOLD: Final = 1e8  # weight of a held number, in models


class LawForm(StrEnum):
    """The forms that are averaged."""

    power = "power"
    offset = "offset"
    bend = "bend"


_PRIOR: Final = {LawForm.power: 0.35, LawForm.offset: 0.35, LawForm.bend: 0.3}


@dataclass(frozen=True, eq=False)
class FormGrid:
    """The forms and the scatters at N models; a component is one of each, the scatter first.

    Attributes:
        offset_F: E over the smallest y; NaN where it is fitted to each series.
        place: maps ln S, [T], to ln S with the bend of each form, [T, F], centred at the models.
        held_FH2: held combinations of the two parameters.
        evidence: exponent of the likelihood; `flatness` of 1 / |J' R^-1 J|.
        scatter_counts: points that a prior on the scatter counts for.
    """

    x_N: Floats
    scatters: tuple[ScatterModel, ...]
    shape_F: NDArray[np.str_]
    prior_F: Floats
    offset_F: Floats
    place: Callable[[Floats], Floats]
    held_FH2: Floats
    held_FH: Floats
    evidence: float = 1.0
    flatness: float = _FLATNESS
    scatter_counts: int = 0

    @property
    def dof(self) -> int:
        """Degrees of freedom of the residuals."""
        return len(self.x_N) - 2 + int(self.held_FH.shape[1]) + self.scatter_counts

    @cached_property
    def whiten_RNN(self) -> Floats:
        """Whitens rows of values at the models by each scatter."""
        return np.array([scatter.whiten_NN for scatter in self.scatters])

    @property
    def shape_G(self) -> NDArray[np.str_]:
        """The shape of each component."""
        return np.tile(self.shape_F, len(self.scatters))


_Form = tuple[LawForm, float, float, float, float, float]  # with prior, share of E, bend, ratio, width of the bend


def given_constants(given: Sequence[FixedValues], smallest: float) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Sets of fixed parameters as `form_grid` takes them: E over the smallest y, alpha, ln C, prior."""
    sets = []
    for each in given:
        known = {**each.values, "prior": each.prior}
        if "E" in known:
            known["share"] = known.pop("E") / smallest
        if "C" in known:
            known["ln_C"] = math.log(known.pop("C"))
        sets.append(tuple(known.items()))
    return tuple(sets)


@lru_cache(maxsize=128)
def form_grid(
    ln_S: tuple[float, ...],
    given: tuple[tuple[tuple[str, float], ...], ...] = (),
    departs: tuple[tuple[Departure, float], ...] = (),
) -> FormGrid:
    """The components at three or more increasing sizes; `given` has the same parameters in each set."""
    x_N = np.array(ln_S)
    bends = np.quantile(x_N, _BENDS).tolist() if len(x_N) >= _MIN_SIZES_TO_BEND else []
    slowly = _SLOWLY * (ln_S[-1] - ln_S[0])
    forms: list[_Form] = []
    held: list[dict[str, float]] = []
    for of in map(dict, given or ((),)):
        is_free = {"alpha", "ln_C"}.isdisjoint(of)
        forms += _forms(of, bends if is_free else [], slowly, is_free and len(x_N) > 3)
        held += [of] * (len(forms) - len(held))
    prior_F, offset_F, bend_F, ratio_F, rounding_F = np.array([form[1:] for form in forms]).T

    def bent(x_T: Floats) -> Floats:  # ln S with `ratio` times the slope above a bend
        knee_TF = np.logaddexp(0.0, (x_T[:, None] - bend_F) / rounding_F)
        return np.asarray(x_T[:, None] + (ratio_F - 1) * rounding_F * knee_TF)

    middle_F = bent(x_N).mean(axis=0)
    rows = {"alpha": np.column_stack([np.zeros(len(forms)), np.ones(len(forms))])}
    rows["ln_C"] = np.column_stack([np.ones(len(forms)), middle_F])
    names = [name for name in rows if name in held[0]]
    return FormGrid(
        x_N,
        scatters_at(x_N, dict(departs)),
        np.array([form[0] for form in forms]),
        prior_F,
        offset_F,
        lambda x_T: bent(x_T) - middle_F,
        np.array([rows[name] for name in names]).reshape(-1, len(forms), 2).swapaxes(0, 1),
        np.array([[of[name] for name in names] for of in held]).reshape(len(forms), -1),
        scatter_counts=SCATTER_COUNTS if len(x_N) == _FEWEST else 0,
    )


def _forms(given: dict[str, float], bends: Sequence[float], slowly: float, seeks: bool) -> list[_Form]:
    prior = {shape: given.get("prior", 1.0) * weight for shape, weight in _PRIOR.items()}
    share = given.get("share", 0.0)
    if "share" in given:
        forms: list[_Form] = [(LawForm.offset, prior[LawForm.power] + prior[LawForm.offset], share, 0.0, 1.0, 1.0)]
    else:
        forms = [(LawForm.power, prior[LawForm.power], 0.0, 0.0, 1.0, 1.0)]
        offsets = [math.nan] * (len(_EVEN) + len(_NEAR)) if seeks else _OFFSETS.tolist()
        forms += [(LawForm.offset, prior[LawForm.offset] / len(offsets), at, 0.0, 1.0, 1.0) for at in offsets]
    sudden = (1 - _SLOW) * prior[LawForm.bend] / len(_BENDS)
    kinds = [(at, sudden, _RATIOS, _ROUNDING) for at in bends]
    kinds += [(at, _SLOW * prior[LawForm.bend], _SLOW_RATIOS, slowly) for at in bends[-1:]]
    return forms + [
        (LawForm.bend, weight * of_ratio / sum(ratios.values()), share, at, ratio, width)
        for at, weight, ratios, width in kinds
        for ratio, of_ratio in ratios.items()
    ]


def means_of_sizes(S_N: Floats, ln_y_BN: Floats) -> tuple[Floats, Floats, Floats]:
    """Averages the models of each size.

    Returns the sizes, [N'], the means of ln y, [B, N'], and the excess of the variance of a new model over that of a
    mean, [B]: (1 - mean of 1 / models) times the variance within sizes.
    """
    S_G, of_N, n_G = np.unique(S_N, return_inverse=True, return_counts=True)
    if len(S_G) == len(S_N):
        return S_G, ln_y_BN[:, np.argsort(S_N)], np.zeros(len(ln_y_BN))
    mean_BG = (ln_y_BN @ (of_N[:, None] == np.arange(len(S_G)))) / n_G
    within_B = ((ln_y_BN - mean_BG[:, of_N]) ** 2).sum(axis=1) / (len(S_N) - len(S_G))
    return S_G, mean_BG, within_B * (1 - (1 / n_G).mean())


@dataclass(frozen=True, eq=False)
class FormFits:
    """The fitted components.

    Attributes:
        theta_BRF2: ln C at the middle of the sizes, and alpha.
        share_BRFN: share of the power law in y, the derivative of ln y by ln C.
        A_BRF22: J' R^-1 J.
        sigma2_BRF: variance of a model about the law.
        own_B: excess of the variance of a new model (`means_of_sizes`).
    """

    grid: FormGrid
    E_BF: Floats
    theta_BRF2: Floats
    residual_BRFN: Floats
    share_BRFN: Floats
    A_BRF22: Floats
    sigma2_BRF: Floats
    weight_BRF: Floats
    own_B: Floats

    def at(self, x_T: Floats) -> TMixture:
        """The predictive distribution of ln y of new models at ln S, [B, T] mixtures."""
        onward = [scatter.onward(x_T) for scatter in self.grid.scatters]
        carry_RTN, rest_TR = np.array([carry for carry, _ in onward]), np.array([rest for _, rest in onward]).T
        u_TRF, u_FN = self.grid.place(x_T)[:, None], self.grid.place(self.grid.x_N).T
        level, alpha = np.moveaxis(self.theta_BRF2, -1, 0)[:, :, None]
        ln_power = level - alpha * u_TRF
        ln_law = _ln_sum(ln_power, self.E_BF[:, None, None])
        share = np.exp(ln_power - ln_law)

        def carried(column_BRFN: Floats) -> Floats:
            return np.moveaxis(carry_RTN @ column_BRFN.swapaxes(2, 3), 2, 1)  # [B, T, R, F]

        of_first = share - carried(self.share_BRFN)
        of_slope = -share * u_TRF + carried(self.share_BRFN * u_FN)
        spread = rest_TR[..., None] + _spread(of_first, of_slope, self.A_BRF22[:, None])
        scale = np.sqrt(self.sigma2_BRF[:, None] * spread + self.own_B[:, None, None, None])
        weight = np.broadcast_to(self.weight_BRF[:, None], scale.shape)
        flat = (*scale.shape[:2], scale.shape[2] * scale.shape[3])
        centre = ln_law + carried(self.residual_BRFN)
        return TMixture(centre.reshape(flat), scale.reshape(flat), weight.reshape(flat), self.grid.dof)


def _spread(first: Floats, second: Floats, A_22: Floats) -> Floats:
    """The form g' A^-1 g of g = (first, second): a sum of squares, infinite where A does not determine it."""
    a, b, c = A_22[..., 0, 0], A_22[..., 0, 1], A_22[..., 1, 1]
    left = c - b**2 / a  # information on the second, given the first
    orthogonal = second - first * b / a
    undetermined = np.where(orthogonal == 0, 0.0, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        return first**2 / a + np.where(left > 0, orthogonal**2 / left, undetermined)


def fit_forms(grid: FormGrid, ln_y_BN: Floats, own_B: Floats) -> FormFits:
    """Fits every component of a grid to each series, by Gauss-Newton in ln y."""
    n, y_BN, u_FN = ln_y_BN.shape[1], np.exp(ln_y_BN), grid.place(grid.x_N).T
    share_BF, prior_BF = _offsets(grid, y_BN)
    E_BF = share_BF * y_BN.min(axis=1, keepdims=True)
    E, ln_y = E_BF[:, None, :, None], ln_y_BN[:, None, None]
    share = 1 - E / y_BN[:, None, None]
    start = np.zeros((len(y_BN), len(grid.scatters), len(grid.offset_F), 2))
    theta = _solve(grid, u_FN, share, share * np.log(y_BN[:, None, None] - E), start)[0]
    theta, ln_law, share, sse_BRF = _improve(grid, u_FN, E, ln_y, theta)
    sse_BRF = sse_BRF + grid.scatter_counts * SCATTER**2
    A_BRF22 = _solve(grid, u_FN, share, ln_law, theta)[1]

    rounding_B = n * (_EXACT * np.maximum(1.0, np.abs(ln_y_BN).max(axis=1))) ** 2
    exact_BRF = sse_BRF <= rounding_B[:, None, None]
    prior_BRF = np.array([scatter.prior for scatter in grid.scatters])[:, None] * prior_BF[:, None]
    ln_det_R1 = np.array([[scatter.ln_det] for scatter in grid.scatters])
    with np.errstate(divide="ignore", invalid="ignore"):  # for exact series, which `simplest` decides
        ln_det = np.where(_determines_both(A_BRF22), np.linalg.slogdet(A_BRF22)[1], np.inf)  # so that the weight is 0
        ln_likelihood = -grid.dof / 2 * np.log(sse_BRF) - ln_det_R1 / 2
        ln_weight = np.log(prior_BRF) + grid.evidence * ln_likelihood - grid.flatness * ln_det
    # Of forms that pass through all points the first, the simplest, has all weight.
    ln_weight, exact = (each.reshape(len(y_BN), -1) for each in (ln_weight, exact_BRF))
    simplest = np.where(np.arange(exact.shape[1]) == np.argmax(exact, axis=1)[:, None], 0.0, -np.inf)
    ln_weight = np.where(exact.any(axis=1, keepdims=True), simplest, ln_weight)
    weight_BRF = softmax(ln_weight, axis=1).reshape(sse_BRF.shape)
    sigma2_BRF = np.where(exact_BRF, 0.0, sse_BRF / grid.dof)
    return FormFits(grid, E_BF, theta, ln_y - ln_law, share, A_BRF22, sigma2_BRF, weight_BRF, own_B)


def _offsets(grid: FormGrid, y_BN: Floats) -> tuple[Floats, Floats]:
    """E over the smallest y of each form, and its prior weight, which is that of all E nearest to it; [B, F]."""
    share_BF, prior_BF = (np.tile(each, (len(y_BN), 1)) for each in (grid.offset_F, grid.prior_F))
    sought_F = np.isnan(grid.offset_F)
    if sought_F.any():
        best_B1, sd_B1 = _best_offset(grid.x_N, y_BN / y_BN.min(axis=1, keepdims=True))
        from_B1, to_B1 = np.arctan2(-best_B1, sd_B1), np.arctan2(1 - best_B1, sd_B1)
        near_BF = best_B1 + sd_B1 * np.tan(from_B1 + (to_B1 - from_B1) * _NEAR)
        offset_BF = np.sort(np.hstack([np.tile(_EVEN, (len(y_BN), 1)), near_BF]), axis=1)
        until_BF = np.pad((offset_BF[:, 1:] + offset_BF[:, :-1]) / 2, ((0, 0), (0, 1)), constant_values=1.0)
        share_BF[:, sought_F] = offset_BF
        prior_BF[:, sought_F] *= offset_BF.shape[1] * np.diff(until_BF, axis=1, prepend=0.0)
    return share_BF, prior_BF


def _best_offset(x_N: Floats, y_BN: Floats) -> tuple[Floats, Floats]:
    """The best E with even scatter, and its standard deviation, both [B, 1]; y >= 1."""
    y_B1N = y_BN[:, None]

    def off_line(z_BMN: Floats, share_BMN: Floats) -> Floats:
        weight_BMN = share_BMN**2 / (share_BMN**2).sum(axis=2, keepdims=True)
        about_BMN = x_N - (weight_BMN * x_N).sum(axis=2, keepdims=True)
        z_BMN = z_BMN - (weight_BMN * z_BMN).sum(axis=2, keepdims=True)
        of_z_BM1, of_x_BM1 = ((weight_BMN * about_BMN * by).sum(axis=2, keepdims=True) for by in (z_BMN, about_BMN))
        return np.asarray(z_BMN - of_z_BM1 / of_x_BM1 * about_BMN)

    def at(E_BM: Floats) -> tuple[Floats, Floats, Floats]:
        """Squares of ln y about the law, the step of Gauss and Newton in E, and the standard deviation of E."""
        E_BM1 = E_BM[..., None]
        ln_power_BMN = np.log(y_B1N - E_BM1)
        power_BMN = np.exp(ln_power_BMN - off_line(ln_power_BMN, 1 - E_BM1 / y_B1N))
        left_BMN, share_BMN = np.log(y_B1N / (E_BM1 + power_BMN)), power_BMN / (E_BM1 + power_BMN)
        by_E_BMN = share_BMN * off_line(1 / power_BMN, share_BMN)  # derivative of ln y by E, orthogonal to the line
        sse_BM, square_BM = (left_BMN**2).sum(axis=2), (by_E_BMN**2).sum(axis=2)
        square_BM[square_BM == 0] = np.inf  # a flat law does not determine E
        sd_BM = np.sqrt(sse_BM / (len(x_N) - 3) / square_BM)
        return sse_BM, (left_BMN * by_E_BMN).sum(axis=2) / square_BM, sd_BM

    best_B1 = _STARTS[np.argmin(at(np.tile(_STARTS, (len(y_BN), 1)))[0], axis=1)][:, None]
    for _ in range(_STEPS):
        _, step_B1, sd_B1 = at(best_B1)
        best_B1 = np.clip(best_B1 + step_B1, 0.0, _MOST)
    return best_B1, sd_B1


def _improve(grid: FormGrid, u_FN: Floats, E: Floats, ln_y: Floats, theta: Floats) -> tuple[Floats, ...]:
    """Parameters, ln law, share of the power law and whitened squares, after steps of Gauss-Newton that gain."""

    def at(theta: Floats) -> tuple[Floats, ...]:
        ln_power = theta[..., :1] - theta[..., 1:] * u_FN
        ln_law = _ln_sum(ln_power, E)
        return theta, ln_law, np.exp(ln_power - ln_law), (((ln_y - ln_law) @ grid.whiten_RNN) ** 2).sum(axis=3)

    now = at(theta)
    for _ in range(_STEPS):
        new = at(now[0] + _solve(grid, u_FN, now[2], ln_y - now[1], now[0])[0])
        better, *rest = new[3] < now[3], *zip(new, now, strict=True)
        now = tuple(np.where(better if a.ndim == 3 else better[..., None], a, b) for a, b in rest)
    return now


def _solve(grid: FormGrid, u_FN: Floats, share: Floats, target: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """The whitened least-squares step of the target on (share, -share u), and J' R^-1 J."""
    first, second, white = (each @ grid.whiten_RNN for each in (share, -share * u_FN, target))
    J = np.stack([first, second], axis=3)
    A, toward = J @ J.swapaxes(3, 4), J @ white[..., None]
    if grid.held_FH.size:
        left_H = grid.held_FH - np.einsum("fhp,brfp->brfh", grid.held_FH2, theta)
        A = A + _HOLD * grid.held_FH2.swapaxes(1, 2) @ grid.held_FH2
        toward = toward + _HOLD * np.einsum("fhp,brfh->brfp", grid.held_FH2, left_H)[..., None]
    determined = _determines_both(A)[..., None, None]
    step = np.linalg.solve(np.where(determined, A, np.eye(2)), toward)
    return np.where(determined, step, 0.0)[..., 0], A


def _determines_both(A_22: Floats) -> NDArray[np.bool_]:
    a, b, c = A_22[..., 0, 0], A_22[..., 0, 1], A_22[..., 1, 1]
    return np.asarray(a * c - b**2 > _SINGULAR * a * c)


def _ln_sum(ln_power: Floats, E: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
        return np.asarray(np.logaddexp(ln_power, np.log(E)))
