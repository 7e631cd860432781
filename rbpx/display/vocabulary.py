"""The words for what laws are in, once: symbol, title, what lies on it, what more of it is; and our signs in ASCII."""

import re
from dataclasses import dataclass
from typing import Final

from rbpx.laws.names import Axis


@dataclass(frozen=True)
class AxisWords:
    """How laws along one axis are spoken of.

    Attributes:
        x: its symbol.
        title: its symbol and what it is.
        one: what the largest of is the end of a law: "the largest size", "the largest D".
        point: what the points of a law are.
        more: what a model has more of by a factor: "{} times larger", "on {} times as many tokens".
        at_tenfold: the same at ten times.
        grows: with what a quantity changes: "with size".
        constant: the constant of a law, which is not that of compute.
    """

    x: str
    title: str
    one: str
    point: str
    more: str
    at_tenfold: str
    grows: str
    constant: str = "C"


AXES: Final = {
    Axis.S: AxisWords(
        "S", "S, non-embedding parameters", "size", "size", "{} times larger", "at ten times the size", "with size"
    ),
    Axis.D: AxisWords(
        "D", "D, training tokens", "D", "point", "trained on {} times as many tokens", "on ten times as many tokens",
        "with training tokens",
    ),
    Axis.C: AxisWords(
        "C", "C, training FLOPs", "C", "point", "trained with {} times as much compute",
        "with ten times as much compute", "with compute", "c",
    ),
    Axis.step: AxisWords(
        "step", "training steps", "step", "point", "trained for {} times as many steps",
        "after ten times as many steps", "with steps",
    ),
}  # fmt: skip

GREEK: Final = {
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "κ": "kappa", "λ": "lambda", "μ": "mu", "σ": "sigma"},
    **{"ρ": "rho", "φ": "phi"},
}
_PLAIN: Final = str.maketrans({**GREEK, "²": "2", "−": "-", "≤": "<="})


def plain_signs(text: str) -> str:
    """A text with Greek letters and signs as a terminal writes them."""
    return text.translate(_PLAIN)


def true_minus(text: str) -> str:
    """A text whose negative numbers have a minus sign, as formulas have, in place of a hyphen."""
    return re.sub(r"(?<![\w.−-])-(?=\.?\d)", "−", text)
