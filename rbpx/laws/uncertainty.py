"""How far a fitted law can be trusted: its residuals and its refits to resampled documents in, intervals out.

Two things move a fitted law. Other documents would have been drawn (text): known from refits to resampled documents.
Other models would have been trained (models): known from the scatter of the sizes about the law, less the part of
that scatter which the documents explain. They are kept apart, so that one can say which of them to have more of.

Shapes: N sizes, P parameters, B resamples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaincinv, ncfdtr, ndtri, stdtrit  # scipy.stats checks its arguments for 60 times as long

from rbpx.laws.regression import Regression

__all__ = ["LEVEL", "Uncertainty", "Z", "as_plain", "r2_interval", "uncertainty", "with_arrays"]

Floats = NDArray[np.float64]

LEVEL: Final = 0.95
Z: Final = float(ndtri((1 + LEVEL) / 2))  # the normal quantile of an interval of that level
MIN_RESAMPLES: Final = 20


def as_plain(value: object) -> dict[str, Any]:
    """The fields of a value as plain ones, arrays as lists: what JSON takes."""
    return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in vars(value).items()}


def with_arrays(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A record of plain values in which those named are float64 arrays again."""
    return {name: np.asarray(v, dtype=np.float64) if name in names else v for name, v in record.items()}


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Variances of the parameters of one fit.

    Attributes:
        text_PP: covariance over resamples of the documents; zeros where there are no documents.
        bias_P: mean over resamples less the fit.
        spread_PP: covariance of the parameters for points that scatter about the law with variance 1 in ln y (times
            their own variance, in a weighted fit).
        scatter: standard deviation of the points about the law, in ln y (of their own standard deviations).
        text_scatter: the part of it that the documents explain, standard deviation in ln y.
        dof: degrees of freedom of the scatter.
        knows_text: whether documents were resampled.
        point: variance of a new point in units of scatter^2; in a weighted fit the mean over the points.
    """

    text_PP: Floats
    bias_P: Floats
    spread_PP: Floats
    scatter: float
    text_scatter: float
    dof: int
    knows_text: bool
    point: float = 1.0

    def record(self) -> dict[str, Any]:
        """As plain values, from which `recall` makes it again."""
        return as_plain(self)

    @classmethod
    def recall(cls, record: Mapping[str, Any]) -> "Uncertainty":
        """The uncertainty of a record."""
        return cls(**with_arrays(record, ("text_PP", "bias_P", "spread_PP")))

    def interval(self, value: float, gradient_P: Floats, new_model: bool = False) -> tuple[float, float]:
        """95 % interval of a function of the parameters, by its gradient.

        value - bias +- sqrt((t sd_scatter)^2 + (1.96 sd_rest)^2), t of Student with `dof` degrees of freedom. The
        scatter of the points holds that of the models and such noise of the documents as differs between sizes; the
        rest is what moves all sizes alike, the variance of the text less its part in the scatter. A plug-in quantity
        such as an entropy is biased once in the data and about as much again in each resample, so the interval lies
        about the value less the bias of its resamples.

        Args:
            value: the function at the fitted parameters.
            gradient_P: its derivatives.
            new_model: add the scatter of one model, for what a model that was not measured would show.
        """
        centre, half = value - float(gradient_P @ self.bias_P), self.half_width(gradient_P, new_model)
        return centre - half, centre + half

    def half_width(self, gradient_P: Floats, new_model: bool = False) -> float:
        """Half of the interval's width."""
        unit, rest = self._parts(gradient_P, new_model)
        # The text's part of the scatter is known, however few the sizes.
        scattered = max(self.t * self.scatter, Z * self.text_scatter)
        return float(np.sqrt(scattered**2 * unit + Z**2 * rest))

    def rest(self, gradient_P: Floats) -> float:
        """Half width of the interval that the noise shared by all sizes has by itself."""
        return Z * float(np.sqrt(self._parts(gradient_P)[1]))

    def _parts(self, gradient_P: Floats, new_model: bool = False) -> tuple[float, float]:
        unit = float(gradient_P @ self.spread_PP @ gradient_P) + self.point * new_model
        text = float(gradient_P @ self.text_PP @ gradient_P)
        return unit, max(text - self.text_scatter**2 * unit, 0.0)

    def text_interval(self, value: float, gradient_P: Floats) -> tuple[float, float]:
        """As `interval`, for these very models on other documents."""
        centre = value - float(gradient_P @ self.bias_P)
        half = Z * float(np.sqrt(self.variances(gradient_P)[0]))
        return centre - half, centre + half

    def variances(self, gradient_P: Floats) -> tuple[float, float]:
        """Variance from the text and from the models, told apart; the models' is 0 where it comes out negative."""
        models = max(self.scatter**2 - self.text_scatter**2, 0.0) * float(gradient_P @ self.spread_PP @ gradient_P)
        return float(gradient_P @ self.text_PP @ gradient_P), models

    def limit(self, gradient_P: Floats) -> str | None:
        """What to have more of for a narrower interval: "models" or "text"; None where the text's part is unknown."""
        if not self.knows_text:
            return None
        text, models = self.variances(gradient_P)
        return "models" if models >= text else "text"

    @property
    def t(self) -> float:
        """Quantile of Student's t that the interval of a scatter uses."""
        return float(stdtrit(self.dof, (1 + LEVEL) / 2))


