"""Estimates with 95 % intervals: quantiles, sums of independent sources of noise, and the cluster bootstrap.

Shapes: D documents, B bootstrap replicates, N sizes, P parameters fitted to each replicate, K combinations of ln y.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from rbpx.laws.numeric import Floats, exp_or_none

LEVEL: Final = 0.95
TAILS: Final = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)  # probabilities below its two ends
Z: Final = float(ndtri(TAILS[1]))  # the normal quantile of an interval of that level


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval and standard error, each None where unknown."""

    value: float | None = None
    lo: float | None = None
    hi: float | None = None
    stderr: float | None = None

    def __repr__(self) -> str:
        if self.value is None:
            return "unknown"
        return f"{self.value:.4g} " + (
            "(no interval)" if self.ends is None else "({:.4g} to {:.4g})".format(*self.ends)
        )

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both, or None."""
        return None if self.lo is None or self.hi is None else (self.lo, self.hi)

    def holds(self, value: float) -> bool | None:
        """Whether the interval contains a value; None without an interval."""
        return None if self.ends is None else self.ends[0] <= value <= self.ends[1]

    @property
    def leaves_out_0(self) -> bool:
        """Whether the interval excludes 0."""
        return self.holds(0.0) is False

    def record(self) -> dict[str, float | None]:
        """The number and its ends."""
        return {"value": self.value, "lo": self.lo, "hi": self.hi}

    def through(self, function: Callable[[float], float | None], falls: bool = False) -> "Estimate":
        """Applies a rising function to number and ends; one that falls swaps the ends."""
        value, lo, hi = (None if each is None else function(each) for each in (self.value, self.lo, self.hi))
        return Estimate(value, hi, lo) if falls else Estimate(value, lo, hi)

    def times(self, factor: float) -> "Estimate":
        """Multiplies number, ends and standard error; a negative factor swaps the ends."""
        stderr = None if self.stderr is None else self.stderr * abs(factor)
        return replace(self.through(lambda each: each * factor, falls=factor < 0), stderr=stderr)

    def exp(self) -> "Estimate":
        """The number from its logarithm."""
        return self.through(exp_or_none)

    def ln(self) -> "Estimate":
        """Its logarithm."""
        return self.through(lambda each: math.log(each) if each > 0 else None)


NO_ESTIMATE: Final = Estimate()


def by_name(**estimates: Estimate) -> dict[str, float | None]:
    """Numbers by name, and their ends as name_lo and name_hi."""
    return flat(estimates)


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name, with estimates expanded as in `by_name`."""
    named: dict[str, Any] = {}
    for name, value in values.items():
        is_estimate = isinstance(value, Estimate)
        named |= {name: value.value, f"{name}_lo": value.lo, f"{name}_hi": value.hi} if is_estimate else {name: value}
    return named


def of_share(n_hits: float, n: float, p: float = 1 - LEVEL) -> Estimate:
    """The share of n independent items that are hits, with Clopper and Pearson's interval; all None if n < 1.

    It holds at least its level for any share; Wilson's and Jeffreys' near 0 and 1 only 83.8 % and 87.7 % (n = 500,
    exact). Where hits cluster in groups, n is the number of groups.

    Source:
        C. J. Clopper and E. S. Pearson, Biometrika 26, 1934.
    """
    if n < 1:
        return Estimate()
    misses = n - n_hits
    lo = float(betaincinv(n_hits, misses + 1, p / 2)) if n_hits > 0 else 0.0
    hi = float(betaincinv(n_hits + 1, misses, 1 - p / 2)) if misses > 0 else 1.0
    return Estimate(n_hits / n, lo, hi)


_FEW: Final = 5  # documents with hits, or with misses


def of_counted_share(found: Estimate, hits_D: ArrayLike, tokens_D: ArrayLike, p: float = 1 - LEVEL) -> Estimate:
    """The interval of a share of tokens, from that of replicates or influences, within [0, 1].

    Where few documents have the hits, or the misses, replicates vary too little, and the interval is Clopper and
    Pearson's with the effective number of all.
    """
    if found.ends is None:
        return found
    hits_D, tokens_D = np.asarray(hits_D, np.float64), np.asarray(tokens_D, np.float64)
    n = effective_number(tokens_D)
    if any(effective_number(of_D) < min(_FEW, n / 2) for of_D in (hits_D, tokens_D - hits_D)):
        return replace(of_share(float(hits_D.sum() / tokens_D.sum()) * n, n, p), stderr=found.stderr)
    return replace(found.through(lambda each: min(max(each, 0.0), 1.0)), stderr=found.stderr)


def student_t(dof: float, p: float = 1 - LEVEL) -> float:
    """The two-sided quantile of Student's t; infinite at 0 degrees of freedom."""
    return -float(stdtrit(dof, p / 2)) if dof > 0 else math.inf


def effective_number(tokens_D: ArrayLike) -> float:
    """The effective sample size 1 / sum w^2 of documents whose shares of the tokens are w.

    Source:
        L. Kish, Survey Sampling, 1965.
    """
    n_D = np.asarray(tokens_D, np.float64)
    return float(n_D.sum()) ** 2 / float(n_D @ n_D) if n_D.any() else 0.0


