"""Names of the forms of a surface and of what they are fitted by, as people type them."""

from enum import StrEnum
from typing import Final

FORM_NAMES: Final = ("chinchilla", "kaplan", "data_constrained")
DELTA: Final = 1e-3


class Objective(StrEnum):
    """The loss of one point, r its residual.

    `log_huber` is Huber's loss of r = ln y_fit - ln y: r^2 / 2 up to delta, delta (|r| - delta / 2) beyond.
    `huber` is the same of r = y_fit - y. `least_squares` is r^2 of r = y_fit - y.
    """

    log_huber = "log_huber"
    huber = "huber"
    least_squares = "least_squares"
