"""From outcomes to tokens: the law of single tokens from the numbers of sequences of N tokens that passed at each size.

A sequence passes if all its tokens are hits. If hits are independent, pass ~ Bernoulli(exp(-C N S^(-alpha))), so that a
benchmark without results for tokens still determines their law, by maximum likelihood. Hits that cluster make long
sequences pass more often: alpha comes out too small where they cluster alike at every size, too large where they
cluster more the larger the model. Two corrections allow for that. Shapes: C cells, each one size and one N; P
parameters; B resamples of the documents.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.bootstrap import MOST_LEFT_OUT, moments
from rbpx.laws.exponential import exp_or_none
from rbpx.laws.interval import around
from rbpx.laws.model_scatter import Scatter, model_scatter
from rbpx.laws.outcome_counts import Correction, Outcomes, checked, doubt_of, is_one_sided, tally_of
from rbpx.laws.passing import TOLERANCES, Slopes, climb, slopes
from rbpx.laws.trend import names_of, trend_doubts
from rbpx.status import Status, first_of

__all__ = ["EQUATION", "Correction", "OutcomeFit", "Outcomes", "fit_outcomes", "implied_rbp", "reproduce_outcomes"]

EQUATION: Final = "pass ~ Bernoulli(p_N), p_N = RBP_k^N or beta-binomial with correlation r, -ln RBP_k = C * S^(-alpha)"

Floats = NDArray[np.float64]

_LARGEST_MU: Final = 700.0
_CERTAIN: Final = 1 - 1e-9  # the largest share of hits to start from


@dataclass(frozen=True, eq=False)
class OutcomeFit:
    """The law of single tokens recovered from outcomes; numbers are None where the status says that there is no fit.

    C is at S = 1, nats; alpha > 0 when bigger is better. alpha_stderr is from the sequences: over resampled documents
    where there are, else from Fisher's information. alpha_lo and alpha_hi are a 95 % interval that includes the
    sampling of the sequences and, from 3 sizes on, the scatter of the models about the law; they are centred on the
    number. r is the correlation of
    `free`, with its interval. aic and bic are of the likelihood of the outcomes, and compare corrections on the same
    outcomes.

    params contains correction, S_ref, ln_C_ref, models_sd (standard deviation of ln(-ln RBP_k) of a model about the
    law, None below 3 sizes), interval ("documents and models", "sequences and models", "documents", "sequences" or
    None), uncertainty (`Scatter`), bias over the resamples, n_resamples, n_resamples_left_out.
    alpha_B is alpha under each resample of the documents, NaN where there is none; None without documents.
    """

    C: float | None
    alpha: float | None
    alpha_stderr: float | None
    alpha_lo: float | None
    alpha_hi: float | None
    r: float | None
    r_lo: float | None
    r_hi: float | None
    aic: float | None
    bic: float | None
    n_sizes: int
    n_sequences: int
    n_passed: int
    status: Status
    params: dict[str, Any]
    alpha_B: Floats | None = None


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
        failures both. All that hold are in params["reasons"].

    Raises:
        ValueError: if shapes disagree, a size or N is impossible, or more passed than there are.

    Source:
        RBP paper (arXiv 2510.20387), eqs. 5 to 8, read from the outcomes to the tokens.
    """
    one = checked(outcomes)
    about = _counts(one) | {"params": {"method": "mle", "equation": EQUATION, "correction": correction.value}}
    doubt = doubt_of(one, correction)
    if doubt is not None:
        return _without_numbers(about, doubt)
    used_C = one.trials_C > 0
    ln_S_ref = float(np.log(np.unique(one.S_C[used_C])).mean())
    tally, start_1P = tally_of(one, correction, ln_S_ref), _start(one, correction)
    peak = climb(tally, start_1P)
    theta_P = peak.theta_BP[0]
    if not np.isfinite(theta_P).all():
        return _without_numbers(about, Status.not_converged)
    at = slopes(peak.theta_BP, tally)
    free_P = np.ones(len(theta_P), dtype=bool) if len(theta_P) == 2 or theta_P[2] > 0 else np.array([True, True, False])
    fisher_PP = np.zeros((len(theta_P),) * 2)
    fisher_PP[np.ix_(free_P, free_P)] = np.linalg.inv(at.information_BPP[0][np.ix_(free_P, free_P)])
    refits = _refits(one, correction, theta_P, ln_S_ref)
    scatter = model_scatter(tally.x_C, at, fisher_PP, refits.resampled, one.n_documents)
    has_interval = one.passed_BC is None or refits.resampled is not None
    kind = ("sequences" if one.passed_BC is None else "documents") + (" and models" if scatter.dof > 0 else "")
    about["params"] |= refits.about | {
        "S_ref": math.exp(ln_S_ref),
        "ln_C_ref": float(theta_P[0]),
        "uncertainty": scatter.record(),
        "models_sd": None if scatter.variance is None else math.sqrt(scatter.variance),
        "bias": refits.bias_P.tolist(),
        "interval": kind if has_interval else None,
        "tolerances": TOLERANCES,
    }
    ends = [_ends(theta_P, scatter, of_P) for of_P in np.eye(len(theta_P))]
    r_ends: tuple[float | None, float | None] = (None, None)
    if len(theta_P) == 3 and scatter.sequences_PP[2, 2] > 0:  # at 0 the likelihood has no second derivative to trust
        r_ends = (max(ends[2][0], 0.0), max(ends[2][1], 0.0))
    reasons = [Status.one_sided] if is_one_sided(one) else []
    reasons += trend_doubts(float(theta_P[1]), *ends[1]) if has_interval else [Status.barely_determined]
    about["params"]["reasons"] = names_of(reasons)
    n_parameters, value = len(theta_P), float(peak.ln_likelihood_B[0])
    return OutcomeFit(
        C=exp_or_none(float(theta_P[0] + theta_P[1] * ln_S_ref)),
        alpha=float(theta_P[1]),
        alpha_stderr=math.sqrt(scatter.sequences_PP[1, 1]) if has_interval else None,
        alpha_lo=ends[1][0] if has_interval else None,
        alpha_hi=ends[1][1] if has_interval else None,
        r=None if len(theta_P) == 2 else float(theta_P[2]),
        r_lo=r_ends[0] if has_interval else None,
        r_hi=r_ends[1] if has_interval else None,
        aic=2 * n_parameters - 2 * value,
        bic=n_parameters * math.log(about["n_sequences"]) - 2 * value,
        status=first_of(reasons),
        alpha_B=refits.alpha_B,
        **about,
    )


