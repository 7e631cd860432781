"""Mixtures of Student's t: where their quantiles are, and how much of them lies below a value.

Shapes: G components, with any number of mixtures before them, written as dots.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

__all__ = ["TMixture"]

Floats = NDArray[np.float64]

_NEGLIGIBLE: Final = 1e-10  # of the greatest weight
_HALVINGS: Final = 36  # of the bracket of a quantile


@dataclass(frozen=True, eq=False)
class TMixture:
    """Mixtures with the same degrees of freedom in each component.

    Attributes:
        centre: of each component, shape [..., G].
        scale: of each component, 0 where it is a point, shape [..., G].
        weight: of each component, shape [..., G]; they sum to 1 over the last axis.
        dof: degrees of freedom.
    """

    centre: Floats
    scale: Floats
    weight: Floats
    dof: int

    def only(self, mask_G: NDArray[np.bool_]) -> "TMixture":
        """The mixture of some of the components alone."""
        weight = self.weight[..., mask_G]
        weight = weight / weight.sum(axis=-1, keepdims=True)
        return TMixture(self.centre[..., mask_G], self.scale[..., mask_G], weight, self.dof)

    def below(self, value: ArrayLike) -> Floats:
        """The probability of less than a value, by mixture, shape [...]."""
        away = np.asarray(value, dtype=np.float64)[..., None] - self.centre
        return np.asarray((self.weight * _below(away, self.scale, self.dof)).sum(axis=-1))

    def quantiles(self, tails: ArrayLike) -> Floats:
        """Quantiles by bisection, shape [..., Q].

        Args:
            tails: the probability below each, shape [Q].
        """
        tail_Q = np.asarray(tails, dtype=np.float64)
        greatest = self.weight.max(axis=-1, keepdims=True)
        counts_G = np.any(self.weight > _NEGLIGIBLE * greatest, axis=tuple(range(self.weight.ndim - 1)))
        some = self.only(counts_G)
        centre, scale, weight = (part[..., None, :] for part in (some.centre, some.scale, some.weight))
        # Each lies between the least and the greatest quantile of the components that count.
        of_component = centre + scale * stdtrit(self.dof, tail_Q)[:, None]
        of_component = np.where(weight > 0, of_component, np.nan)
        lo, hi = np.nanmin(of_component, axis=-1), np.nanmax(of_component, axis=-1)
        for _ in range(_HALVINGS):
            middle = (lo + hi) / 2
            is_below = (weight * _below(middle[..., None] - centre, scale, self.dof)).sum(axis=-1) < tail_Q
            lo, hi = np.where(is_below, middle, lo), np.where(is_below, hi, middle)
        return np.asarray((lo + hi) / 2)


def _below(away: Floats, scale: Floats, dof: int) -> Floats:
    """Student's t distribution function at a distance from the centre; a point has no scale: all or nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(stdtr(dof, np.where(away == 0, 0.0, away / scale)))
