"""Recovers the law of single tokens from the numbers of sequences of N tokens that passed at each size.

A sequence passes if all its tokens are hits. If hits are independent, pass ~ Bernoulli(exp(-C N S^(-alpha))), so that a
benchmark without results for tokens still determines their law, by maximum likelihood. Hits that cluster make long
sequences pass more often: alpha comes out too small where they cluster alike at every size, too large where they
cluster more the larger the model. Two corrections allow for that.

Shapes: C cells, each one size and one N; P parameters; B replicates of the documents.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np

from rbpx.laws.counts.passing import TOLERANCES, Scatter, Slopes, Tally, climb, model_scatter, separated, slopes
from rbpx.laws.intervals.estimate import MOST_LEFT_OUT, Estimate, around, moments
from rbpx.laws.names import MLE
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.law import LawFit
from rbpx.laws.power.uncertainty import as_plain
from rbpx.laws.prediction.verdict import trend_doubts
from rbpx.status import Status, first_of, in_order


class Correction(StrEnum):
    """What is assumed of the hits of one sequence."""

    none = "none"  # independent
    measured = "measured"  # their mean correlation is known, for each size and N
    free = "free"  # one correlation for all, found from the outcomes of several N


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Counts of outcomes.

    Attributes:
        S_C: non-embedding parameters of each cell.
        N_C: tokens of its sequences.
        passed_C: sequences that passed.
        trials_C: all its sequences.
        passed_BC: under B replicates of the documents (or tasks), the same for every cell; None where sequences are
            independent.
        trials_BC: all sequences, under the same.
        r_C: mean correlation of two hits of a sequence, where it was measured.
        r_BC: the same under the replicates.
        n_documents: documents (or tasks) that were resampled; None where they are not counted.
    """

    S_C: Floats
    N_C: Floats
    passed_C: Floats
    trials_C: Floats
    passed_BC: Floats | None = None
    trials_BC: Floats | None = None
    r_C: Floats | None = None
    r_BC: Floats | None = None
    n_documents: int | None = None


def doubt_of(one: Outcomes, correction: Correction) -> Status | None:
    """Why no law can be fitted; None if one can."""
    used_C = one.trials_C > 0
    if not used_C.any():
        return Status.too_short
    if len(np.unique(one.S_C[used_C])) < 2:
        return Status.too_few_sizes
    if one.passed_C.sum() in (0, one.trials_C.sum()):
        return Status.one_outcome
    if separated(tally_of(one, Correction.none, 0.0)).all():
        return Status.separated
    if correction is Correction.free and len(np.unique(one.N_C[used_C])) < 2:
        return Status.one_length
    if correction is Correction.measured and (one.r_C is None or not np.isfinite(one.r_C[used_C]).all()):
        return Status.not_known
    return None


def is_one_sided(one: Outcomes) -> bool:
    """Whether a law over 3 sizes or more rests on fewer: the others say no more than that RBP_k is small, or large."""
    sizes = np.unique(one.S_C[one.trials_C > 0])
    both = set(one.S_C[one.passed_C > 0]) & set(one.S_C[one.passed_C < one.trials_C])
    return len(sizes) > 2 and len(both) < 3


def tally_of(one: Outcomes, correction: Correction, ln_S_ref: float, replicates: bool = False) -> Tally:
    """The counts, or those of the replicates, as the likelihood takes them."""
    passed_BC, trials_BC = (one.passed_BC, one.trials_BC) if replicates else (one.passed_C[None], one.trials_C[None])
    assert passed_BC is not None and trials_BC is not None  # noqa: PT018
    r_BC: Floats | None = np.zeros_like(passed_BC)
    if correction is Correction.free:
        r_BC = None
    elif correction is Correction.measured:
        measured = one.r_BC if replicates else one.r_C
        r_BC = np.broadcast_to(np.asarray(measured, dtype=np.float64), passed_BC.shape)
    return Tally(np.log(one.S_C) - ln_S_ref, one.N_C, passed_BC, trials_BC, r_BC)


