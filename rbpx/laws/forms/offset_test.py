"""Which of two forms of a law the data support: a power law, or one with an offset.

y = C S^(-alpha) is y = E + C S^(-alpha) with E = 0. So the question is what the data say about E: an interval that
leaves out 0 calls for the offset, one that contains only small offsets for the power law, any other for neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from numpy.typing import ArrayLike

from rbpx.laws.intervals.bootstrap import Resampled
from rbpx.laws.power.law import PowerLawFit, fit_offsets
from rbpx.status import Status

NEGLIGIBLE: Final = 0.05  # of the smallest y: an offset below it moves no prediction that one would make


class Form(StrEnum):
    """Which form the data call for; `either` is "not distinguishable with these data"."""

    power = "power"
    offset = "offset"
    either = "either"

    @property
    def word(self) -> str:
        """As tables and sentences say it."""
        return "undecided" if self is Form.either else self.value


@dataclass(frozen=True)
class FormVerdict:
    """What the data say about an irreducible part.

    Attributes:
        form: the verdict.
        E: the best offset, in the unit of y; None where it could not be fitted.
        E_lo: lower end of its 95 % interval, None where the data set none.
        E_hi: upper end.
        aic_power_less_offset: Akaike's criterion of the power law less that of the offset; above 0 for the offset.
        bic_power_less_offset: Schwarz's.
    """

    form: Form
    E: float | None
    E_lo: float | None
    E_hi: float | None
    aic_power_less_offset: float | None
    bic_power_less_offset: float | None


def compare_forms(laws: Sequence[tuple[PowerLawFit, ArrayLike | Resampled | None]]) -> list[FormVerdict | None]:
    """Compare power laws with the same laws and an offset, both by ordinary least squares of ln y.

    Args:
        laws: each power law, and its resamples as in `fit_power_law`.

    Returns:
        The verdicts; None where no law falls with size, or there are fewer than the 4 sizes that an offset needs.
    """
    falls = [power.status is Status.ok and power.alpha is not None and power.alpha > 0 for power, _ in laws]
    falling = [law for law, does in zip(laws, falls, strict=True) if does]
    offsets = iter(fit_offsets([(power.S, _positive(power), resampled) for power, resampled in falling]))
    return [_verdict(power, next(offsets)) if does else None for (power, _), does in zip(laws, falls, strict=True)]


def _positive(power: PowerLawFit) -> list[float]:
    return [abs(value) for value in power.y]


def _verdict(power: PowerLawFit, offset: PowerLawFit) -> FormVerdict | None:
    if offset.status is Status.too_few_sizes:
        return None
    if offset.alpha is None:
        return FormVerdict(Form.either, None, None, None, None, None)
    E, form = offset.offset, Form.either
    if E.lo is not None and E.lo > 0:
        form = Form.offset
    elif E.hi is not None and E.hi <= NEGLIGIBLE * min(_positive(power)):
        form = Form.power
    differences = [
        None if a is None or b is None else a - b for a, b in ((power.aic, offset.aic), (power.bic, offset.bic))
    ]
    return FormVerdict(form, E.value, E.lo, E.hi, *differences)
