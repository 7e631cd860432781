"""The public functions of `rbpx.laws`: arrays or columns of a DataFrame in, fitted laws as frozen records out.

An argument that is a column takes its values (a list, a numpy array, a Series) or, with `data=`, its name: `data` is
a DataFrame of pandas or polars, or a mapping of names to values. A caller's mistake raises `ValueError`; data without
such a law give a fit with a status whose numbers are None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws import in_k
from rbpx.laws.arguments import (
    bounded,
    column,
    counted,
    fixed,
    known,
    level_of,
    numbered,
    numbers,
    one_sign,
    positive,
)
from rbpx.laws.intervals.bootstrap import bootstrap
from rbpx.laws.intervals.estimate import LEVEL, Replicates
from rbpx.laws.names import DELTA, Method, Objective
from rbpx.laws.power.law import PowerLaw, at_level
from rbpx.laws.power.offset import PINNABLE
from rbpx.laws.power.predicted import Prediction
from rbpx.laws.prediction.judged import Odds, fit_judged, predict_judged
from rbpx.laws.prediction.verdict import with_reasons
from rbpx.laws.ranks.distribution import DISTRIBUTIONS, fit_distributions
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.schedule.law import ScheduleLaw, Training, fit_trainings
from rbpx.laws.surface.fit import FORMS
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors
from rbpx.laws.surface.judged import JudgedSurface
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status

__all__ = ["bootstrap", "fit_k_law", "fit_power_law", "fit_schedule", "fit_surface", "predict", "rank_distributions"]

_Bounds = tuple[float, float] | None
_NONE_GIVEN: Final[Mapping[str, float | tuple[float, float]]] = {}


def fit_power_law(
    S: ArrayLike,
    y: ArrayLike,
    *,
    data: Any = None,
    weights: ArrayLike | None = None,
    y_replicates: ArrayLike | None = None,
    n_effective: float | None = None,
    method: str = "ols",
    given: Mapping[str, float | tuple[float, float]] = _NONE_GIVEN,
    level: float = LEVEL,
    judge: bool = True,
) -> PowerLaw:
    """Fit y = C S^-alpha, or y = E + C S^-alpha, by least squares of ln y on ln S.

    Args:
        S: parameters of each model, shape [N], positive; several models may have one size.
        y: loss in nats, -ln RBP_k, or any positive quantity, shape [N].
        data: a table; S, y and weights may then be names of its columns.
        weights: how much each model counts, shape [N], positive, with ols.
        y_replicates: y under B bootstrap replicates of the documents, shape [B, N], the same documents for every size.
        n_effective: effective sample size of the documents.
        method: ols; offset, which adds an irreducible loss E >= 0; weighted, by the variances of ln y over the
            replicates; robust, by Huber's loss.
        given: fixed parameters or priors by name (C, alpha or, with offset, E): a value, or value and standard
            deviation of a normal prior.
        level: of the intervals, without `given`; the status does not depend on it.
        judge: whether to test it and to predict its larger sizes from smaller ones; without, the status is not_judged.

    Returns:
        A law with `alpha`, `C` (y at S = 1), `E` and `r2`, each with `value`, `lo`, `hi` and `stderr`; its
        intervals are over models and, with replicates, over documents. `status` is that of the verb fit, `reasons` has
        all that hold; `predict(S, level=.95)` gives y of a size, or of an array; `record()` gives a dictionary.

    Raises:
        ValueError: shapes disagree, a size, y or weight is not positive and finite, or a name is unknown.

    Source:
        RBP paper, arXiv 2510.20387, eq. 5 and table 2 (ols). With an offset: Kaplan et al., arXiv 2001.08361, and
        Hoffmann et al., arXiv 2203.15556, eq. 2.

    Example:
        >>> import numpy as np
        >>> S = np.array([1e7, 3e7, 1e8, 3e8, 1e9])
        >>> law = fit_power_law(S, 1.7 + 300 * S**-0.33, method="offset")
        >>> print(f"{law.E.value:.3f} + {law.C.value:.1f} S^-{law.alpha.value:.3f}")
        1.700 + 300.0 S^-0.330
    """
    of, how = (
        numbers(data, S=S, y=y, weights=weights, y_replicates=y_replicates),
        Method(known("method", method, [*Method])),
    )
    y_BN, n_effective = of.pop("y_replicates", None), counted(n_effective)
    positive(**of)
    S_N, y_N, weight_N = of["S"], of["y"], of.get("weights")
    pins = fixed(given, PINNABLE.get(how, ()))
    if weight_N is not None and (how is not Method.ols or pins):
        raise ValueError("weights go with method='ols' and without given=")
    order_N = np.argsort(S_N, kind="stable")
    replicates = None if y_BN is None else Replicates.of(y_BN[:, order_N], n_effective)
    weight_N = None if weight_N is None else weight_N[order_N]
    fit, _ = fit_judged(S_N[order_N], y_N[order_N], replicates, how, pins, weight_N=weight_N, tests=judge)
    return at_level(fit if judge else with_reasons(fit, [fit.status, Status.not_judged]), level)


def fit_surface(
    S: ArrayLike,
    D: ArrayLike,
    y: ArrayLike,
    *,
    data: Any = None,
    runs: ArrayLike | None = None,
    U: ArrayLike | None = None,
    form: str = "chinchilla",
    objective: str = "log_huber",
    delta: float = DELTA,
    n_replicates: int = 200,
    given: Mapping[str, float | tuple[float, float]] = _NONE_GIVEN,
    level: float = LEVEL,
    judge: bool = True,
) -> JudgedSurface:
    """Fit y(S, D) = E + A S^-alpha + B D^-beta, Chinchilla's loss surface over size and tokens, or another form.

    kaplan is y = ((N_c / S)^(alpha_N / alpha_D) + D_c / D)^alpha_D; data_constrained is chinchilla's with the effective
    S and D of repeated tokens. The intervals of the constants are over runs, resampled with exponential weights.

    Args:
        S: parameters of each model, shape [N], positive.
        D: training tokens, shape [N], positive.
        y: loss in nats, or any positive quantity, shape [N].
        data: a table; column arguments may then be names of its columns.
        runs: the run of each point, shape [N]; checkpoints of a run are resampled together.
        U: unique tokens, shape [N], for data_constrained.
        form: chinchilla, kaplan or data_constrained.
        objective: log_huber, Huber's loss of ln y_fit - ln y; huber, the same of y_fit - y; least_squares.
        delta: where Huber's loss becomes linear, in ln y or, for huber, in the unit of y.
        n_replicates: bootstrap replicates of the runs; 0 for no intervals.
        given: fixed parameters or priors by name: a value, or value and standard deviation of a normal prior.
        level: of the intervals of the constants, without `given`; the status does not depend on it.
        judge: whether to test it on the largest runs, and predictions by backtests; without, both are not_judged.

    Returns:
        A fit with `constants` by name, each with `value`, `lo` and `hi`; `objective`; `status`, that of the verb
        surface; `predict(S, D, level=.95)`, the loss of a new run or of arrays of runs averaged over forms, with
        backtests and a status; `optimum(C, level=.95)`, the best size and tokens of this form for C = 6 S D training
        FLOPs; `record()`.

    Raises:
        ValueError: shapes disagree, S, D or y is not positive and finite, or a name is unknown.

    Source:
        chinchilla: arXiv 2203.15556, eq. 10, with the objective of its section D.2; checked in arXiv 2404.10102.
        kaplan: arXiv 2001.08361, eq. 1.5. data_constrained: arXiv 2305.16264, eqs. 5, 6 and 11.

    Example:
        >>> import numpy as np
        >>> S, D = np.array([(S, D) for S in (1e8, 3e8, 1e9, 3e9) for D in (3e9, 1e10, 3e10, 1e11)]).T
        >>> fit = fit_surface(S, D, 1.8172 + 482.01 * S**-0.3478 + 2085.43 * D**-0.3658, n_replicates=0)
        >>> {name: round(each.value, 3) for name, each in fit.constants.items()}
        {'A': 482.01, 'B': 2085.43, 'E': 1.817, 'alpha': 0.348, 'beta': 0.366}
        >>> print(f"{fit.predict(7e9, 140e9).value:.3f} nats; {fit.optimum(6 * 7e9 * 140e9).S.value:.2e} parameters")
        2.173 nats; 6.89e+09 parameters
    """
    kind = FORMS[known("form", form, FORMS)]
    pins = fixed(given, kind.names)
    level_of(level, pins)
    run_N = runs if runs is None else numbered(column("runs", runs, data))
    of = numbers(data, S=S, D=D, y=y, U=U, runs=run_N)
    positive(S=of["S"], D=of["D"], y=of["y"])
    how: dict[str, Any] = {"objective": Objective(known("objective", objective, [*Objective])), "delta": delta}
    points = Runs.of(of["S"], of["D"], of["y"], of.get("U"), of.get("runs"))
    return JudgedSurface.of(fit_surface_with_priors(points, form, pins, n_replicates, **how), pins, judge, level)


@overload
def predict(
    S: ArrayLike, y: ArrayLike, at: float, *, data: Any = None, level: float = ..., bounds: _Bounds = ...
) -> Prediction: ...


@overload
def predict(
    S: ArrayLike,
    y: ArrayLike,
    at: Sequence[float] | NDArray[Any],
    *,
    data: Any = None,
    level: float = ...,
    bounds: _Bounds = ...,
) -> list[Prediction]: ...


def predict(
    S: ArrayLike,
    y: ArrayLike,
    at: float | Sequence[float] | NDArray[Any],
    *,
    data: Any = None,
    level: float = LEVEL,
    bounds: _Bounds = None,
) -> Prediction | list[Prediction]:
    """Predict what a new model of another size would show, averaged over the forms that a law may have.

    A few sizes do not decide whether y = C S^-alpha, y = E + C S^-alpha, or a law that bends. Each is fitted to ln y,
    with scatter of the models that is independent or correlated, and counts by how well it fits (Bayesian model
    averaging). The answer is the median of that mixture, and its 95 % interval is one of a single new model.

    Args:
        S: parameters of each model, shape [N], at least 3 different ones; models of one size may repeat it.
        y: loss in nats, or any quantity of one sign, shape [N].
        at: a size, or several, in the unit of S.
        data: a table; S and y may then be names of its columns.
        level: of the intervals.
        bounds: ends that y cannot pass, as (0, 1) of an accuracy; its odds then have the law.

    Returns:
        A prediction for each size of `at`, as the verb predict has it: its median `y` with the ends `lo` and `hi`,
        `widened` by its backtests, a `status` with all `reasons`, the weight of each form in `weights`, and, without
        bounds, the answer of each form alone in `within`.

    Raises:
        ValueError: shapes disagree, a size is not positive, there are fewer than 3 different ones, or a y is 0, not
            finite, of another sign than the rest, or not between the bounds.

    Source:
        Hoeting et al., Bayesian Model Averaging: A Tutorial, Statistical Science 14, 1999; the forms and their weights
        are of `rbpx.laws.forms.candidates`.

    Example:
        >>> S = [1e7, 3e7, 1e8, 3e8, 1e9]
        >>> y = [4.52, 3.94, 3.41, 2.99, 2.58]
        >>> next_one = predict(S, y, at=3e9)
        >>> print(f"{next_one.y:.2f} [{next_one.lo:.2f}, {next_one.hi:.2f}]")
        2.26 [2.24, 2.31]
    """
    of, at_T = numbers(data, S=S, y=y), numbers(None, at=np.atleast_1d(at))["at"]
    positive(S=of["S"], at=at_T)
    order_N = np.argsort(of["S"], kind="stable")
    S_N, y_N = of["S"][order_N], of["y"][order_N]
    odds = None if bounds is None else Odds.of(y_N, bounded(bounds))
    z_N = y_N if odds is None else odds.of_y(y_N)
    one_sign(y=z_N)
    law, _ = fit_judged(S_N, z_N, None, Method.ols, signed=True)
    points = S_N.tolist(), z_N.tolist(), at_T.tolist()
    found = predict_judged(*points, law.reasons or (), p=level_of(level), odds=odds)
    if found is None:
        raise ValueError(f"a prediction needs at least 3 different sizes, got {np.unique(S_N).tolist()}")
    answers, _ = found
    return answers if np.ndim(at) else answers[0]


def fit_schedule(rates: Sequence[ArrayLike], losses: Sequence[ArrayLike], *, level: float = LEVEL) -> ScheduleLaw:
    """Fit L = E + A x^-alpha - C a, the loss of runs of one size under any schedules of the learning rate.

    x is progress, the sum over steps of (rate / highest rate)^0.6 in 10,000 steps; a is annealing, the sum of the falls
    of rate / highest rate, each fading in with a time constant of 200 steps. The constants are those of highest
    posterior, under wide priors about what such runs show.

    Args:
        rates: the learning rate of each step of each run, from its first step to the end of its plan.
        losses: the loss in nats at each of these steps, of each run, NaN or masked where it is unknown; a list may end
            early.
        level: of the intervals.

    Returns:
        A law with `constants` by name (E, A, alpha, C), each with `value`, `lo` and `hi`; `status`; and
        `predict(rates)`, the loss in nats at each step of a plan. The status is rate_rises, too_early (both without
        numbers), no_decay_seen or ok.

    Raises:
        ValueError: no run is given, rates are negative or all 0, or a run has more losses than rates.

    Source:
        Tissue et al., Scaling Law with Learning Rate Annealing, arXiv 2408.11029, whose x is the sum of the rates.

    Example:
        >>> import numpy as np
        >>> step = np.arange(1, 20001)
        >>> rates = np.minimum(step / 1000, 1) * np.where(step > 10000, 1 - (step - 10000) / 10000, 1)
        >>> law = fit_schedule([rates], [3 + 0.3 * (step / 1e4) ** -0.5])
        >>> law.status.value, law.predict(rates).shape
        ('ok', (20000,))
    """
    level_of(level)
    if not len(rates) or len(rates) != len(losses):
        raise ValueError(f"rates and losses are lists with an array for each run, got {len(rates)} and {len(losses)}")
    runs = [Training.of(*each) for each in zip(rates, losses, strict=True)]
    return replace(fit_trainings(runs), level=level)


def fit_k_law(
    k: ArrayLike,
    rbp: ArrayLike,
    *,
    data: Any = None,
    rbp_replicates: ArrayLike | None = None,
    n_effective: float | None = None,
    method: str = "ols",
    level: float = LEVEL,
) -> PowerLaw:
    """Fit -ln RBP_k = C k^-alpha for one model: how the share of tokens among its k best guesses grows with k.

    Args:
        k: how many guesses, shape [K], increasing.
        rbp: RBP_k, the share of tokens whose rank is at most k, shape [K], between 0 and 1.
        data: a table; k and rbp may then be names of its columns.
        rbp_replicates: rbp under B bootstrap replicates, shape [B, K], the same documents at every k.
        n_effective: effective sample size of the documents.
        method: ols is the paper's; offset adds an E >= 0.
        level: of the intervals; the status does not depend on it.

    Returns:
        A power law in k. Its status is ok, bends where ln(-ln RBP_k) is not linear in ln k, or another. Its interval is
        over documents; without replicates it is that of nested counts, scaled by the residuals, since a token that is
        among the 10 best is also among the 100 best.

    Raises:
        ValueError: shapes disagree, a share is not between 0 and 1, or the method is unknown.

    Source:
        RBP paper, arXiv 2510.20387, appendix B and table 1.

    Example:
        >>> import numpy as np
        >>> k = np.array([1, 10, 100, 1000])
        >>> law = fit_k_law(k, np.exp(-1.2 * k**-0.5))
        >>> round(law.alpha.value, 6), round(law.C.value, 6)
        (0.5, 1.2)
    """
    of = numbers(data, k=k, rbp=rbp, rbp_replicates=rbp_replicates)
    k_K, rbp_K, replicate_BK = of["k"], of["rbp"], of.get("rbp_replicates")
    positive(k=k_K)
    if np.any(np.diff(k_K) <= 0):
        raise ValueError(f"k must increase, got {k_K.tolist()}")
    for name, each in (("rbp", rbp_K), ("rbp_replicates", replicate_BK)):
        if each is not None and not np.all((each >= 0) & (each <= 1)):
            raise ValueError(f"{name} must be shares between 0 and 1, got {each[~((each >= 0) & (each <= 1))][0]}")
    how = Method(known("method", method, [*Method]))
    with np.errstate(divide="ignore"):
        y_K, y_BK = -np.log(rbp_K), None if replicate_BK is None else -np.log(replicate_BK)
    return in_k.fit_k_law(k_K.tolist(), y_K, y_BK, how, counted(n_effective), level)


def rank_distributions(
    ranks: ArrayLike,
    V: int,
    *,
    counts: ArrayLike | None = None,
    data: Any = None,
    names: Sequence[str] = DISTRIBUTIONS,
) -> list[RankFit]:
    """Fit distributions to the ranks of true tokens by maximum likelihood over 1..V, the best first.

    Each is p_x = w_x / sum_{y <= V} w_y with its own weight w, such as x^-beta (power_law) or
    x^-beta exp(-gamma ln^2 x) (lognormal_full). All are discrete and truncated at V, so that they compare by AIC = 2 m
    - 2 ln L with m parameters.

    Args:
        ranks: the rank of each token, from 1, shape [T]; or different ranks with their `counts`.
        V: width of the vocabulary, the last rank.
        counts: tokens of each rank, the shape of `ranks`; 1 each where None.
        data: a table; ranks and counts may then be names of its columns.
        names: which distributions.

    Returns:
        Fits by rising AIC, then those without one. Each has `distribution`, `params` by name, `loglik` in nats,
        `aic`, `bic`, `distance` (Kolmogorov's) and `status`.

    Raises:
        ValueError: shapes disagree, a rank is below 1 or above V, a count is negative, or a name is unknown.

    Source:
        The lognormal is the conjecture of the RBP paper, arXiv 2510.20387, eq. 9.

    Example:
        >>> import numpy as np
        >>> x = np.arange(1, 1001)
        >>> best, *others = rank_distributions(x, 1000, counts=1e6 * x**-1.5, names=["power_law", "weibull"])
        >>> best.distribution, round(best.params["beta"], 6)
        ('power_law', 1.5)
    """
    of = numbers(data, ranks=ranks, counts=counts)
    fits = fit_distributions(names, of["ranks"], of.get("counts", np.ones(len(of["ranks"]))), V)
    return sorted(fits, key=lambda fit: np.inf if fit.aic is None else fit.aic)
