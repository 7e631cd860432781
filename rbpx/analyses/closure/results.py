"""What is said of each form of the rank distribution: its quantities at the largest size, its laws, what it leaves."""

from dataclasses import dataclass

from rbpx.laws.interval import Estimate
from rbpx.status import Status

__all__ = ["FormResult", "Held", "Line", "Residual"]


@dataclass(frozen=True)
class Held:
    """One quantity of the largest size; nats.

    Attributes:
        quantity: rbp, error_entropy or cross_entropy.
        k: of RBP, else None.
        scored: whether it counts: RBP up to the largest k whose law stands, H(P) and cross-entropy.
        measured: as counted; H(P) less its bias.
        predicted: by the form, from the smaller sizes.
        predicted_lo: lower end of what a new model would show, if the form were right.
        predicted_hi: upper end.
        own: by the form when fitted to the largest size itself.
        own_lo: lower end of its interval over documents.
        own_hi: upper end.
        separate: by a law in S of this quantity alone, through the smaller sizes.
    """

    quantity: str
    k: int | None
    scored: bool
    measured: float
    predicted: float
    predicted_lo: float
    predicted_hi: float
    own: float
    own_lo: float
    own_hi: float
    separate: float

    @property
    def inside(self) -> bool:
        """Whether the measured value lies within the interval of the predicted one."""
        return self.predicted_lo <= self.measured <= self.predicted_hi

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Line:
    """The law of one parameter: value = at_ref + slope ln (S / S_ref), through all sizes."""

    parameter: str
    at_ref: float
    slope: float


@dataclass(frozen=True)
class Residual:
    """Tokens of a bin of ranks at the largest size, over what the closest form has there; interval over documents.

    The ratio is None where the form has none there.
    """

    first_rank: int
    last_rank: int
    n_tokens: int
    ratio: float | None
    ratio_lo: float | None
    ratio_hi: float | None

    @property
    def rank(self) -> float:
        """The geometric mean of the first and the last rank."""
        return float((self.first_rank * self.last_rank) ** 0.5)


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
        laws: of its parameters, through all sizes.
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
    behind: Estimate | None
    alpha_rbp_1: float | None
    alpha_cross_entropy: float | None
    laws: tuple[Line, ...]
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