def checked(outcomes: Outcomes) -> Outcomes:
    """The same in float64.

    Raises:
        ValueError: if shapes disagree, a size or N is impossible, or more passed than there are.
    """
    counted = {name: v for name, v in vars(outcomes).items() if name != "n_documents"}
    arrays = {name: None if v is None else np.asarray(v, dtype=np.float64) for name, v in counted.items()}
    one = replace(outcomes, **arrays)  # type: ignore[arg-type]
    shapes = {v.shape[-1:] for v in arrays.values() if v is not None}
    if len(shapes) != 1 or one.S_C.ndim != 1 or (one.passed_BC is None) != (one.trials_BC is None):
        raise ValueError(f"outcomes have shapes {[None if v is None else v.shape for v in arrays.values()]}")
    if not np.all((one.S_C > 0) & np.isfinite(one.S_C)) or not np.all((one.N_C >= 1) & (one.N_C == np.floor(one.N_C))):
        raise ValueError(f"sizes must be positive and N whole, got {one.S_C.tolist()} and {one.N_C.tolist()}")
    if not np.all((one.passed_C >= 0) & (one.passed_C <= one.trials_C)):
        raise ValueError(f"{one.passed_C.tolist()} of {one.trials_C.tolist()} sequences cannot have passed")
    return one


EQUATION: Final = "pass ~ Bernoulli(p_N), p_N = RBP_k^N or beta-binomial with correlation r, -ln RBP_k = C * S^(-alpha)"

_LARGEST_MU: Final = 700.0
_CERTAIN: Final = 1 - 1e-9  # the largest share of hits to start from


@dataclass(frozen=True, eq=False)
class Recovered:
    """A law that was found: ln C at S_ref, the geometric mean of sizes, its errors, and its bias over replicates."""

    S_ref: float
    ln_C_ref: float
    scatter: Scatter
    bias_P: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class OutcomeFit(LawFit):
    """The law of single tokens recovered from outcomes; numbers are None where the status says that there is no fit.

    C is at S = 1, nats; alpha > 0 when bigger is better. The standard error of alpha is from the sequences: over
    resampled documents where there are, else from Fisher's information. Its interval includes the sampling of the
    sequences and, from 3 sizes on, the scatter of the models about the law, and is centred on the number. aic and bic
    are of the likelihood of the outcomes, and compare corrections on the same outcomes. n_points are sizes.

    Attributes:
        correction: what was assumed of the hits of one sequence.
        r: the correlation of `free`.
        r_lo: lower end of its interval.
        r_hi: upper end.
        n_sequences: of all sizes.
        n_passed: those that passed.
        found: None where there is no fit.
        n_replicates: of the documents; None where there were none.
        n_replicates_left_out: those in which there is no maximum.
        interval: what the intervals include, "documents and models", "sequences and models", "documents" or
            "sequences"; None where there are none.
        reasons: every status that holds; None without a fit.
        alpha_B: alpha under each replicate of the documents, NaN where there is none; None without documents.
    """

    correction: Correction
    r: float | None = None
    r_lo: float | None = None
    r_hi: float | None = None
    n_sequences: int
    n_passed: int
    found: Recovered | None = None
    n_replicates: int | None = None
    n_replicates_left_out: int = 0
    interval: str | None = None
    reasons: tuple[Status, ...] | None = None
    alpha_B: Floats | None = None

    @property
    def n_sizes(self) -> int:
        """Sizes that have sequences."""
        return self.n_points

    @property
    def models_sd(self) -> float | None:
        """Standard deviation of ln(-ln RBP_k) of a model about the law; None below 3 sizes."""
        variance = None if self.found is None else self.found.scatter.variance
        return None if variance is None else math.sqrt(variance)

    def record(self) -> dict[str, Any]:
        """Params in the row of `fits`, as JSON takes them."""
        record: dict[str, Any] = {"method": MLE, "equation": EQUATION, "correction": self.correction.value}
        if self.found is None or self.reasons is None:
            return record
        if self.n_replicates is not None:
            record |= {"n_resamples": self.n_replicates, "n_resamples_left_out": self.n_replicates_left_out}
        record |= {"S_ref": self.found.S_ref, "ln_C_ref": self.found.ln_C_ref}
        record |= {"uncertainty": as_plain(self.found.scatter), "models_sd": self.models_sd}
        record |= {"bias": self.found.bias_P.tolist(), "interval": self.interval, "tolerances": TOLERANCES}
        return record | {"reasons": [reason.value for reason in self.reasons]}