_LEAST_DOF: Final = 0.5  # where one document has most of the tokens; t is 165 at .5, and 10^12 at .1


def document_t(n_effective: float | None, p: float = 1 - LEVEL) -> float:
    """The quantile of an interval over documents: Student's t of n - 1, or normal for one or an unknown number."""
    if n_effective is None or n_effective <= 1:
        return -float(ndtri(p / 2))
    return student_t(max(n_effective - 1, _LEAST_DOF), p)


def few_documents(n_effective: float | None) -> float:
    """The factor n / (n - 1) on the variance over document replicates; 1 where `document_t` is normal."""
    return 1.0 if n_effective is None or n_effective <= 1 else n_effective / (n_effective - 1)


def half_width(
    shared: float = 0.0,
    scatter: float = 0.0,
    dof: float = 0,
    own: float = 0.0,
    unit: float = 1.0,
    n_effective: float | None = None,
    p: float = 1 - LEVEL,
) -> float:
    """Half of an interval over documents and models: sqrt(max(t scatter, Z own)^2 unit + t_D^2 shared).

    `scatter` is a standard deviation estimated from the sizes, `own` its part due to the documents, a lower bound;
    `unit` is the variance of the number if the sizes scattered by 1, `shared` the variance over documents that the
    scatter does not show.

    Source:
        S. K. Banerjee, Sankhya 22 (1960), on linear functions of means with unequal variances.
    """
    reach = max(student_t(dof, p) * scatter if scatter > 0 else 0.0, document_t(None, p) * own)
    return math.sqrt(reach**2 * unit + document_t(n_effective, p) ** 2 * shared)


def around(centre: float, half: float) -> tuple[float, float]:
    """Both ends of a symmetric interval."""
    return centre - half, centre + half


def from_half_width(value: float, half: float, stderr: float | None = None) -> Estimate:
    """An estimate with a symmetric interval; without one where `half` is not finite."""
    return Estimate(value, *around(value, half), stderr) if math.isfinite(half) else Estimate(value)


