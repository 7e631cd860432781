"""Recovers the law of single tokens from how many sequences of N tokens passed at each size.

With independent hits pass ~ Bernoulli(exp(-C N S^(-alpha))). Clustered hits make long sequences pass more often: alpha
comes out too small where they cluster alike at every size, too large where they cluster more the larger the model. Two
corrections allow for that.

Shapes: C cells, each one size and one N; P parameters; B bootstrap replicates of the documents.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.counts.passing import PassCounts, Scatter, maximise_likelihood, model_scatter, separated, slopes
from rbpx.laws.intervals.estimate import MOST_LEFT_OUT, NO_ESTIMATE, Estimate, around, by_name, moments
from rbpx.laws.names import MLE
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.law import LawFit
from rbpx.laws.prediction.verdict import trend_warnings
from rbpx.status import Status, first_of, in_order

_LARGEST_MU: Final = 700.0
_CERTAIN: Final = 1 - 1e-9  # the largest share of hits to start from


class Correction(StrEnum):
    """The assumption about the hits of one sequence."""

    none = "none"  # independent
    measured = "measured"  # with a known mean correlation, for each size and N
    free = "free"  # with one correlation for all, fitted to the outcomes of several N


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Counts of outcomes, one per cell.

    Attributes:
        N_C: tokens of a sequence.
        passed_BC: under bootstrap replicates of the documents (or tasks); None where sequences are independent.
        r_C: mean correlation of two hits of a sequence, where measured.
        n_effective: None where the documents (or tasks) are not counted.
    """

    S_C: Floats
    N_C: Floats
    passed_C: Floats
    trials_C: Floats
    passed_BC: Floats | None = None
    trials_BC: Floats | None = None
    r_C: Floats | None = None
    r_BC: Floats | None = None
    n_effective: float | None = None

    def of(self, at_C: NDArray[np.bool_]) -> "Outcomes":
        """Some of the cells."""
        of_cells = {name: each[..., at_C] for name, each in vars(self).items() if isinstance(each, np.ndarray)}
        return replace(self, **of_cells)  # type: ignore[arg-type]

    def record(self) -> dict[str, Any]:
        """The columns from which the law can be fitted again."""
        r = None if self.r_C is None else [float(r) if np.isfinite(r) else None for r in self.r_C]
        counts = {"passed": self.passed_C.tolist(), "trials": self.trials_C.tolist(), "r": r}
        return {"S": self.S_C.tolist(), "N": self.N_C.astype(int).tolist()} | counts


def _reason_against_fit(one: Outcomes, correction: Correction) -> Status | None:
    used_C = one.trials_C > 0
    if not used_C.any():
        return Status.too_few_tokens
    if len(np.unique(one.S_C[used_C])) < 2:
        return Status.too_few_sizes
    if one.passed_C.sum() in (0, one.trials_C.sum()):
        return Status.not_positive
    if separated(_pass_counts(one, Correction.none, 0.0))[0]:
        return Status.not_positive
    if correction is Correction.free and len(np.unique(one.N_C[used_C])) < 2:
        return Status.barely_determined
    if correction is Correction.measured and (one.r_C is None or not np.isfinite(one.r_C[used_C]).all()):
        return Status.not_known
    return None


def _is_one_sided(one: Outcomes) -> bool:
    """Whether a law over 3 or more sizes has passes and failures both at fewer than 3 of them."""
    sizes = np.unique(one.S_C[one.trials_C > 0])
    both = set(one.S_C[one.passed_C > 0]) & set(one.S_C[one.passed_C < one.trials_C])
    return len(sizes) > 2 and len(both) < 3


def _pass_counts(one: Outcomes, correction: Correction, ln_S_ref: float) -> PassCounts:
    """The counts, then those of the replicates."""

    def all_of(of_C: Any, of_BC: Floats | None) -> Floats:
        return np.vstack([of_C] if one.passed_BC is None else [of_C, np.broadcast_to(of_BC, one.passed_BC.shape)])  # type: ignore[arg-type]

    r_BC = None if correction is Correction.free else all_of(np.zeros(len(one.S_C)), np.zeros(1))
    if correction is Correction.measured:
        r_BC = all_of(one.r_C, one.r_BC)
    counts = all_of(one.passed_C, one.passed_BC), all_of(one.trials_C, one.trials_BC)
    return PassCounts(np.log(one.S_C) - ln_S_ref, one.N_C, *counts, r_BC)


