"""The words of tables, plots and the report, once: for axes, laws, features and statuses; and our signs in ASCII.

Columns of fitted power laws, which the tables of many questions have.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from rbpx.display.column import Column, ends, error, whole, with_ends
from rbpx.display.numbers import UNKNOWN, number, significant
from rbpx.laws.names import Axis, Method
from rbpx.laws.power.law import LawFit
from rbpx.laws.quantity import quantity
from rbpx.status import Status

GREEK: Final = {
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "κ": "kappa", "λ": "lambda", "μ": "mu", "σ": "sigma"},
    **{"ρ": "rho", "φ": "phi"},
}
_PLAIN: Final = str.maketrans({**GREEK, "²": "2", "−": "-", "≤": "<="})
_LAWS = {
    "rbp": "−ln RBP_",
    "cross_entropy": "cross-entropy",
    "lognormal_rbp1": "lognormal RBP_1",
    "lognormal_cross_entropy": "lognormal CE",
    "error_entropy": "error-entropy",
    "self_alignment": "self-alignment",
    "confidence": "confidence",
    "bits_per_byte": "bits per byte",
    "accuracy": "1 - accuracy",
    "exact_match": "−ln exact match ",
    "soft_accuracy": "−ln soft accuracy",
}
_VARIANTS = (("_share", ", share"), ("_corrected", ", corrected"), ("_at_temperature", " at T*"))


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


def plain_signs(text: str) -> str:
    """A text with Greek letters and signs as a terminal writes them."""
    return text.translate(_PLAIN)


def true_minus(text: str) -> str:
    """A text whose negative numbers have a minus sign, as formulas have, in place of a hyphen."""
    return re.sub(r"(?<![\w.−-])-(?=\.?\d)", "−", text)


def law_title(law: str, k: int | None = None, method: Method = Method.ols) -> str:
    """A law in tables and sentences; the method of its fit is named unless it is least squares."""
    if method is not Method.ols:
        return f"{law_title(law, k)}, {method.value}"
    own = quantity(law)
    if own is None:
        for ending, words in _VARIANTS:
            if law.endswith(ending):
                return law_title(law.removesuffix(ending), k) + words
    return f"{_LAWS[law] if own is None else own.label.replace('-ln ', '−ln ')}{'' if k is None else k}"


def legible(text: str | None, token_id: int, longest: int = 13) -> str:
    """A token's text as Python writes it, so that blanks and line ends are visible, or its id."""
    return f"id {token_id}" if text is None else shortened(repr(text), longest)


def shortened(text: str, longest: int) -> str:
    """A text of at most so many characters, its end left out."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def headline(law: str, k: int | None) -> tuple[int, int]:
    """The place of a law where few can be drawn: cross-entropy first, then -ln RBP by k, then others."""
    return {"cross_entropy": 0, "rbp": 1}.get(law, 2), k or 0


def status_name(status: Status) -> str:
    """A status in rich's markup: yellow unless all is well."""
    return status.label if status is Status.ok else f"[yellow]{status.label}[/yellow]"


def remedies(statuses: Iterable[Status]) -> list[str]:
    """A line for each status other than ok: what to do about it."""
    return [f"{status_name(status)}: {status.remedy}" for status in sorted(set(statuses) - {Status.ok})]


Row = TypeVar("Row", contravariant=True)
Of = Callable[[Row], LawFit]


def exponent(of: Of[Row], digits: int = 4, means: str = "") -> Sequence[Column[Row]]:
    """Alpha with its interval."""
    return with_ends("α", "alpha", lambda row: of(row).exponent, lambda value: number(value, digits), means)


def constant(of: Of[Row], spare: int = 0) -> Sequence[Column[Row]]:
    """C, at 1 of what the law is in, with its interval."""
    return with_ends("{c}", "C", lambda row: of(row).constant, lambda value: significant(value, 4), spare=spare)


def determination(of: Of[Row], spare: int = 0, ends_spare: int = 0) -> Sequence[Column[Row]]:
    """R2 of the regression, with its interval."""
    return with_ends(
        "R²", "r2", lambda row: of(row).determination, lambda value: number(value, 3), "", spare, ends_spare
    )


def points_of(of: Of[Row], spare: int = 0) -> Sequence[Column[Row]]:
    """How many points a law is fitted to, and the places of the first and the last."""
    return (
        whole("points", "n_points", lambda row: of(row).n_points, spare=spare),
        ends("{x}_from {x}_to", lambda row: _reach(of(row)), _power, "over {x}", spare=spare),
    )


def backtest(of: Of[Row], spare: int = 0) -> Column[Row]:
    """The error of the last point, predicted from the others."""
    means = "error of the largest {x}, predicted from the others"
    return error("backtest", "backtest_error", lambda row: of(row).backtest_error, means, spare)


def _reach(fit: LawFit) -> tuple[float | None, float | None]:
    return (min(fit.S), max(fit.S)) if fit.S else (None, None)


def _power(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
