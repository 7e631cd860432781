"""The forms that a law may have, on a grid, each fitted to series of values and weighed by how well it fits.

    power    y = C S^-alpha
    offset   y = E + C S^-alpha, E on a grid from 0 to the smallest y
    bend     y = C S^-alpha with another exponent above one of three sizes, or one that slowly becomes another towards
             the largest sizes (from 5 sizes on)

each with every scatter of the models (`rbpx.laws.forms.scatters`).

For a given E, a given bend and a given scatter two parameters are left, and a new model has Student's t as predictive
distribution of ln y, with n - 2 degrees of freedom. The weight of each is
prior SSE^(-(n-2)/2) |R|^(-1/2) |J' R^-1 J|^-.25, with R the covariance of the scatter and J the derivatives of ln y.
The last exponent would be 1/2 if every exponent alpha were as likely beforehand, and 0 if every slope of ln y were. The
grid, the prior weights and that number were chosen by coverage and width (docs/explanation/uncertainty.md).

Constants may be given (`rbpx.laws.pins`): forms have that E; an exponent or a C is held, without bends.

Shapes: B series, N models, T other sizes, R scatters, F forms (with their E or bend), H held numbers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.forms.scatters import Scatter, scatters_at
from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.misfit import Departure
from rbpx.laws.numeric import Floats
from rbpx.laws.pins import Given

_MIN_SIZES_TO_BEND: Final = 5
_OFFSETS: Final = np.linspace(0, 0.98, 22)[1:]  # of the smallest y
_RATIOS: Final = {0.25: 1, 0.35: 2, 0.5: 4, 0.65: 4, 0.8: 4, 1.25: 4, 1.5: 3, 1.8: 2, 2.2: 1}  # of the exponents above
# a bend and below it: prior weight, in proportion
_BENDS: Final = (0.25, 0.5, 0.75)  # quantiles of ln S
_ROUNDING: Final = 0.5  # of ln S, the width of a bend
_SLOW_RATIOS: Final = {0.35: 1, 0.5: 2, 0.7: 2, 1.4: 3, 1.8: 3, 2.5: 2, 3.5: 1}  # as above, of an exponent that becomes
# another slowly, about the last of these places
_SLOW: Final = 0.5  # of the prior weight of bends
_SLOWLY: Final = 0.25  # of the span of ln S, the width of such a bend
_FLATNESS: Final = 0.25  # exponent of 1 / |J' R^-1 J|
_STEPS: Final = 4  # of Gauss-Newton: each form has two parameters, and starts at its own weighted line
_SINGULAR: Final = 8 * float(np.finfo(np.float64).eps)  # of a determinant
_EXACT: Final = 1e-13  # relative to |ln y|: residuals below it are rounding, so the form is exact
_HOLD: Final = 1e8  # models that a held number counts for


class Shape(StrEnum):
    """The forms that are averaged."""

    power = "power"
    offset = "offset"
    bend = "bend"


_PRIOR: Final = {Shape.power: 0.35, Shape.offset: 0.35, Shape.bend: 0.3}


@dataclass(frozen=True, eq=False)
class FormGrid:
    """The forms and the scatters at N models; a component is one of each, the scatter first.

    Attributes:
        x_N: ln S.
        scatters: covariances of the scatter.
        shape_F: the shape of each form.
        prior_F: its prior weight.
        offset_F: E over the smallest y.
        place: ln S, bent and centred as that of the models, [T, F], of ln S [T].
        held_FH2: what is held, as a combination of the two parameters.
        held_FH: its value.
        evidence: what the likelihood counts for.
        flatness: exponent of 1 / |J' R^-1 J|.
    """

    x_N: Floats
    scatters: tuple[Scatter, ...]
    shape_F: NDArray[np.str_]
    prior_F: Floats
    offset_F: Floats
    place: Callable[[Floats], Floats]
    held_FH2: Floats
    held_FH: Floats
    evidence: float = 1.0
    flatness: float = _FLATNESS

    @property
    def dof(self) -> int:
        """Degrees of freedom that the models leave."""
        return len(self.x_N) - 2 + int(self.held_FH.shape[1])

    @property
    def shape_G(self) -> NDArray[np.str_]:
        """The shape of each component."""
        return np.tile(self.shape_F, len(self.scatters))


_Form = tuple[Shape, float, float, float, float, float]  # with its prior, share of E, bend, ratio, width of the bend


def given_constants(given: Sequence[Given], smallest: float) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Sets of given constants as `form_grid` takes them: E over the smallest y, alpha, ln C and prior, where known."""
    sets = []
    for each in given:
        E, alpha, C = (each.values.get(name) for name in ("E", "alpha", "C"))
        known = {
            "share": None if E is None else E / smallest,
            "alpha": alpha,
            "ln_C": None if C is None else math.log(C),
        }
        sets.append(tuple((name, at) for name, at in {**known, "prior": each.prior}.items() if at is not None))
    return tuple(sets)


