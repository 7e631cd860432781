"""The numbers and words of tables, plots and the report: formats, axes, laws and statuses."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rbpx.laws.names import Axis, Method, SizeBy
from rbpx.laws.quantity import quantity
from rbpx.status import Status

UNKNOWN: Final = "–"


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many decimals."""
    return _formatted(value, f".{digits}f")


def _formatted(value: float | None, form: str) -> str:
    return UNKNOWN if value is None or not math.isfinite(value) else format(value, form)


def decimals(digits: int) -> Callable[[float | None], str]:
    """How numbers with so many decimals are written."""
    return lambda value: number(value, digits)


def signed(value: float | None, digits: int = 4) -> str:
    """A difference with so many decimals and its sign."""
    return _formatted(value, f"+.{digits}f")


def short(value: float | None) -> str:
    """A number of any magnitude in three digits."""
    return _rounded(value, 3)


def rough(value: float | None) -> str:
    """A number of any magnitude in two digits."""
    return _rounded(value, 2)


def spoken(value: float | None, digits: int = 2) -> str:
    """A count as people say it: 7.9B, 21B, 415M, 2T; as `short` below a thousand and from 1e15 on."""
    for unit, name in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value is not None and unit <= float(f"{value:.{digits}g}") < 1e15:
            return f"{_rounded(value / unit, digits)}{name}"
    return _rounded(value, digits)


def _rounded(value: float | None, digits: int) -> str:
    """Written out up to a million, with zeros after the last significant digit; beyond that with an exponent."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    rounded = f"{value:.{digits}g}"
    return f"{float(rounded):,.0f}" if 10 ** (digits - 1) <= abs(float(rounded)) < 1e6 else rounded


def significant(value: float | None, digits: int) -> str:
    """A number of any magnitude in so many digits, trailing zeros included."""
    return _formatted(value, f"#.{digits}g").rstrip(".")


def in_digits(digits: int) -> Callable[[float | None], str]:
    """How numbers of any magnitude are written in so many digits."""
    return lambda value: significant(value, digits)


def span(lo: float | None, hi: float | None, digits: int = 4) -> str:
    """An interval; a dash where an end is unknown, one dash where both are."""
    return UNKNOWN if lo is None and hi is None else f"{number(lo, digits)}..{number(hi, digits)}"


def percent(value: float | None) -> str:
    """A relative error with its sign."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:+.1%}" if abs(value) < 10 else f"{value:+,.0%}" if abs(value) < 1e4 else f"{100 * value:+.0e}%"


def part(share: float) -> str:
    """A share between none and all in percent: two digits, or as many as tell it from all; neither 0 nor 100."""
    few, left = 100 * share, 100 * (1 - share)
    decimals = 1 - math.floor(math.log10(few)) if few < left else -math.floor(math.log10(left))
    return f"{few:.{max(0, decimals)}f}"


def time(seconds: float | None) -> str:
    """A time in its two largest units; from a hundred days on in days."""
    if seconds is None:
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.0f}s" if seconds >= 1 else f"{seconds:.1f}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}m"
    hours = round(seconds / 3600)
    if hours < 48:
        return f"{minutes // 60}h{minutes % 60:02}m"
    return f"{hours // 24}d{hours % 24:02}h" if hours < 2400 else f"{hours // 24:,}d"


def in_bytes(n: float | None) -> str:
    """An amount of bytes in three digits, in the decimal units that the hub and disks are told in."""
    if n is None:
        return UNKNOWN
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= 0.9995 * size:
            return f"{n / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{n:.0f} B"


GREEK: Final = {
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "κ": "kappa", "λ": "lambda", "μ": "mu", "σ": "sigma"},
    **{"ρ": "rho", "φ": "phi"},
}
_PLAIN_SIGNS: Final = str.maketrans({**GREEK, "²": "2", "−": "-", "≤": "<="})
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
    "pass_at": "−ln pass@",
    "tail_least_squares": "exponent by least squares",
    "tail_beta": "a of beta",
    "tail_kumaraswamy": "a of Kumaraswamy",
}
_VARIANTS = (("_share", ", share"), ("_corrected", ", corrected"), ("_at_temperature", " at T*"))


@dataclass(frozen=True)
class AxisWords:
    """How laws along one axis are spoken of.

    Attributes:
        x: its symbol.
        title: its symbol and what it is.
        one: what the end of a law is the largest of: "the largest size", "the largest D".
        point: what the points of a law are.
        more: how a model exceeds another by a factor: "{} times larger", "trained on {} times as many tokens".
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
        "S", f"S, {SizeBy.total.counted}", "size", "size", "{} times larger", "at ten times the size", "with size"
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


def title_of(axis: Axis, by: SizeBy = SizeBy.total) -> str:
    """The symbol of an axis and what it is."""
    return f"S, {by.counted}" if axis is Axis.S else AXES[axis].title


def plain_signs(text: str) -> str:
    """A text with Greek letters and signs as a terminal writes them."""
    return text.translate(_PLAIN_SIGNS)


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


def listed(names: Sequence[str], most: int, between: str = ", ") -> str:
    """So many of the names, the first ones, and how many more there are."""
    return between.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def enumerated(names: Sequence[str]) -> str:
    """Names in a line, the rest counted."""
    shown = [*names[:3], f"{len(names) - 3} more"] if len(names) > 4 else list(names)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def the_largest(names: Sequence[str]) -> str:
    """Runs that are the largest, as the subject of a sentence; what tells two of a size apart takes no comma there."""
    each = [name.replace(", ", " ") for name in names]
    return f"The largest run, {each[0]}," if len(each) == 1 else f"The {len(each)} largest runs, {enumerated(each)},"


def headline(law: str, k: int | None) -> tuple[int, int]:
    """The place of a law where few can be drawn: cross-entropy first, then -ln RBP by k, then others."""
    return {"cross_entropy": 0, "rbp": 1}.get(law, 2), k or 0


def status_name(status: Status) -> str:
    """A status in rich's markup: yellow unless it passes."""
    return status.label if status is Status.ok else f"[yellow]{status.label}[/yellow]"


def remedies(statuses: Iterable[Status]) -> list[str]:
    """A line for each status other than ok: what to do about it."""
    return [f"{status_name(status)}: {status.remedy}" for status in sorted(set(statuses) - {Status.ok})]
