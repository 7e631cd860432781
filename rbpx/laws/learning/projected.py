"""Fits y = b + d s(x; p) to many tokens at once: a grid of shapes, then Gauss-Newton on p with b and d projected out.

For a given shape s both levels are a linear problem with a closed form, so that a search has one or two numbers a
token instead of four, and thousands of tokens go through one matrix product. Losses are never negative, so neither is a
level.

Source: Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973), 413 (variable projection); the Jacobian without its smaller
term: Kaufman, BIT 15 (1975), 49.

Shapes of arrays: M tokens, T points, G shapes of the grid, P numbers of a shape.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.numeric import Floats

_TOKENS: Final = 1 << 14  # at a time, whatever their number: what bounds the memory and fits into a cache
_STEPS: Final = 25
_CLOSE: Final = 1e-6  # of the sum of squares; what another step would gain
_DAMPED: Final = (1e-3, 1e-12, 1e8)  # how strongly a search begins, and the bounds of that
_NO_VARIATION: Final = 1e-12  # of a shape over the points


class Shape(Protocol):
    """A family of curves in x that fall from 1 to 0, or part of that way."""

    @property
    def lo_P(self) -> Floats:
        """Least value of each of its numbers."""

    @property
    def hi_P(self) -> Floats:
        """Greatest value of each."""

    @property
    def may_rise(self) -> bool:
        """Whether d may be negative."""

    def grid(self) -> Floats:
        """Where a search may begin, [G, P]."""

    def at(self, x_T: Floats, p_MP: Floats) -> Floats:
        """The curves, [M, T]."""

    def slopes(self, x_T: Floats, p_MP: Floats, s_MT: Floats) -> Floats:
        """Their derivatives by each number, [P, M, T]."""


@dataclass(frozen=True, eq=False)
class Projected:
    """Curves of many tokens.

    Attributes:
        level_M: b, where s is 0.
        drop_M: d; where s is 1 the curve is b + d.
        p_MP: the numbers of each shape.
        squares_M: sum of squared residuals.
        about_M: sum of squares about the mean.
    """

    level_M: Floats
    drop_M: Floats
    p_MP: Floats
    squares_M: Floats
    about_M: Floats

    def at(self, shape: Shape, x_X: Floats) -> Floats:
        """The curves at any x, [M, X]."""
        return self.level_M[:, None] + self.drop_M[:, None] * shape.at(x_X, self.p_MP)


@dataclass(frozen=True, eq=False)
class _Linear:
    """The levels of given shapes: b, d, residuals, and which of two, one or the other column is free."""

    level_M: Floats
    drop_M: Floats
    residual_MT: Floats
    squares_M: Floats
    kind_M: NDArray[np.int8]  # 0: both levels are free; 1: b = 0; 2: b + d = 0; 3: d = 0

    def of(self, at_M: NDArray[np.intp]) -> "_Linear":
        """Those of some tokens."""
        return _Linear(
            self.level_M[at_M], self.drop_M[at_M], self.residual_MT[at_M], self.squares_M[at_M], self.kind_M[at_M]
        )

    def take(self, at_M: NDArray[np.intp], other: "_Linear", from_M: NDArray[np.bool_]) -> None:
        """Replace those of some tokens by others."""
        for name, mine_M in vars(self).items():
            mine_M[at_M] = vars(other)[name][from_M]


def fit_projected(shape: Shape, x_T: Floats, y_MT: NDArray[np.floating]) -> Projected:
    """The least squares of each token, in blocks of tokens.

    Args:
        shape: the family of curves.
        x_T: the points, ascending.
        y_MT: what each token loses there, nats, none negative.

    Raises:
        ValueError: shapes disagree, or a y is negative or not finite.
    """
    if y_MT.ndim != 2 or y_MT.shape[1] != len(x_T):
        raise ValueError(f"{y_MT.shape} losses at {len(x_T)} points")
    parts = [_fit(shape, x_T, y_MT[begin : begin + _TOKENS]) for begin in range(0, max(len(y_MT), 1), _TOKENS)]
    return Projected(*(np.concatenate([getattr(part, name) for part in parts]) for name in Projected.__annotations__))


def _fit(shape: Shape, x_T: Floats, given_MT: NDArray[np.floating]) -> Projected:
    y_MT: Floats = given_MT.astype(np.float64)
    if not np.all(np.isfinite(y_MT) & (y_MT >= 0)):
        raise ValueError("a loss is negative or not finite")
    about_M = ((y_MT - y_MT.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    p_MP = _begin(shape, x_T, y_MT)
    found = _levels(shape, shape.at(x_T, p_MP), y_MT)
    damping_M = np.full(len(y_MT), _DAMPED[0])
    at_M = np.flatnonzero(about_M > 0)  # of tokens whose search goes on
    for _ in range(_STEPS):
        if not len(at_M):
            break
        y_AT, p_AP, before = y_MT[at_M], p_MP[at_M], found.of(at_M)
        step_AP = _step(shape, x_T, p_AP, before, damping_M[at_M])
        next_AP = np.clip(p_AP + step_AP, shape.lo_P, shape.hi_P)
        after = _levels(shape, shape.at(x_T, next_AP), y_AT)
        better_A = after.squares_M < before.squares_M
        gain_A = before.squares_M - after.squares_M
        ends_A = (better_A & (gain_A <= _CLOSE * about_M[at_M])) | (damping_M[at_M] >= _DAMPED[2])
        ends_A |= (np.abs(next_AP - p_AP) <= _CLOSE * (shape.hi_P - shape.lo_P)).all(axis=1)
        taken = at_M[better_A]
        p_MP[taken] = next_AP[better_A]
        found.take(taken, after, better_A)
        factor_A = np.where(better_A, 0.2, 8.0)
        damping_M[at_M] = np.clip(damping_M[at_M] * factor_A, *_DAMPED[1:])
        at_M = at_M[~ends_A]
    return Projected(found.level_M, found.drop_M, p_MP, found.squares_M, about_M)


def _begin(shape: Shape, x_T: Floats, y_MT: Floats) -> Floats:
    """The best shape of the grid for each token, from two matrix products: with both levels free, and with one at 0."""
    p_GP = shape.grid()
    s_GT = shape.at(x_T, p_GP)
    about_GT = s_GT - s_GT.mean(axis=1, keepdims=True)
    kept = (about_GT**2).sum(axis=1) > _NO_VARIATION
    p_GP, s_GT, about_GT = p_GP[kept], s_GT[kept].astype(np.float32), about_GT[kept].astype(np.float32)
    y32_MT = y_MT.astype(np.float32)
    mean_M1 = y32_MT.mean(axis=1, keepdims=True)
    var_G = (about_GT**2).sum(axis=1)
    drop_MG = ((y32_MT - mean_M1) @ about_GT.T) / var_G
    level_MG = mean_M1 - drop_MG * s_GT.mean(axis=1)
    explained_MG = drop_MG**2 * var_G  # of the sum of squares about the mean
    total_M1 = np.float32(len(x_T)) * mean_M1**2  # that of a constant, which a curve from 0 does without
    for of_GT, is_out in ((s_GT, level_MG < 0), (1 - s_GT, level_MG + drop_MG < 0)):
        squares_G = (of_GT**2).sum(axis=1)
        alone_MG = (y32_MT @ of_GT.T) ** 2 / np.where(squares_G > 0, squares_G, np.inf) - total_M1
        explained_MG = np.where(is_out, alone_MG, explained_MG)
    if not shape.may_rise:
        explained_MG = np.where(drop_MG < 0, 0, explained_MG)
    return np.asarray(p_GP[explained_MG.argmax(axis=1)])


def _levels(shape: Shape, s_MT: Floats, y_MT: Floats) -> _Linear:
    """The levels b and d of least squares, neither b nor b + d below 0."""
    mean_M, s_mean_M = y_MT.mean(axis=1), s_MT.mean(axis=1)
    about_MT = s_MT - s_mean_M[:, None]
    var_M = np.einsum("mt,mt->m", about_MT, about_MT)
    varies_M = var_M > _NO_VARIATION
    drop_M = np.where(varies_M, np.einsum("mt,mt->m", about_MT, y_MT) / np.where(varies_M, var_M, 1.0), 0.0)
    level_M = mean_M - drop_M * s_mean_M
    kind_M = np.zeros(len(y_MT), np.int8)
    flat_M = ~varies_M if shape.may_rise else ~varies_M | (drop_M < 0)
    kind_M[flat_M] = 3
    level_M[flat_M], drop_M[flat_M] = mean_M[flat_M], 0.0
    for kind, out_M in ((1, level_M < 0), (2, level_M + drop_M < 0)):
        if out_M.any():
            of_OT = s_MT[out_M] if kind == 1 else 1 - s_MT[out_M]
            alone_O = (of_OT * y_MT[out_M]).sum(axis=1) / (of_OT**2).sum(axis=1)
            level_M[out_M], drop_M[out_M] = (0.0, alone_O) if kind == 1 else (alone_O, -alone_O)
            kind_M[out_M] = kind
    residual_MT = y_MT - level_M[:, None] - drop_M[:, None] * s_MT
    return _Linear(level_M, drop_M, residual_MT, np.einsum("mt,mt->m", residual_MT, residual_MT), kind_M)


def _step(shape: Shape, x_T: Floats, p_MP: Floats, at: _Linear, damping_M: Floats) -> Floats:
    """A damped step of Gauss and Newton in the numbers of the shape, [M, P]; numbers at a bound stay there."""
    s_MT = shape.at(x_T, p_MP)
    slope_PMT = shape.slopes(x_T, p_MP, s_MT)
    about_MT = s_MT - s_MT.mean(axis=1, keepdims=True)
    kind_M1 = at.kind_M[:, None]
    # What the levels can take up is no change: project on what is orthogonal to the free columns, 1, s or both.
    column_MT = np.where(kind_M1 == 0, about_MT, np.where(kind_M1 == 1, s_MT, np.where(kind_M1 == 2, 1 - s_MT, 0.0)))
    squares_M = np.maximum(np.einsum("mt,mt->m", column_MT, column_MT), np.finfo(np.float64).tiny)
    J_PMT = slope_PMT - np.where((kind_M1 == 0) | (kind_M1 == 3), slope_PMT.mean(axis=2, keepdims=True), 0.0)
    share_PM = np.einsum("pmt,mt->pm", J_PMT, column_MT) / squares_M
    J_PMT = (J_PMT - share_PM[..., None] * column_MT) * at.drop_M[:, None]
    gradient_MP = np.einsum("pmt,mt->mp", J_PMT, at.residual_MT)
    curvature_MPP = np.einsum("pmt,qmt->mpq", J_PMT, J_PMT)
    held_MP = ((p_MP <= shape.lo_P) & (gradient_MP < 0)) | ((p_MP >= shape.hi_P) & (gradient_MP > 0))
    gradient_MP = np.where(held_MP, 0.0, gradient_MP)
    P = p_MP.shape[1]
    curvature_MPP = np.where(held_MP[:, :, None] | held_MP[:, None, :], 0.0, curvature_MPP)
    diagonal_MP = np.einsum("mpp->mp", curvature_MPP)
    largest_M = diagonal_MP.max(axis=1)
    least_MP = np.where(held_MP | (largest_M[:, None] <= 0), 1.0, 1e-12 * largest_M[:, None])
    added_MP = damping_M[:, None] * diagonal_MP + least_MP
    solved = np.linalg.solve(curvature_MPP + added_MP[:, :, None] * np.eye(P), gradient_MP[..., None])
    return np.asarray(solved[..., 0])