@lru_cache(maxsize=128)
def form_grid(
    ln_S: tuple[float, ...],
    given: tuple[tuple[tuple[str, float], ...], ...] = (),
    departs: tuple[tuple[Departure, float], ...] = (),
) -> FormGrid:
    """The components at some sizes.

    Args:
        ln_S: logarithms of the sizes, increasing, at least 3 different ones; equal ones are replicates.
        given: sets of values of the constants that are given, the same ones in each (`given_constants`).
        departs: prior weight of each departure of the scatter.
    """
    x_N = np.array(ln_S)
    different = np.unique(x_N)
    bends = np.quantile(different, _BENDS).tolist() if len(different) >= _MIN_SIZES_TO_BEND else []
    slowly = _SLOWLY * (ln_S[-1] - ln_S[0])
    forms: list[_Form] = []
    held: list[dict[str, float]] = []
    for of in map(dict, given or ((),)):
        forms += _forms(of, [] if {"alpha", "ln_C"} & set(of) else bends, slowly)
        held += [of] * (len(forms) - len(held))
    prior_F, offset_F, bend_F, ratio_F, rounding_F = np.array([form[1:] for form in forms]).T

    def bent(x_T: Floats) -> Floats:  # ln S, growing `ratio` times as fast above a bend
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
    )


def _forms(given: dict[str, float], bends: Sequence[float], slowly: float) -> list[_Form]:
    """The forms with one set of given constants."""
    prior = {shape: given.get("prior", 1.0) * weight for shape, weight in _PRIOR.items()}
    share = given.get("share", 0.0)
    if "share" in given:
        forms: list[_Form] = [(Shape.offset, prior[Shape.power] + prior[Shape.offset], share, 0.0, 1.0, 1.0)]
    else:
        forms = [(Shape.power, prior[Shape.power], 0.0, 0.0, 1.0, 1.0)]
        forms += [(Shape.offset, prior[Shape.offset] / len(_OFFSETS), at, 0.0, 1.0, 1.0) for at in _OFFSETS.tolist()]
    sudden = (1 - _SLOW) * prior[Shape.bend] / len(_BENDS)
    kinds = [(at, sudden, _RATIOS, _ROUNDING) for at in bends]
    kinds += [(at, _SLOW * prior[Shape.bend], _SLOW_RATIOS, slowly) for at in bends[-1:]]
    return forms + [
        (Shape.bend, weight * of_ratio / sum(ratios.values()), share, at, ratio, width)
        for at, weight, ratios, width in kinds
        for ratio, of_ratio in ratios.items()
    ]


@dataclass(frozen=True, eq=False)
class FormFits:
    """The components, fitted.

    Attributes:
        grid: the components.
        E_BF: the offset of each form.
        theta_BRF2: ln C at the middle of the sizes, and alpha.
        residual_BRFN: ln y less ln of the law.
        share_BRFN: of the power law in the law, the derivative of ln y by ln C.
        A_BRF22: J' R^-1 J.
        sigma2_BRF: variance of a model about the law.
        weight_BRF: of each component; they sum to 1.
    """

    grid: FormGrid
    E_BF: Floats
    theta_BRF2: Floats
    residual_BRFN: Floats
    share_BRFN: Floats
    A_BRF22: Floats
    sigma2_BRF: Floats
    weight_BRF: Floats

    def at(self, x_T: Floats) -> TMixture:
        """The predictive distribution of ln y of new models, [B, T] mixtures.

        Args:
            x_T: ln S of each.
        """
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
        scale = np.sqrt(self.sigma2_BRF[:, None] * spread)
        weight = np.broadcast_to(self.weight_BRF[:, None], scale.shape)
        flat = (*scale.shape[:2], scale.shape[2] * scale.shape[3])
        centre = ln_law + carried(self.residual_BRFN)
        return TMixture(centre.reshape(flat), scale.reshape(flat), weight.reshape(flat), self.grid.dof)


