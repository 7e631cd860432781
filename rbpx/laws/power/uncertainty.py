"""Uncertainty of a fitted law, from its residuals and from bootstrap replicates of the documents.

Document sampling (text) is estimated from the replicates. The variation of models is the scatter of the sizes about the
law, minus the part that the documents explain. The two stay separate, so that a law can say which to collect more of.

Residuals of models of one size share an effect of that size: e = u(size) + v, with variances tau^2 and omega^2. A
family that repeats the sizes of another therefore does not narrow an interval by what it repeats.

Shapes: N sizes, M points of several families, P parameters, B bootstrap replicates of the documents.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rbpx.laws.intervals.estimate import (
    LEVEL,
    Estimate,
    Moments,
    Replicates,
    around,
    document_t,
    extended_to,
    from_half_width,
    half_width,
)
from rbpx.laws.intervals.lack_of_fit import FamilyPoints, stack_family
from rbpx.laws.numeric import Floats
from rbpx.laws.power.regression import Regression

_WORST_CONDITION: Final = 1e8


@dataclass(frozen=True)
class SharedError:
    """The error of one linear combination of the values.

    Attributes:
        scatter: standard error from the scatter of the models, effects of sizes included.
        dof: its degrees of freedom, by Satterthwaite.
        explained: standard deviation within it that the documents explain.
        shared: variance over documents that residuals do not show.
        unit: variance of the combination if the points scattered independently with variance 1.
        n_effective: effective sample size of the documents.
    """

    scatter: float
    dof: float
    explained: float
    shared: float
    unit: float
    n_effective: float | None = None

    @property
    def half_width(self) -> float:
        """Half width of the 95 % interval."""
        return half_width(self.shared, self.scatter, self.dof, self.explained, n_effective=self.n_effective)

    @property
    def variance_of_one(self) -> float:
        """Variance that independent points would need for the combination to have this scatter."""
        return self.scatter**2 / self.unit

    def around(self, value: float) -> Estimate:
        """Returns the value with its interval."""
        return from_half_width(value, self.half_width)


def shared_error(points: FamilyPoints, jacobian_MP: Floats, residual_M: Floats, at: int) -> SharedError:
    """Returns the error of parameter number `at` of a least-squares fit to all points, by its jacobian of full rank.

    With K the indicator of points of one size, r = M e the residuals and l the influence of each point, the variance
    omega^2 l'l + tau^2 l'K l is estimated by the combination a r'r + b r'K r of that mean. Where all families have the
    same sizes, this is the mean square of the size means about their law (N - P degrees of freedom of one family), and
    the interval is exact for any correlation between families. Otherwise Satterthwaite's degrees of freedom are taken
    at the estimated variances. If no two families share a size, the residuals count as independent.

    Source:
        F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110; S. R. Searle, G. Casella, C. E. McCulloch, Variance
        Components (1992), section 5.3 (quadratic forms and their means).
    """
    L_PM = np.linalg.pinv(jacobian_MP)
    rest_MM, same_MM, influence_M = np.eye(len(residual_M)) - jacobian_MP @ L_PM, points.same_size_MM, L_PM[at]
    wanted = np.array([influence_M @ influence_M, influence_M @ same_MM @ influence_M])
    squares = np.array([residual_M @ residual_M, residual_M @ same_MM @ residual_M])
    # Means of r'r and r'K r, by omega^2 and tau^2.
    of_size_MM = rest_MM @ same_MM
    of_one, mixed, of_sizes = (float(np.trace(each)) for each in (rest_MM, of_size_MM, of_size_MM @ of_size_MM))
    means = np.array([[of_one, mixed], [mixed, of_sizes]])
    if np.linalg.cond(means) > _WORST_CONDITION:  # all sizes differ, or all are shared
        (a, b), omega2, tau2 = (wanted[1] / mixed, 0.0), squares[0] / of_one, 0.0
    else:
        (a, b), (omega2, tau2) = np.linalg.solve(means, wanted), np.linalg.solve(means, squares)
        if omega2 < 0 or tau2 < 0:
            omega2, tau2 = (squares[0] / of_one, 0.0) if tau2 < 0 else (0.0, squares[0] / mixed)
    form_MM = a * rest_MM + b * of_size_MM @ rest_MM
    variance = float(residual_M @ form_MM @ residual_M)
    if variance < 0:  # an unbiased estimate may be negative; effects of sizes are then set to 0
        form_MM = rest_MM * (wanted[0] / of_one)
        variance, tau2 = float(residual_M @ form_MM @ residual_M), 0.0
    spread_MM = form_MM @ (tau2 * same_MM + omega2 * np.eye(len(residual_M)))
    rounds = float(np.sum(spread_MM * spread_MM.T))
    dof = float(np.trace(spread_MM)) ** 2 / rounds if rounds > 0 else of_one
    text = explained = 0.0
    if points.change_BM is not None:
        change_BM = points.change_BM - points.change_BM.mean(axis=0)
        text = float((change_BM @ influence_M).var(ddof=1))
        explained = max(float(np.einsum("bm,mn,bn->b", change_BM, form_MM, change_BM).mean()), 0.0)
    shared = max(text - explained, 0.0)
    return SharedError(variance**0.5, dof, explained**0.5, shared, float(wanted[0]), points.n_effective)


def as_plain(value: object) -> dict[str, Any]:
    """Returns the fields of a value as JSON takes them."""
    return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in vars(value).items()}


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Variances of the parameters of one fit.

    Attributes:
        text_PP: covariance over documents; zeros without replicates.
        bias_P: mean over replicates minus the fit.
        spread_PP: covariance of the parameters for points with variance 1 in ln y (in a weighted fit, times their own
            variance).
        scatter: standard deviation of the points about the law, in ln y (of their own standard deviations).
        text_scatter: standard deviation within it that the documents explain.
        dof: degrees of freedom of the scatter; not an integer where sizes repeat.
        point: variance of a new point in units of scatter^2; in a weighted fit the mean over the points.
        n_effective: effective sample size of the documents; unknown in fits of earlier versions.
    """

    text_PP: Floats
    bias_P: Floats
    spread_PP: Floats
    scatter: float
    text_scatter: float
    dof: float
    knows_text: bool
    point: float = 1.0
    n_effective: float | None = None

    def interval(self, value: float, gradient_P: Floats, new_model: bool = False) -> tuple[float, float]:
        """Returns the 95 % interval over documents and models of a function of the parameters.

        The interval is value - bias +- `half_width`, extended to the value if needed: a plug-in quantity such as an
        entropy is biased once in the data and about as much again in each replicate. `new_model` adds the scatter of
        one model.
        """
        return extended_to(
            value, around(value - float(gradient_P @ self.bias_P), self.half_width(gradient_P, new_model))
        )

    def half_width(self, gradient_P: Floats, new_model: bool = False, p: float = 1 - LEVEL) -> float:
        """Returns the half width at level 1 - p, with Student's t for the scatter and for the shared noise."""
        unit, shared = self._parts(gradient_P, new_model)
        return half_width(shared, self.scatter, self.dof, self.text_scatter, unit, self.n_effective, p)

    def shared_half_width(self, gradient_P: Floats) -> float:
        """Returns the half width from the noise that all sizes share."""
        return document_t(self.n_effective) * math.sqrt(self._parts(gradient_P)[1])

    def _parts(self, gradient_P: Floats, new_model: bool = False) -> tuple[float, float]:
        """Variance per scatter of 1, and variance over documents that the scatter does not show."""
        unit = max(float(gradient_P @ self.spread_PP @ gradient_P), 0.0)  # for a fixed parameter it is 0 up to rounding
        unit += self.point * new_model
        text = float(gradient_P @ self.text_PP @ gradient_P)
        return unit, max(text - self.text_scatter**2 * unit, 0.0)

    def text_interval(self, value: float, gradient_P: Floats) -> tuple[float, float]:
        """Returns the interval for the same models on other documents."""
        _, shared = self._parts(gradient_P)
        own = max(self.variances(gradient_P)[0] - shared, 0.0)
        half = half_width(shared, own=math.sqrt(own), n_effective=self.n_effective)
        return extended_to(value, around(value - float(gradient_P @ self.bias_P), half))

    def variances(self, gradient_P: Floats) -> tuple[float, float]:
        """Returns the variance over documents and the variance over models, which is at least 0."""
        models = max(self.scatter**2 - self.text_scatter**2, 0.0) * float(gradient_P @ self.spread_PP @ gradient_P)
        return float(gradient_P @ self.text_PP @ gradient_P), models

    def limit(self, gradient_P: Floats) -> str | None:
        """Returns what to collect more of, "models" or "text"; None without replicates of the documents."""
        if not self.knows_text:
            return None
        text, models = self.variances(gradient_P)
        return "models" if models >= text else "text"


