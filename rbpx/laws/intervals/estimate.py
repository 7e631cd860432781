"""What every 95 % interval is made of: its level, its quantiles, and how independent sources of noise add up.

Variances are those of the number that the interval is of. Which recipe is used where, and why, is in
docs/explanation/uncertainty.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit  # scipy.stats checks its arguments for 60 times as long

LEVEL: Final = 0.95
TAILS: Final = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)  # below both of its ends
Z: Final = float(ndtri(TAILS[1]))  # the normal quantile of an interval of that level


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; None where the number, or an end, is not known."""

    value: float | None = None
    lo: float | None = None
    hi: float | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends; None where one is not known."""
        return None if self.lo is None or self.hi is None else (self.lo, self.hi)

    @property
    def leaves_out_0(self) -> bool:
        """Whether 0 lies outside of both ends."""
        return self.ends is not None and not self.ends[0] <= 0 <= self.ends[1]

    def times(self, factor: float) -> "Estimate":
        """The number and its ends times a factor; a negative one swaps the ends."""
        value, lo, hi = (None if each is None else each * factor for each in (self.value, self.lo, self.hi))
        return Estimate(value, lo, hi) if factor >= 0 else Estimate(value, hi, lo)


NO_ESTIMATE: Final = Estimate(None, None, None)


def by_name(**estimates: Estimate) -> dict[str, float | None]:
    """Numbers by their names, and the ends of their intervals by these with _lo and _hi."""
    named: dict[str, float | None] = {}
    for name, each in estimates.items():
        named |= {name: each.value, f"{name}_lo": each.lo, f"{name}_hi": each.hi}
    return named


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by their names, each estimate among them as three (`by_name`)."""
    named: dict[str, Any] = {}
    for name, value in values.items():
        named |= by_name(**{name: value}) if isinstance(value, Estimate) else {name: value}
    return named


def of_share(n_hits: float, n: int) -> Estimate:
    """The share of n independent items that are hits, with Wilson's interval; all None without items.

    Resampling gives an interval of no width where all items are hits or none is; this one holds its level there too.

    Source:
        E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference, JASA 22, 1927.
    """
    if n < 1:
        return Estimate()
    share, spread = n_hits / n, Z * math.sqrt(n_hits * (n - n_hits) / n**3 + Z**2 / (4 * n**2))
    centre, scale = share + Z**2 / (2 * n), 1 + Z**2 / n
    lo, hi = ((centre + side * spread) / scale for side in (-1, 1))
    return Estimate(share, 0.0 if n_hits == 0 else lo, 1.0 if n_hits == n else hi)


def student_t(dof: float) -> float:
    """The quantile of Student's t of an interval of `LEVEL`; infinite at 0 degrees of freedom."""
    return float(stdtrit(dof, TAILS[1])) if dof > 0 else math.inf


def document_t(n_documents: int | None) -> float:
    """The quantile of an interval over documents: Student's t of n - 1; normal where they are not counted (None).

    It is normal for a single one too, which does not vary: whoever asks says that it has no interval.
    """
    return Z if n_documents is None or n_documents < 2 else student_t(n_documents - 1)


def few_documents(n_documents: int | None) -> float:
    """How many times the variance over resamples of n documents counts: n / (n - 1); once where `document_t` is Z."""
    return 1.0 if n_documents is None or n_documents < 2 else n_documents / (n_documents - 1)


def scatter_reach(scatter: float, dof: float, own: float = 0.0) -> float:
    """How far to either side points that scatter may lie: max(t scatter, Z own), arguments as in `half_width`."""
    return max(student_t(dof) * scatter if scatter > 0 else 0.0, Z * own)


def half_width(
    shared: float = 0.0,
    scatter: float = 0.0,
    dof: float = 0,
    own: float = 0.0,
    unit: float = 1.0,
    n_documents: int | None = None,
) -> float:
    """Half of an interval over documents and models: sqrt(max(t scatter, Z own)^2 unit + t_D^2 shared).

    Each variance has Student's t of its own: that of the models is estimated from the scatter of a few sizes about
    their law, that over documents from D of them, D - 1 degrees of freedom, however many resamples are drawn. So added,
    the interval holds its level or a little more, whatever the share of each. The scatter also includes such noise of
    the documents as differs between the sizes (`own`); that part is known whatever the scatter happens to be, so sizes
    that lie close to the law by luck narrow no interval.

    Args:
        shared: variance over documents that the scatter of the sizes does not show.
        scatter: standard deviation that was estimated from the sizes.
        dof: its degrees of freedom; needed where `scatter` is above 0.
        own: the part of `scatter` that the documents explain, a standard deviation.
        unit: variance of the number if the sizes scattered by 1.
        n_documents: D; None where they are not counted.

    Source:
        S. K. Banerjee, Approximate Confidence Interval for Linear Functions of Means of k Populations when the
        Population Variances are not Equal, Sankhya 22 (1960).
    """
    return math.sqrt(scatter_reach(scatter, dof, own) ** 2 * unit + document_t(n_documents) ** 2 * shared)


def around(centre: float, half: float) -> tuple[float, float]:
    """Both ends of an interval that is as far to either side."""
    return centre - half, centre + half


def reaching(value: float, ends: tuple[float, float]) -> tuple[float, float]:
    """An interval, extended to the number that stands beside it where a correction for bias has moved it past that."""
    return min(*ends, value), max(*ends, value)


def from_stderr(value: float | None, stderr: float | None, dof: float | None = None) -> Estimate:
    """A number with an interval from a standard error in closed form: Student's t of `dof`, normal where that is None.

    There is no interval where the standard error is None.
    """
    if value is None or stderr is None:
        return Estimate(value)
    lo, hi = around(value, stderr * (Z if dof is None else student_t(dof)))
    return Estimate(value, lo, hi)


def from_influence(value: float, influence_D: NDArray[Any]) -> Estimate:
    """A number with an interval over documents from how far each document moves it, without any resample.

    What resampling tends to for a smooth function of sums over documents: its variance is D / (D - 1) times the sum of
    the squared influences (the delta method, or infinitesimal jackknife); Student's t of D - 1. One document has no
    interval.

    Args:
        value: the number.
        influence_D: change of the number if a document counted for a little more, over that little; sums to 0.
    """
    D = len(influence_D)
    stderr = math.sqrt(few_documents(D) * float(influence_D @ influence_D)) if D > 1 else None
    return from_stderr(value, stderr, D - 1)


def fieller(height: float, slope: float, V: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The part of {u : (height - slope u)^2 <= V00 - 2 V01 u + V11 u^2} that contains u = height / slope, slope > 0."""
    a, b, c = slope**2 - V[1, 1], height * slope - V[0, 1], height**2 - V[0, 0]  # a u^2 - 2 b u + c <= 0
    # b^2 - a c, written so that it is exactly 0 without variance.
    discriminant = slope**2 * V[0, 0] + height**2 * V[1, 1] - 2 * height * slope * V[0, 1] - np.linalg.det(V)
    if discriminant < 0:
        return None, None  # then a < 0, and every u is in
    q = b + math.copysign(math.sqrt(discriminant), b)
    roots = sorted(([q / a] if a else []) + ([c / q] if q else []))
    if a > 0:
        return float(roots[0]), float(roots[-1])
    below, above = ([u for u in roots if side * u <= side * height / slope] for side in (1, -1))
    return (float(max(below)) if below else None), (float(min(above)) if above else None)