@dataclass(frozen=True, eq=False, kw_only=True)
class OutcomeFit(LawFit):
    """The law of single tokens recovered from outcomes; numbers are None where there is no fit.

    C is at S = 1, nats. The standard error of alpha is over resampled documents or from Fisher's information; its
    interval also includes, from 3 sizes on, the scatter of the models. aic and bic compare corrections on the same
    outcomes.

    Attributes:
        r: the correlation fitted by `free`.
        theta_P: ln C at S_ref, alpha and, for `free`, r.
        bias_P: mean of these over the replicates minus theta_P.
        interval: "documents and models", "sequences and models", "documents", "sequences" or None.
    """

    correction: Correction
    r: Estimate = NO_ESTIMATE
    n_sequences: int
    n_passed: int
    S_ref: float = 1.0
    theta_P: Floats = field(default_factory=lambda: np.zeros(0))
    bias_P: Floats = field(default_factory=lambda: np.zeros(0))
    scatter: Scatter | None = None
    n_replicates: int | None = None
    n_replicates_left_out: int = 0
    interval: str | None = None
    reasons: tuple[Status, ...] | None = None
    alpha_B: Floats | None = None

    def along(self, of_P: Floats) -> Estimate:
        """A linear combination of the parameters, with its 95 % interval."""
        value = float(of_P @ self.theta_P)
        if self.scatter is None or self.interval is None:
            return Estimate(value)
        return Estimate(value, *around(value, self.scatter.half_width(of_P)))

    def rbp(self, S: float) -> Estimate:
        """RBP_k of single tokens at a size; the fit must have numbers."""
        of_P = np.array([1.0, -math.log(S / self.S_ref), 0.0])[: len(self.theta_P)]
        return self.along(of_P).through(lambda mu: math.exp(-math.exp(mu)) if mu < _LARGEST_MU else 0.0, falls=True)

    def record(self) -> dict[str, Any]:
        """The params of the row of `fits`."""
        record: dict[str, Any] = {"method": MLE, "correction": self.correction.value, **by_name(r=self.r)}
        record |= {"n_sequences": self.n_sequences, "n_passed": self.n_passed}
        if self.scatter is None or self.reasons is None:
            return record
        if self.n_replicates is not None:
            record |= {"n_resamples": self.n_replicates, "n_resamples_left_out": self.n_replicates_left_out}
        models_sd = None if self.scatter.variance is None else math.sqrt(self.scatter.variance)
        record |= {"S_ref": self.S_ref, "ln_C_ref": float(self.theta_P[0]), "models_sd": models_sd}
        record |= {"bias": self.bias_P.tolist(), "interval": self.interval}
        return record | {"reasons": [reason.value for reason in self.reasons]}