def uncertainty(
    regression: Regression, documents: tuple[Moments | None, Replicates] | None, x_N: Floats | None = None
) -> Uncertainty:
    """Returns the variances of a fit from its residuals and, if available, from replicates of the documents.

    The residual variance contains the scatter of the models and the noise of the documents: the mean over replicates of
    the squares that the change of ln y leaves about its own fit, by degree of freedom. Weighted points are assumed to
    scatter in proportion to their own variances. With x_N, ln S, the common error of models of one size counts once,
    and the scatter is that of independent points for which alpha would be as uncertain.
    """
    J_NP, L_PN, theta_P = regression.jacobian_NP, regression.sensitivity_PN, regression.theta_P
    dof: float = regression.dof
    w_N, spread_PP, point = np.ones(len(J_NP)), L_PN @ L_PN.T, 1.0
    if regression.weighs_variances:
        w_N = regression.weight_N
        spread_PP, point = (L_PN / w_N) @ L_PN.T, float(np.mean(1 / w_N))
    total = float(w_N @ regression.residual_N**2) / dof
    text_PP, bias_P, explained = np.zeros((len(theta_P),) * 2), np.zeros(len(theta_P)), 0.0
    text, replicates = documents or (None, None)
    n_effective = None if replicates is None else replicates.n_effective
    if replicates is not None and text is not None:
        text_PP, bias_P = text.covariance_PP, text.bias_P
        explained = float(w_N @ replicates.mean_squares_of(np.eye(len(J_NP)) - J_NP @ L_PN)) / dof
    scatter, text_scatter = total**0.5, explained**0.5
    if x_N is not None and len(set(x_N.tolist())) < len(x_N) and regression.free_PF is None:
        root_N = np.sqrt(w_N)
        changes = None if replicates is None or text is None else (replicates.ln_y_BN - replicates.mean_N) * root_N
        points = stack_family(x_N, np.zeros(len(x_N)), changes)
        J_MP, residual_M = regression.free_jacobian_NP * root_N[:, None], regression.residual_N * root_N
        error = shared_error(points, J_MP, residual_M, at=1)
        scatter, text_scatter, dof = error.variance_of_one**0.5, error.explained / error.unit**0.5, error.dof
    knows_text = text is not None
    return Uncertainty(text_PP, bias_P, spread_PP, scatter, text_scatter, dof, knows_text, point, n_effective)
