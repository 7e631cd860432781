"""The runs that a surface is fitted to. Shapes: N points."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats


def six_S(S: Floats) -> Floats:
    """Training FLOPs per token, C = 6 S D, where head and context count little."""
    return 6.0 * S


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Logarithmic coordinates about a reference, where constants and exponents are hardly correlated.

    Attributes:
        u_N: ln(U / D_ref), U the unique tokens, at most D.
    """

    s_N: Floats
    d_N: Floats
    u_N: Floats
    ln_S_ref: float = 0.0
    ln_D_ref: float = 0.0

    @classmethod
    def of(cls, ln_S: Floats, ln_D: Floats, U: ArrayLike | None = None) -> "Coordinates":
        """Points about S = 1 and D = 1; all tokens are unique if U is None."""
        return cls(ln_S, ln_D, ln_D if U is None else np.minimum(np.log(np.asarray(U, np.float64)), ln_D))

    def about(self, ln_S_ref: float, ln_D_ref: float) -> "Coordinates":
        """The points about another reference."""
        s, d = self.ln_S_ref - ln_S_ref, self.ln_D_ref - ln_D_ref
        return Coordinates(self.s_N + s, self.d_N + d, self.u_N + d, ln_S_ref, ln_D_ref)

    def only(self, keep_N: NDArray[Any]) -> "Coordinates":
        """Some of the points."""
        return replace(self, s_N=self.s_N[keep_N], d_N=self.d_N[keep_N], u_N=self.u_N[keep_N])


@dataclass(frozen=True, eq=False)
class Runs:
    """Points of trained models.

    Attributes:
        U_N: unique tokens.
        group_N: run of each point, from 0; its checkpoints are resampled together.
        y_BN: y under bootstrap replicates, of the same documents for every point.
    """

    S_N: Floats
    D_N: Floats
    y_N: Floats
    U_N: Floats | None
    group_N: NDArray[np.int64]
    y_BN: Floats | None
    weight_N: Floats | None = None

    @classmethod
    def of(
        cls,
        S: ArrayLike,
        D: ArrayLike,
        y: ArrayLike,
        U: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        y_replicates: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> "Runs":
        """Checks and collects N points; a y that is not positive and finite becomes a status of the fit.

        `U` may be one number, and NaN stands for D. Without `groups` each point is a run.

        Raises:
            ValueError: shapes disagree, or an S, a D or a U is not positive and finite.
        """
        S_N, D_N, y_N = (np.asarray(each, np.float64) for each in (S, D, y))
        U_N = None if U is None else np.broadcast_to(np.asarray(U, np.float64), S_N.shape)
        U_N = None if U_N is None else np.where(np.isnan(U_N), D_N, U_N)
        ids = np.arange(len(S_N)) if groups is None else np.asarray(groups)
        if not S_N.shape == D_N.shape == y_N.shape == ids.shape:
            raise ValueError(f"points need one shape, got {[each.shape for each in (S_N, D_N, y_N, ids)]}")
        for name, each in (("S", S_N), ("D", D_N), ("U", S_N if U_N is None else U_N)):
            if len(bad := each[~((each > 0) & np.isfinite(each))]):
                raise ValueError(f"{name} must be positive and finite, got {bad[0]}")
        group_N = np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)
        y_BN, weight_N = (None if each is None else np.asarray(each, np.float64) for each in (y_replicates, weights))
        return cls(S_N, D_N, y_N, U_N, group_N, y_BN, weight_N)

    @property
    def n_groups(self) -> int:
        """Number of runs."""
        return int(self.group_N.max(initial=-1)) + 1

    def along(self, axis: Axis) -> Floats:
        """One axis of each point; C is 6 S D."""
        return {Axis.S: self.S_N, Axis.D: self.D_N, Axis.C: self.D_N * six_S(self.S_N)}[axis]

    @property
    def repeats(self) -> bool:
        """Whether any run saw tokens more than once, by more than rounding."""
        return self.U_N is not None and bool(np.any(self.D_N > self.U_N * (1 + 1e-6)))

    @property
    def places(self) -> Coordinates:
        """The points about S = 1 and D = 1."""
        return Coordinates.of(np.log(self.S_N), np.log(self.D_N), self.U_N)

    @cached_property
    def x(self) -> Coordinates:
        """The points about their geometric means."""
        return self.places.about(float(np.log(self.S_N).mean()), float(np.log(self.D_N).mean()))

    def only(self, keep_N: NDArray[Any]) -> "Runs":
        """Some of the points."""
        U_N, y_BN, weight_N = (
            None if each is None else each[..., keep_N] for each in (self.U_N, self.y_BN, self.weight_N)
        )
        S_N, D_N, y_N = (each[keep_N] for each in (self.S_N, self.D_N, self.y_N))
        return Runs.of(S_N, D_N, y_N, U_N, self.group_N[keep_N], y_BN, weight_N)