def fit_outcomes(one: Outcomes, correction: Correction = Correction.none) -> OutcomeFit:
    """Fits pass ~ Bernoulli(p_N(S)) by maximum likelihood (Fisher scoring).

    Without numbers the status says why; not_positive also where the sizes with a pass and those with a failure overlap
    in at most one size. With numbers: no_trend, barely_determined also if of 3 sizes or more fewer than 3 have passes
    and failures both.

    Source:
        RBP paper (arXiv 2510.20387), eqs. 5 to 8, solved for tokens from outcomes.
    """
    sizes, n_sequences = np.unique(one.S_C[one.trials_C > 0]), int(one.trials_C.sum())
    fit = OutcomeFit(
        n_points=len(sizes),
        status=_reason_against_fit(one, correction) or Status.not_converged,
        correction=correction,
        n_sequences=n_sequences,
        n_passed=int(one.passed_C.sum()),
    )
    if fit.status is not Status.not_converged:
        return fit
    ln_S_ref = float(np.log(sizes).mean())
    counts = _pass_counts(one, correction, ln_S_ref)
    tally, start_P = counts.of(np.arange(1)), _start(one, correction)
    (theta_P,), (value,) = maximise_likelihood(tally, start_P[None])
    P = len(start_P)
    if not np.isfinite(theta_P).all():
        return fit
    at = slopes(theta_P[None], tally)
    free_P = np.array([True, True, theta_P[-1] > 0])[:P]  # at the bound r = 0 the second derivative is not used
    fisher_PP = np.zeros((P, P))
    fisher_PP[np.ix_(free_P, free_P)] = np.linalg.inv(at.information_BPP[0][np.ix_(free_P, free_P)])
    kind, replicates, alpha_B, bias_P = "sequences", None, None, np.zeros(P)
    known_B: NDArray[np.bool_] = np.ones(0, bool)
    if one.passed_BC is not None:
        again, at_BP = counts.of(np.arange(1, len(counts.passed_BC))), np.tile(theta_P, (len(one.passed_BC), 1))
        theta_BP, at_law, kind = maximise_likelihood(again, at_BP)[0], slopes(at_BP, again), "documents"
        # A correlation measured on few documents can be so negative that probabilities fall below 0.
        known_B = np.asarray(np.isfinite(np.hstack([theta_BP, at_law.error_BC])).all(axis=1))
        alpha_B = theta_BP[:, 1]
        documents = moments(theta_P, theta_BP[known_B])
        if documents is not None and known_B.sum() >= (1 - MOST_LEFT_OUT) * len(known_B):
            bias_P, replicates = documents.bias_P, (at_law.of(known_B), documents.covariance_PP)
    scatter = model_scatter(tally.x_C, at, fisher_PP, replicates, one.n_effective)
    has_interval, value = one.passed_BC is None or replicates is not None, float(value)
    fit = replace(
        fit,
        aic=2 * P - 2 * value,
        bic=P * math.log(n_sequences) - 2 * value,
        S_ref=math.exp(ln_S_ref),
        theta_P=theta_P,
        bias_P=bias_P,
        scatter=scatter,
        n_replicates=None if one.passed_BC is None else len(one.passed_BC),
        n_replicates_left_out=int((~known_B).sum()),
        interval=(kind + (" and models" if scatter.dof > 0 else "")) if has_interval else None,
        alpha_B=alpha_B,
    )
    _, alpha, *r = (fit.along(of_P) for of_P in np.eye(P))
    if alpha.ends is not None:
        alpha = replace(alpha, stderr=math.sqrt(scatter.sequences_PP[1, 1]))
    if r:
        r = [r[0].through(lambda end: max(end, 0.0)) if scatter.sequences_PP[2, 2] > 0 else Estimate(r[0].value)]
    reasons = [Status.barely_determined] if _is_one_sided(one) else []
    reasons += [Status.barely_determined] if alpha.ends is None else trend_warnings(alpha)
    constants = {"C": Estimate(exp_or_none(float(theta_P @ [1, ln_S_ref, 0][:P]))), "alpha": alpha}
    constants |= {"r": r[0]} if r else {}
    return replace(fit, **constants, status=first_of(reasons), reasons=in_order(reasons))  # type: ignore[arg-type]


def reproduce_outcomes(params: Mapping[str, Any]) -> dict[str, float | None]:
    """Repeats a fit from its params and returns C at S = 1 and alpha."""
    cells = params["cells"]
    S_C, N_C, passed_C, trials_C = (np.asarray(cells[name], np.float64) for name in ("S", "N", "passed", "trials"))
    r_C = None if cells["r"] is None else np.array(cells["r"], np.float64)  # None is NaN
    fit = fit_outcomes(Outcomes(S_C, N_C, passed_C, trials_C, r_C=r_C), Correction(params["correction"]))
    return {"C": fit.C.value, "alpha": fit.alpha.value}


def _start(one: Outcomes, correction: Correction) -> Floats:
    mean_N = float(one.trials_C @ one.N_C / one.trials_C.sum())
    q = float(one.passed_C.sum() / one.trials_C.sum()) ** (1 / mean_N)
    if correction is Correction.measured and one.r_C is not None:
        # With r < 0, q must be large enough that the last token of a sequence has a chance above 0.
        used_C = one.trials_C > 0
        avoid_C = np.maximum(-one.r_C[used_C], 0.0)
        q = min(max(q, 1.01 * float(np.max((one.N_C[used_C] - 1) * avoid_C / (1 + avoid_C)))), _CERTAIN)
    return np.array([math.log(-math.log(q)), 0.0, *([0.1] if correction is Correction.free else [])])