@dataclass(frozen=True, eq=False)
class _Refits:
    """Fits to resampled documents: their bias and exponents, and what `model_scatter` takes of them."""

    bias_P: Floats
    alpha_B: Floats | None
    resampled: tuple[Slopes, Floats] | None
    about: dict[str, Any]


def _refits(one: Outcomes, correction: Correction, theta_P: Floats, ln_S_ref: float) -> _Refits:
    """Fit again under each resample; nothing is concluded where too many have no maximum."""
    if one.passed_BC is None:
        return _Refits(np.zeros(len(theta_P)), None, None, {})
    again = tally_of(one, correction, ln_S_ref, resampled=True)
    at_BP = np.repeat(theta_P[None], len(again.passed_BC), axis=0)
    theta_BP = climb(again, at_BP).theta_BP
    at_law = slopes(at_BP, again)
    # A correlation that is measured on few documents can be so negative that the law's own chances become impossible.
    known_B = np.asarray(np.isfinite(np.hstack([theta_BP, at_law.error_BC])).all(axis=1))
    about = {"n_resamples": len(theta_BP), "n_resamples_left_out": int((~known_B).sum())}
    documents = moments(theta_P, theta_BP[known_B])
    if documents is None or known_B.sum() < (1 - MOST_LEFT_OUT) * len(theta_BP):
        return _Refits(np.zeros(len(theta_P)), theta_BP[:, 1], None, about)
    return _Refits(documents.bias_P, theta_BP[:, 1], (at_law.of(known_B), documents.covariance_PP), about)


def reproduce_outcomes(params: Mapping[str, Any]) -> dict[str, float | None]:
    """Repeat a fit from the counts in its params: C at S = 1 and alpha, to be compared with those of the fit.

    Args:
        params: with `cells`, the columns S, N, passed, trials and r of the outcomes, and the correction.
    """
    cells = params["cells"]
    S_C, N_C, passed_C, trials_C = (np.asarray(cells[name], np.float64) for name in ("S", "N", "passed", "trials"))
    r_C = None if cells["r"] is None else np.array([np.nan if r is None else r for r in cells["r"]], np.float64)
    fit = fit_outcomes(Outcomes(S_C, N_C, passed_C, trials_C, r_C=r_C), Correction(params["correction"]))
    return {"C": fit.C, "alpha": fit.alpha}


def implied_rbp(fit: OutcomeFit, S: float) -> tuple[float, float | None, float | None]:
    """RBP_k of single tokens at one size, by the law recovered from the outcomes, with its 95 % interval.

    Args:
        fit: a fit that has numbers.
        S: non-embedding parameters.

    Raises:
        ValueError: the fit has no numbers.
    """
    if fit.alpha is None:
        raise ValueError(f"RBP_k is unknown: status {fit.status}")
    params, x = fit.params, math.log(S / fit.params["S_ref"])
    mu = params["ln_C_ref"] - fit.alpha * x
    rbp = _share(mu)
    if params["interval"] is None:
        return rbp, None, None
    scatter = Scatter.recall(params["uncertainty"])
    bias_P = np.asarray(params["bias"])
    theta_P = np.array([params["ln_C_ref"], fit.alpha, *[0.0] * (len(bias_P) - 2)])
    lo, hi = _ends(theta_P, scatter, np.array([1.0, -x, *[0.0] * (len(bias_P) - 2)]))
    return rbp, _share(hi), _share(lo)


def _share(mu: float) -> float:
    """RBP_k = exp(-exp(mu)); 0 where -ln RBP_k exceeds the range of a float."""
    return math.exp(-math.exp(mu)) if mu < _LARGEST_MU else 0.0


def _ends(theta_P: Floats, scatter: Scatter, of_P: Floats) -> tuple[float, float]:
    """95 % interval of a linear combination of the parameters, centred on its value."""
    return around(float(of_P @ theta_P), scatter.half_width(of_P))


def _counts(one: Outcomes) -> dict[str, Any]:
    n_sizes = len(np.unique(one.S_C[one.trials_C > 0]))
    return {"n_sizes": n_sizes, "n_sequences": int(one.trials_C.sum()), "n_passed": int(one.passed_C.sum())}


def _without_numbers(about: dict[str, Any], status: Status) -> OutcomeFit:
    names = ["C", "alpha", "alpha_stderr", "alpha_lo", "alpha_hi", "r", "r_lo", "r_hi", "aic", "bic"]
    numbers: dict[str, Any] = dict.fromkeys(names)
    return OutcomeFit(**numbers, **about, status=status)


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
