"""Fits a rank distribution whose parameters are lines in ln S to smaller sizes, and derives the laws of a larger one.

One likelihood covers all sizes: theta_i = a + b ln S_i, so a form of P parameters has 2 P for a whole ladder.

Shapes: N sizes, P parameters, M coefficients of each (1: the same at every size; 2: a line in ln S), Q nodes, Y
quantities (-ln RBP_k at each k, H(P), CE).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats
from rbpx.laws.ranks.quadrature import RankNodes
from rbpx.laws.ranks.shapes import RankForm, derive, ln_mixture

_STEP: Final = 1e-5  # of a parameter, to difference ln p
_FARTHEST: Final = 60.0  # of a parameter from 0, beyond which a form has become another one
_ROUNDS: Final = 200
_GAIN: Final = 1e-6  # nats of the whole text, below which a step ends the search


@dataclass(frozen=True, eq=False)
class ClosureFit:
    """A form fitted to the ranks of some sizes; `coefficient_MP` are of 1 and ln (S / S_ref)."""

    form: RankForm
    nodes: RankNodes
    coefficient_MP: Floats
    ln_S_ref: float
    loglik: float
    converged: bool

    def theta(self, S: Floats) -> Floats:
        """The parameters at some sizes, [N, P]."""
        return np.asarray(
            np.vander(np.log(S) - self.ln_S_ref, len(self.coefficient_MP), increasing=True) @ self.coefficient_MP
        )

    def derived(self, S: Floats) -> Floats:
        """The derived quantities at some sizes, [N, Y]."""
        return derive(self.form.shares(self.theta(S), self.nodes), self.nodes)

    def likelihood(self, S: Floats, seen_NQ: Floats) -> Floats:
        """The log-likelihood of the tokens of each size, [N]."""
        return np.asarray((seen_NQ * ln_mixture(self.form.shares(self.theta(S), self.nodes))).sum(axis=1))


def fit_form(
    form: RankForm, nodes: RankNodes, S: Floats, seen_NQ: Floats, near: ClosureFit | None = None
) -> ClosureFit:
    """Fits a form by maximum likelihood, its parameters lines in ln S, or constants for a single size.

    Damped Fisher scoring starts from the fit to all sizes together, or from `near`.
    """
    ln_S = np.log(S)
    ln_S_ref = float(ln_S.mean())
    design_NM = np.vander(ln_S - ln_S_ref, min(len(S), 2), increasing=True)
    with np.errstate(all="ignore"):  # steps that go too far are not finite, and are shortened
        if near is not None and near.converged:
            begin_MP = np.vstack([near.theta(np.exp([ln_S_ref])), near.coefficient_MP[1:]])[: design_NM.shape[1]]
            begun = _climb(form, nodes, design_NM, seen_NQ, begin_MP)
            if begun[2]:
                return ClosureFit(form, nodes, begun[0], ln_S_ref, *begun[1:])
        pooled = [
            _climb(form, nodes, np.ones((1, 1)), seen_NQ.sum(axis=0, keepdims=True), np.array([start]))
            for start in form.starts
        ]
        top_MP, value, converged = max(pooled, key=lambda end: (np.isfinite(end[1]), end[1]))
        if len(S) > 1:
            begin_MP = np.vstack([top_MP, np.zeros_like(top_MP)])
            top_MP, value, converged = _climb(form, nodes, design_NM, seen_NQ, begin_MP)
    return ClosureFit(form, nodes, top_MP, ln_S_ref, value, converged)


def scatter_half_width(ln_ratio_N: Floats, S: Floats, S_new: float) -> tuple[float, int, float]:
    """Estimates the scatter of models about the derived law, for the interval of a new model.

    ln of measured over derived, at 3 sizes or more, is fitted by a line in ln S, which takes a bias or drift of the
    form. Returns the scatter about it, its degrees of freedom, and the variance of the new model's prediction over its
    square.
    """
    X_N2 = np.vander(np.log(S), 2, increasing=True)
    left_N = ln_ratio_N - X_N2 @ np.linalg.lstsq(X_N2, ln_ratio_N, rcond=None)[0]
    dof = len(S) - 2
    at_2 = np.array([1.0, np.log(S_new)])
    unit = 1.0 + float(at_2 @ np.linalg.inv(X_N2.T @ X_N2) @ at_2)
    return float(np.sqrt(left_N @ left_N / dof)), dof, unit


def _climb(
    form: RankForm, nodes: RankNodes, X_NM: Floats, seen_NQ: Floats, start_MP: Floats
) -> tuple[Floats, float, bool]:
    occurs_NQ, n_N = seen_NQ != 0, seen_NQ.sum(axis=1)
    unit_M = np.sqrt((X_NM**2).mean(axis=0))  # scales the steps of all coefficients alike

    def total(coefficient_MP: Floats) -> tuple[float, Floats]:
        theta_NP = X_NM @ coefficient_MP
        if not np.all(np.abs(theta_NP) < _FARTHEST):
            return -np.inf, np.full(seen_NQ.shape, np.nan)
        ln_p_NQ = ln_mixture(form.shares(theta_NP, nodes))
        value = float(np.where(occurs_NQ, seen_NQ * ln_p_NQ, 0.0).sum())
        return (value if np.isfinite(value) else -np.inf), ln_p_NQ

    at_MP, damping, n_P = start_MP, 1e-3, start_MP.shape[1]
    value, ln_p_NQ = total(at_MP)
    step_PP = _STEP * np.eye(n_P)
    for _ in range(_ROUNDS):
        theta_NP = X_NM @ at_MP
        moved = np.stack([theta_NP[:, None] + step_PP, theta_NP[:, None] - step_PP])
        ahead_NPQ, behind_NPQ = ln_mixture(form.shares(moved, nodes))
        slope_NPQ = (ahead_NPQ - behind_NPQ) / (2 * _STEP)
        p_NQ = np.exp(ln_p_NQ + nodes.ln_ranks_Q) * n_N[:, None]
        slope_NPQ = np.where(np.isfinite(slope_NPQ), slope_NPQ, 0.0)
        score_NP = (slope_NPQ @ seen_NQ[:, :, None])[:, :, 0]
        information_NPP = (slope_NPQ * p_NQ[:, None]) @ slope_NPQ.transpose(0, 2, 1)
        gradient = (X_NM.T @ score_NP / unit_M[:, None]).ravel()
        n_M = X_NM.shape[1]
        scaled_NM = X_NM / unit_M
        information = np.einsum("nm,nk,npq->mpkq", scaled_NM, scaled_NM, information_NPP)
        information = information.reshape(n_M * n_P, n_M * n_P)
        floor = 1e-9 * float(np.trace(information))
        if not np.isfinite(floor) or floor <= 0:
            return at_MP, value, False
        diagonal = np.diag(information) + floor
        while damping < 1e9:
            step = np.linalg.solve(information + damping * np.diag(diagonal), gradient)
            candidate_MP = at_MP + step.reshape(n_M, n_P) / unit_M[:, None]
            new_value, new_ln_p_NQ = total(candidate_MP)
            if new_value > value:
                break
            damping *= 8
        else:
            return at_MP, value, bool(np.isfinite(value)) and float(np.abs(step @ gradient)) < 1.0
        gain, at_MP, value, ln_p_NQ = new_value - value, candidate_MP, new_value, new_ln_p_NQ
        damping = max(damping / 8, 1e-12)
        if gain < _GAIN:
            return at_MP, value, True
    return at_MP, value, False