def uncertainty(found: Regression, refits: tuple[Floats, Floats] | None) -> Uncertainty:
    """Variances of a fit from its residuals and, where there are documents, from its refits.

    The residual variance holds the scatter of the models and the noise of the documents; the latter is the mean over
    resamples of the squares that the change of ln y leaves about its own refit, divided by the degrees of freedom.
    Points that count by their own variances are taken to scatter in proportion to these.

    Args:
        found: the regression.
        refits: (parameters [B, P], change of ln y [B, N]) under resampled documents.
    """
    J_NP, L_PN, theta_P = found.jacobian_NP, found.sensitivity_PN, found.theta_P
    dof = J_NP.shape[0] - J_NP.shape[1]
    w_N, spread_PP, point = np.ones(len(J_NP)), L_PN @ L_PN.T, 1.0
    if found.weighs_variances:
        w_N = found.weight_N
        spread_PP, point = (L_PN / w_N) @ L_PN.T, float(np.mean(1 / w_N))
    total = float(w_N @ found.residual_N**2) / dof
    text_PP, bias_P, explained = np.zeros((len(theta_P),) * 2), np.zeros(len(theta_P)), 0.0
    if refits is not None:
        theta_BP, change_BN = refits
        text_PP = np.atleast_2d(np.cov(theta_BP, rowvar=False))
        bias_P = theta_BP.mean(axis=0) - theta_P
        centred_BN = change_BN - change_BN.mean(axis=0)
        left_BN = centred_BN - centred_BN @ L_PN.T @ J_NP.T
        explained = float((left_BN**2 @ w_N).mean()) / dof
    return Uncertainty(text_PP, bias_P, spread_PP, total**0.5, explained**0.5, dof, refits is not None, point)


def r2_interval(r2: float, n: int) -> tuple[float, float]:
    """95 % interval of the R2 that the law has over all models of these sizes, from a regression on n sizes.

    F = (n - 2) R2 / (1 - R2) is noncentral F with 1 and n - 2 degrees of freedom and noncentrality
    n R2_true / (1 - R2_true), exact for normal scatter of equal size. Where F is beyond a million its numerator is as
    good as certain, and F is the noncentrality over chi^2 / dof.

    Args:
        r2: of the regression, in [0, 1).
        n: number of sizes, above 2.
    """
    F, dof = (n - 2) * r2 / (1 - r2), n - 2
    if F > 1e6:
        lo, hi = (F / dof * 2 * float(gammaincinv(dof / 2, q)) for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        return lo / (lo + n), hi / (hi + n)

    def at(probability: float) -> float:
        if ncfdtr(1, dof, 0.0, F) <= probability:
            return 0.0
        high = max(F, 1.0)
        while ncfdtr(1, dof, high, F) > probability:
            high *= 2
        noncentrality = brentq(lambda nc: float(ncfdtr(1, dof, nc, F)) - probability, 0.0, high)
        return float(noncentrality / (noncentrality + n))

    return at((1 + LEVEL) / 2), at((1 - LEVEL) / 2)