def extended_to(value: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Extends an interval to the number shown with it, which a correction for bias may have left outside."""
    return min(*ends, value), max(*ends, value)


def from_stderr(value: float | None, stderr: float | None, dof: float | None = None, p: float = 1 - LEVEL) -> Estimate:
    """An estimate from a standard error, by Student's t of `dof`, or normal where that is None."""
    if value is None or stderr is None:
        return Estimate(value)
    return from_half_width(value, stderr * (document_t(None, p) if dof is None else student_t(dof, p)), stderr)


def from_influence(value: float, influence_D: NDArray[Any], n_effective: float) -> Estimate:
    """An estimate from the influence of each document, by the delta method; without ends for one document.

    The variance is n / (n - 1) times the sum of squared influences, n the `effective_number`.
    """
    if n_effective <= 1:
        return Estimate(value)
    stderr = math.sqrt(few_documents(n_effective) * float(influence_D @ influence_D))
    return from_half_width(value, document_t(n_effective) * stderr, stderr)


def fieller(height: float, slope: float, V: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The part of {u : (height - slope u)^2 <= V00 - 2 V01 u + V11 u^2} around height / slope, slope > 0."""
    a, b, c = slope**2 - V[1, 1], height * slope - V[0, 1], height**2 - V[0, 0]  # a u^2 - 2 b u + c <= 0
    # b^2 - a c, written so that it is exactly 0 without variance.
    discriminant = slope**2 * V[0, 0] + height**2 * V[1, 1] - 2 * height * slope * V[0, 1] - np.linalg.det(V)
    if discriminant < 0:
        return None, None  # then a < 0, and every u satisfies it
    q = b + math.copysign(math.sqrt(discriminant), b)
    roots = sorted(([q / a] if a else []) + ([c / q] if q else []))
    if a > 0:
        return float(roots[0]), float(roots[-1])
    below, above = ([u for u in roots if side * u <= side * height / slope] for side in (1, -1))
    return (float(max(below)) if below else None), (float(min(above)) if above else None)


MIN_REPLICATES: Final = 20  # with fewer that can be used there is no interval
MOST_LEFT_OUT: Final = 0.05  # of the replicates: with more of them unusable the rest are a selection, not a sample


class Recipe(StrEnum):
    """How replicates of a number become an interval.

    `normal` is value - bias +- t sd; the estimate is the centre. `uncentred` is value +- t sd, for replicates shifted
    by linearisation and not by bias. `percentile` is from q(2.5 %) to q(97.5 %), for ranks or ratios; `expanded` the
    same, interpolated between replicates, for differences. Quantiles are as far out as t sqrt(D / (D - 1)) in a normal
    distribution, D the `effective_number`.
    """

    normal = "normal"
    uncentred = "uncentred"
    percentile = "percentile"
    expanded = "expanded"


def document_weights(n_documents: int, n_replicates: int, seed: int) -> NDArray[np.int64]:
    """How often each of D documents is drawn in each of B replicates, [B, D]; each row sums to D.

    Raises:
        ValueError: if either number is below 1.
    """
    if n_documents < 1 or n_replicates < 1:
        raise ValueError(f"needs at least 1 document and 1 replicate, got {n_documents} and {n_replicates}")
    document_BD = np.random.default_rng(seed).integers(n_documents, size=(n_replicates, n_documents))
    document_BD += n_documents * np.arange(n_replicates)[:, None]
    counts = np.bincount(document_BD.ravel(), minlength=n_replicates * n_documents)
    return counts.reshape(n_replicates, n_documents).astype(np.int64, copy=False)


def estimate(
    value: float,
    replicate_B: Floats,
    n_effective: float | None,
    recipe: Recipe = Recipe.normal,
    p: float = 1 - LEVEL,
) -> Estimate:
    """A number with its interval at level 1 - p over documents, from the number of each replicate.

    `n_effective` is None where documents are not counted, or the replicates are draws that spread as much as the number
    does. Without an interval, and uncorrected, for one document or fewer than 20 finite replicates.

    Source:
        `expanded`: T. C. Hesterberg, arXiv 1411.5279.
    """
    if not math.isfinite(value):
        return Estimate()
    value, usable_B = float(value), replicate_B[np.isfinite(replicate_B)]
    if len(usable_B) < MIN_REPLICATES or (n_effective is not None and n_effective <= 1):
        return Estimate(value)
    few = few_documents(n_effective)
    if recipe in (Recipe.normal, Recipe.uncentred):
        number = 2 * value - float(usable_B.mean()) if recipe is Recipe.normal else value
        stderr = math.sqrt(few * float(usable_B.var(ddof=1)))
        return from_half_width(number, document_t(n_effective, p) * stderr, stderr)
    tail = float(ndtr(-math.sqrt(few) * document_t(n_effective, p)))
    method: Literal["inverted_cdf", "linear"] = "inverted_cdf" if recipe is Recipe.percentile else "linear"
    return Estimate(value, *np.quantile(usable_B, [tail, 1 - tail], method=method).tolist())


class Moments(NamedTuple):
    """Bias (mean over the replicates minus the fit) and covariance of parameters."""

    bias_P: Floats
    covariance_PP: Floats


def moments(theta_P: Floats, theta_BP: Floats) -> Moments | None:
    """Those of finite parameters over replicates; None below 20 of them."""
    if len(theta_BP) < MIN_REPLICATES:
        return None
    return Moments(theta_BP.mean(axis=0) - theta_P, np.atleast_2d(np.cov(theta_BP, rowvar=False)))


@dataclass(frozen=True, eq=False)
class Replicates:
    """A positive quantity at N sizes under bootstrap replicates of the same documents for every size.

    Attributes:
        ln_y_BN: of the replicates that are positive and finite at every size, spread about their mean by sqrt(D / (D -
            1)).
        covariance_NN: of these, with divisor B - 1.
        n_effective: D; None where they are not counted.
    """

    y_BN: Floats
    ln_y_BN: Floats
    mean_N: Floats
    covariance_NN: Floats
    n_effective: float | None = None

    @classmethod
    def of(cls, y: ArrayLike, n_effective: float | None = None) -> "Replicates":
        """Takes values [B, N]."""
        y_BN = np.asarray(y, dtype=np.float64)
        ln_y_BN = np.log(y_BN[np.all((y_BN > 0) & np.isfinite(y_BN), axis=1)])
        n = len(ln_y_BN) or math.nan  # NaN without replicates
        mean_N = ln_y_BN.sum(axis=0) / n
        about_BN = (ln_y_BN - mean_N) * math.sqrt(few_documents(n_effective))
        covariance_NN = about_BN.T @ about_BN / max(n - 1, 1)
        return cls(y_BN, mean_N + about_BN, mean_N, covariance_NN, n_effective)

    @classmethod
    def of_logarithms(cls, ln_y: ArrayLike, n_effective: float | None = None) -> "Replicates":
        """Takes ln y."""
        return cls.of(np.exp(ln_y), n_effective)

    @property
    def n_left_out(self) -> int:
        """How many are left out."""
        return len(self.y_BN) - len(self.ln_y_BN)

    @property
    def suffices(self) -> bool:
        """Whether enough are left for an interval."""
        return len(self.ln_y_BN) >= MIN_REPLICATES

    def smallest(self, m: int) -> "Replicates":
        """The replicates at the first m sizes."""
        return Replicates.of(self.y_BN[:, :m], self.n_effective)

    def covariance_of(self, of_KN: Floats) -> Floats:
        """The covariance of linear combinations of ln y, [K, K]."""
        return np.asarray(of_KN @ self.covariance_NN @ of_KN.T)

    def mean_squares_of(self, of_KN: Floats) -> Floats:
        """The mean square of each linear combination about its mean, [K]."""
        n = len(self.ln_y_BN)
        squares_K = np.einsum("kn,nm,km->k", of_KN, self.covariance_NN, of_KN) * ((n - 1) / n)
        return np.asarray(np.maximum(squares_K, 0.0))  # rounding may make 0 negative
