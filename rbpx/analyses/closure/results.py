"""What is said of each form of the rank distribution: its quantities at the largest size, its laws, what it leaves."""

from dataclasses import dataclass

from rbpx.groups.rank_columns import RankBin
from rbpx.laws.interval import Estimate
from rbpx.status import Status


@dataclass(frozen=True)
class Held:
    """One quantity of the largest size; nats.

    Attributes:
        quantity: rbp, error_entropy or cross_entropy.
        k: of RBP, else None.
        scored: whether it counts: RBP up to the largest k whose law stands, H(P) and cross-entropy.
        measured: as counted; H(P) less its bias.
        predicted: by the form, from the smaller sizes.
        reach: the factor to either side of it within which a new model would lie, if the form were right.
        own: by the form when fitted to the largest size itself.
        own_reach: the same of its interval over documents.
        separate: by a law in S of this quantity alone, through the smaller sizes.
    """

    quantity: str
    k: int | None
    scored: bool
    measured: float
    predicted: float
    reach: float
    own: float
    own_reach: float
    separate: float

    @property
    def foretold(self) -> Estimate:
        """What is predicted, with its interval."""
        return Estimate(self.predicted, self.predicted / self.reach, self.predicted * self.reach)

    @property
    def fitted(self) -> Estimate:
        """What its own fit says, with its interval."""
        return Estimate(self.own, self.own / self.own_reach, self.own * self.own_reach)

    @property
    def inside(self) -> bool:
        """Whether the measured value lies within the interval of the predicted one."""
        return self.predicted / self.reach <= self.measured <= self.predicted * self.reach

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Residual(RankBin):
    """A bin at the largest size, and its tokens over those that the closest form has there.

    The interval of the ratio is over documents; it is all None where the form has no tokens there.
    """

    ratio: Estimate


@dataclass(frozen=True, eq=False)
class FormResult:
    """What one form says.

    Attributes:
        name: of the form; its file.
        label: for tables.
        n_parameters: at one size; over a ladder it has twice as many.
        status: ok or not_converged.
        held: each quantity of the largest size.
        error: median of |ln predicted - ln measured| over the scored quantities; None where none is scored. Not their
            mean square, which the largest k with its few misses would decide.
        error_own: the same when fitted to the largest size itself.
        heldout_nats: mean log-likelihood of a token of the largest size.
        behind: nats a token that it loses there to the most likely form, with its interval over documents.
        alpha_rbp_1: exponent of -ln RBP_1 that it implies over all sizes; None where k = 1 is not asked for.
        alpha_cross_entropy: of cross-entropy.
        laws: of its parameters, at_ref + slope ln (S / S_ref), through all sizes.
        slopes: of its parameters by ln S, from the smaller sizes.
    """

    name: str
    label: str
    n_parameters: int
    status: Status
    held: tuple[Held, ...]
    error: float | None
    error_own: float | None
    heldout_nats: float
    behind: Estimate
    alpha_rbp_1: float | None
    alpha_cross_entropy: float | None
    laws: tuple[dict[str, str | float], ...]
    slopes: dict[str, float]

    @property
    def n_scored(self) -> int:
        """Quantities that count."""
        return sum(held.scored for held in self.held)

    @property
    def n_inside(self) -> int:
        """Those that are within their intervals."""
        return sum(held.scored and held.inside for held in self.held)

    @property
    def closes(self) -> bool:
        """Whether all that count are."""
        return self.status is Status.ok and self.n_inside == self.n_scored > 0

    @property
    def difference(self) -> float | None:
        """Exponent of -ln RBP_1 less that of cross-entropy."""
        if self.alpha_rbp_1 is None or self.alpha_cross_entropy is None:
            return None
        return self.alpha_rbp_1 - self.alpha_cross_entropy
