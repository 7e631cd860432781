"""Names of laws, surface forms and fit methods, as typed on the command line."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

QUANTITIES = tuple(sorted(module.name for module in iter_modules([str(Path(__file__).with_name("quantities"))])))
"""Laws in S that each have a module in `rbpx.laws.quantities`, by file name: a new file is a new law."""

LOGNORMAL = ("lognormal_rbp1", "lognormal_cross_entropy")
"""What the paper's lognormal of the ranks implies for -ln RBP_1 and cross-entropy."""

LAWS = (
    "rbp",
    "cross_entropy",
    *LOGNORMAL,
    "error_entropy",
    "self_alignment",
    "confidence",
    *QUANTITIES,
)


IMPORTED = ("bits_per_byte", "accuracy")
"""Quantities that are imported, not measured; the law of accuracy is that of the share of misses."""

MLE = "mle"  # method, in `fits`, of a law recovered from outcomes; it cannot be requested


class Axis(StrEnum):
    """The variable of a law of one variable: size, training tokens, training FLOPs, or optimizer steps."""

    S = "S"
    D = "D"
    C = "C"
    step = "step"


@dataclass(frozen=True)
class OnText:
    """A quantity on a text, from which `predict` tells another."""

    law: str
    dataset: str

    @property
    def value(self) -> str:
        """The name as typed and stored."""
        return f"{self.law}@{self.dataset}"


class SizeBy(StrEnum):
    """Which parameters S counts: all but embeddings and head, those of them that one token uses, or all."""

    total = "total"
    active = "active"
    with_embeddings = "with_embeddings"

    @property
    def counted(self) -> str:
        """What S counts, in words."""
        return {"total": "non-embedding parameters", "active": "active parameters"}.get(self, "all parameters")


class SchedulePhase(StrEnum):
    """Part of the learning-rate schedule that a checkpoint lies in."""

    end = "end"
    constant = "constant"
    middle = "middle"


class Method(StrEnum):
    """How a law is fitted; each minimises the squares of ln y - ln law, weighted or under Huber's loss as named."""

    ols = "ols"
    weighted = "weighted"
    offset = "offset"
    robust = "robust"


FORM_NAMES: Final = ("chinchilla", "kaplan", "data_constrained")
DELTA: Final = 1e-3


class Objective(StrEnum):
    """The loss of one point with residual r.

    `log_huber` is Huber's loss of r = ln y_fit - ln y: r^2 / 2 up to delta, delta (|r| - delta / 2) beyond.
    `huber` is the same of r = y_fit - y. `least_squares` is r^2 of r = y_fit - y.
    """

    log_huber = "log_huber"
    huber = "huber"
    least_squares = "least_squares"