def _spread(first: Floats, second: Floats, A_22: Floats) -> Floats:
    """The form g' A^-1 g of g = (first, second) as a sum of squares: never negative, infinite where A leaves g open."""
    a, b, c = A_22[..., 0, 0], A_22[..., 0, 1], A_22[..., 1, 1]
    left = c - b**2 / a  # what is known of the second beside the first
    beside = second - first * b / a
    undetermined = np.where(beside == 0, 0.0, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        return first**2 / a + np.where(left > 0, beside**2 / left, undetermined)


def fit_forms(grid: FormGrid, ln_y_BN: Floats) -> FormFits:
    """Fit every component of a grid to each series, by Gauss-Newton in ln y."""
    n, y_BN, u_FN = ln_y_BN.shape[1], np.exp(ln_y_BN), grid.place(grid.x_N).T
    E_BF = grid.offset_F * y_BN.min(axis=1, keepdims=True)
    E, ln_y = E_BF[:, None, :, None], ln_y_BN[:, None, None]
    share = 1 - E / y_BN[:, None, None]
    start = np.zeros((len(y_BN), len(grid.scatters), len(grid.offset_F), 2))
    theta = _solve(grid, u_FN, share, share * np.log(y_BN[:, None, None] - E), start)[0]
    theta, ln_law, share, sse_BRF = _improve(grid, u_FN, E, ln_y, theta)
    A_BRF22 = _solve(grid, u_FN, share, ln_law, theta)[1]

    rounding_B = n * (_EXACT * np.maximum(1.0, np.abs(ln_y_BN).max(axis=1))) ** 2
    exact_BRF = sse_BRF <= rounding_B[:, None, None]
    prior_RF = np.outer([scatter.prior for scatter in grid.scatters], grid.prior_F)
    ln_det_R1 = np.array([[scatter.ln_det] for scatter in grid.scatters])
    with np.errstate(divide="ignore"):
        ln_likelihood = -grid.dof / 2 * np.log(sse_BRF) - ln_det_R1 / 2
        ln_det = np.where(_tells_both(A_BRF22), np.linalg.slogdet(A_BRF22)[1], np.inf)  # which then has no weight
    ln_weight = np.log(prior_RF) + grid.evidence * ln_likelihood - grid.flatness * ln_det
    # Forms that pass through all points leave nothing to weigh: the first of them, the simplest, answers.
    ln_weight, exact = (each.reshape(len(y_BN), -1) for each in (ln_weight, exact_BRF))
    simplest = np.where(np.arange(exact.shape[1]) == np.argmax(exact, axis=1)[:, None], 0.0, -np.inf)
    ln_weight = np.where(exact.any(axis=1, keepdims=True), simplest, ln_weight)
    weight = np.exp(ln_weight - ln_weight.max(axis=1, keepdims=True))
    weight_BRF = (weight / weight.sum(axis=1, keepdims=True)).reshape(sse_BRF.shape)
    sigma2_BRF = np.where(exact_BRF, 0.0, sse_BRF / grid.dof)
    return FormFits(grid, E_BF, theta, ln_y - ln_law, share, A_BRF22, sigma2_BRF, weight_BRF)


def _improve(grid: FormGrid, u_FN: Floats, E: Floats, ln_y: Floats, theta: Floats) -> tuple[Floats, ...]:
    """Gauss-Newton in ln y from the weighted line through ln(y - E), where a step that gains nothing is not taken.

    Returns:
        The parameters, ln of the law, the share of the power law in it, and the whitened sum of squares.
    """

    def at(theta: Floats) -> tuple[Floats, ...]:
        ln_power = theta[..., :1] - theta[..., 1:] * u_FN
        ln_law = _ln_sum(ln_power, E)
        return theta, ln_law, np.exp(ln_power - ln_law), (_white(grid, ln_y - ln_law) ** 2).sum(axis=3)

    now = at(theta)
    for _ in range(_STEPS):
        new = at(now[0] + _solve(grid, u_FN, now[2], ln_y - now[1], now[0])[0])
        better, *rest = new[3] < now[3], *zip(new, now, strict=True)
        now = tuple(np.where(better if a.ndim == 3 else better[..., None], a, b) for a, b in rest)
    return now


def _white(grid: FormGrid, rows: Floats) -> Floats:
    """Rows of values at the models, [B, R or 1, any, N], whitened by each scatter."""
    return np.asarray(rows @ np.array([scatter.whiten_NN for scatter in grid.scatters]))


def _solve(grid: FormGrid, u_FN: Floats, share: Floats, target: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Least squares of the target on (share, -share u), whitened, from some parameters on: the step, and J' R^-1 J."""
    first, second, white = (_white(grid, each) for each in (share, -share * u_FN, target))
    J = np.stack([first, second], axis=3)
    A, toward = J @ J.swapaxes(3, 4), J @ white[..., None]
    if grid.held_FH.size:
        left_H = grid.held_FH - np.einsum("fhp,brfp->brfh", grid.held_FH2, theta)
        A = A + _HOLD * grid.held_FH2.swapaxes(1, 2) @ grid.held_FH2
        toward = toward + _HOLD * np.einsum("fhp,brfh->brfp", grid.held_FH2, left_H)[..., None]
    told = _tells_both(A)[..., None, None]
    step = np.linalg.solve(np.where(told, A, np.eye(2)), toward)
    return np.where(told, step, 0.0)[..., 0], A


def _tells_both(A_22: Floats) -> NDArray[np.bool_]:
    """Whether the points tell both parameters of a component; not where its power law is but at one of the sizes."""
    a, b, c = A_22[..., 0, 0], A_22[..., 0, 1], A_22[..., 1, 1]
    return np.asarray(a * c - b**2 > _SINGULAR * a * c)


def _ln_sum(ln_power: Floats, E: Floats) -> Floats:
    """ln(E + exp(ln_power)), E >= 0."""
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
        return np.asarray(np.logaddexp(ln_power, np.log(E)))