def fit_outcomes(outcomes: Outcomes, correction: Correction = Correction.none) -> OutcomeFit:
    """Fit pass ~ Bernoulli(p_N(S)) by maximum likelihood, Fisher scoring from one start.

    Args:
        outcomes: the counts.
        correction: what is assumed of the hits of one sequence.

    Returns:
        The fit. Its status is too_short without a sequence, too_few_sizes below 2 sizes, one_outcome if all pass or all
        fail, separated if the sizes at which some pass and those at which some fail meet at one size at most (alpha has
        no maximum then), one_length if `free` has one N, not_known if `measured` has no correlation, not_converged if
        the search found no maximum; with numbers, no_trend where the interval of alpha contains 0, barely_determined
        where there is none or it is as wide as alpha, one_sided if of 3 sizes or more fewer than 3 have passes and
        failures both. All that hold are its reasons.

    Raises:
        ValueError: if shapes disagree, a size or N is impossible, or more passed than there are.

    Source:
        RBP paper (arXiv 2510.20387), eqs. 5 to 8, read from the outcomes to the tokens.
    """
    one = checked(outcomes)
    used_C, n_sequences, n_passed = one.trials_C > 0, int(one.trials_C.sum()), int(one.passed_C.sum())
    without = OutcomeFit(
        n_points=len(np.unique(one.S_C[used_C])),
        status=Status.not_converged,
        correction=correction,
        n_sequences=n_sequences,
        n_passed=n_passed,
    )
    doubt = doubt_of(one, correction)
    if doubt is not None:
        return replace(without, status=doubt)
    ln_S_ref = float(np.log(np.unique(one.S_C[used_C])).mean())
    tally, start_1P = tally_of(one, correction, ln_S_ref), _start(one, correction)
    peak = climb(tally, start_1P)
    theta_P = peak.theta_BP[0]
    if not np.isfinite(theta_P).all():
        return without
    at = slopes(peak.theta_BP, tally)
    free_P = np.ones(len(theta_P), dtype=bool) if len(theta_P) == 2 or theta_P[2] > 0 else np.array([True, True, False])
    fisher_PP = np.zeros((len(theta_P),) * 2)
    fisher_PP[np.ix_(free_P, free_P)] = np.linalg.inv(at.information_BPP[0][np.ix_(free_P, free_P)])
    of_documents = _of_replicates(one, correction, theta_P, ln_S_ref)
    scatter = model_scatter(tally.x_C, at, fisher_PP, of_documents.replicates, one.n_documents)
    has_interval = one.passed_BC is None or of_documents.replicates is not None
    kind = ("sequences" if one.passed_BC is None else "documents") + (" and models" if scatter.dof > 0 else "")
    ends = [_ends(theta_P, scatter, of_P) for of_P in np.eye(len(theta_P))]
    r_ends: tuple[float | None, float | None] = (None, None)
    if len(theta_P) == 3 and scatter.sequences_PP[2, 2] > 0:  # at 0 the likelihood has no second derivative to trust
        r_ends = (max(ends[2][0], 0.0), max(ends[2][1], 0.0))
    reasons = [Status.one_sided] if is_one_sided(one) else []
    reasons += trend_doubts(float(theta_P[1]), *ends[1]) if has_interval else [Status.barely_determined]
    alpha = Estimate(float(theta_P[1]), *ends[1], math.sqrt(scatter.sequences_PP[1, 1]))
    n_parameters, value = len(theta_P), float(peak.ln_likelihood_B[0])
    return replace(
        without,
        C=Estimate(exp_or_none(float(theta_P[0] + theta_P[1] * ln_S_ref))),
        alpha=alpha if has_interval else Estimate(alpha.value),
        r=None if len(theta_P) == 2 else float(theta_P[2]),
        r_lo=r_ends[0] if has_interval else None,
        r_hi=r_ends[1] if has_interval else None,
        aic=2 * n_parameters - 2 * value,
        bic=n_parameters * math.log(n_sequences) - 2 * value,
        status=first_of(reasons),
        found=Recovered(math.exp(ln_S_ref), float(theta_P[0]), scatter, of_documents.bias_P),
        n_replicates=None if one.passed_BC is None else len(one.passed_BC),
        n_replicates_left_out=of_documents.n_left_out,
        interval=kind if has_interval else None,
        reasons=in_order(reasons),
        alpha_B=of_documents.alpha_B,
    )


@dataclass(frozen=True, eq=False)
class _Replicates:
    """Fits to replicates of the documents: their bias and exponents, and what `model_scatter` takes of them."""

    bias_P: Floats
    alpha_B: Floats | None
    replicates: tuple[Slopes, Floats] | None
    n_left_out: int = 0


def _of_replicates(one: Outcomes, correction: Correction, theta_P: Floats, ln_S_ref: float) -> _Replicates:
    """Fit again under each replicate; nothing is concluded where too many have no maximum."""
    if one.passed_BC is None:
        return _Replicates(np.zeros(len(theta_P)), None, None)
    again = tally_of(one, correction, ln_S_ref, replicates=True)
    at_BP = np.repeat(theta_P[None], len(again.passed_BC), axis=0)
    theta_BP = climb(again, at_BP).theta_BP
    at_law = slopes(at_BP, again)
    # A correlation that is measured on few documents can be so negative that the law's own chances become impossible.
    known_B = np.asarray(np.isfinite(np.hstack([theta_BP, at_law.error_BC])).all(axis=1))
    n_left_out = int((~known_B).sum())
    documents = moments(theta_P, theta_BP[known_B])
    if documents is None or known_B.sum() < (1 - MOST_LEFT_OUT) * len(theta_BP):
        return _Replicates(np.zeros(len(theta_P)), theta_BP[:, 1], None, n_left_out)
    return _Replicates(documents.bias_P, theta_BP[:, 1], (at_law.of(known_B), documents.covariance_PP), n_left_out)


def reproduce_outcomes(params: Mapping[str, Any]) -> dict[str, float | None]:
    """Repeat a fit from the counts in its params: C at S = 1 and alpha, to be compared with those of the fit.

    Args:
        params: with `cells`, the columns S, N, passed, trials and r of the outcomes, and the correction.
    """
    cells = params["cells"]
    S_C, N_C, passed_C, trials_C = (np.asarray(cells[name], np.float64) for name in ("S", "N", "passed", "trials"))
    r_C = None if cells["r"] is None else np.array([np.nan if r is None else r for r in cells["r"]], np.float64)
    fit = fit_outcomes(Outcomes(S_C, N_C, passed_C, trials_C, r_C=r_C), Correction(params["correction"]))
    return {"C": fit.C.value, "alpha": fit.alpha.value}


def implied_rbp(fit: OutcomeFit, S: float) -> tuple[float, float | None, float | None]:
    """RBP_k of single tokens at one size, by the law recovered from the outcomes, with its 95 % interval.

    Args:
        fit: a fit that has numbers.
        S: non-embedding parameters.

    Raises:
        ValueError: the fit has no numbers.
    """
    if fit.alpha.value is None or (found := fit.found) is None:
        raise ValueError(f"RBP_k is unknown: status {fit.status}")
    x, more = math.log(S / found.S_ref), [0.0] * (len(found.bias_P) - 2)
    mu = found.ln_C_ref - fit.alpha.value * x
    rbp = _share(mu)
    if fit.interval is None:
        return rbp, None, None
    lo, hi = _ends(np.array([found.ln_C_ref, fit.alpha.value, *more]), found.scatter, np.array([1.0, -x, *more]))
    return rbp, _share(hi), _share(lo)


def _share(mu: float) -> float:
    """RBP_k = exp(-exp(mu)); 0 where -ln RBP_k exceeds the range of a float."""
    return math.exp(-math.exp(mu)) if mu < _LARGEST_MU else 0.0


def _ends(theta_P: Floats, scatter: Scatter, of_P: Floats) -> tuple[float, float]:
    """95 % interval of a linear combination of the parameters, centred on its value."""
    return around(float(of_P @ theta_P), scatter.half_width(of_P))


def _start(one: Outcomes, correction: Correction) -> Floats:
    """The same RBP_k at every size, from the share of all sequences that passed."""
    mean_N = float(one.trials_C @ one.N_C / one.trials_C.sum())
    q = float(one.passed_C.sum() / one.trials_C.sum()) ** (1 / mean_N)
    if correction is Correction.measured and one.r_C is not None:
        # Hits that avoid each other need a share of hits that leaves the last token of a sequence a chance.
        used_C = one.trials_C > 0
        avoid_C = np.maximum(-one.r_C[used_C], 0.0)
        q = min(max(q, 1.01 * float(np.max((one.N_C[used_C] - 1) * avoid_C / (1 + avoid_C)))), _CERTAIN)
    mu = math.log(-math.log(q))
    return np.array([[mu, 0.0, *([0.1] if correction is Correction.free else [])]])
