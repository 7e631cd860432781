"""Formats of numbers, and names of axes, laws and statuses."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from rbpx.laws.names import Axis, Method, SizeBy
from rbpx.laws.quantity import quantity
from rbpx.status import Status

UNKNOWN: Final = "–"
_FEWEST, _MOST = 3, 6  # digits of a number with its interval
_WIDENED: Final = 1.05  # times as wide; a smaller factor is not mentioned


def number(value: float | None, digits: int = 4) -> str:
    """Formats a number with so many decimals."""
    return _formatted(value, f".{digits}f")


def _formatted(value: float | None, form: str) -> str:
    return UNKNOWN if value is None or not math.isfinite(value) else format(value, form)


def decimals(digits: int) -> Callable[[float | None], str]:
    """A formatter with so many decimals."""
    return partial(number, digits=digits)


def short(value: float | None) -> str:
    """Formats a number with three significant digits."""
    return _rounded(value, 3)


def rough(value: float | None) -> str:
    """Formats a number with two significant digits."""
    return _rounded(value, 2)


def spoken(value: float | None, digits: int = 2) -> str:
    """Formats a count as 7.9B, 415M or 2T; as `short` below a thousand and from 1e15 on."""
    in_thousands = value is not None and 1e3 <= float(f"{value:.{digits}g}") < 1e6
    return f"{_rounded(value / 1e3, digits)}k" if value is not None and in_thousands else _rounded(value, digits)


def amount(value: float | None) -> str:
    """Formats parameters or tokens as 41M or 3.5B."""
    return spoken(value, 3)


def whole(value: float) -> str:
    """Formats a count, or an imported S, which may be any positive number."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


def size_name(size: str) -> str:
    """The name of a size, 3.5B for the bare number of its parameters."""
    return spoken(float(size), 3) if re.fullmatch(r"\d{4,}(\.\d+)?", size) else size


def _rounded(value: float | None, digits: int) -> str:
    """Writes a number out up to a million; from there on it is 31.6M or 288T, from 1e15 on it has an exponent."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    rounded = f"{value:.{digits}g}"
    for unit, name in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if unit <= abs(float(rounded)) < 1e15:
            return f"{_rounded(value / unit, digits)}{name}"
    return f"{float(rounded):,.0f}" if 10 ** (digits - 1) <= abs(float(rounded)) < 1e6 else rounded


def significant(value: float | None, digits: int) -> str:
    """Formats a number with so many significant digits, trailing zeros too."""
    return _formatted(value, f"#.{digits}g").rstrip(".")


def in_digits(digits: int) -> Callable[[float | None], str]:
    """A formatter with so many significant digits."""
    return partial(significant, digits=digits)


def widening(times: float | None) -> str:
    """How many times an interval was widened; empty where that is not worth a word."""
    return rough(times) if times and times >= _WIDENED else ""


def said_of_widening(row: Mapping[str, Any]) -> str:
    """Says by how much backtests widened the interval of a row; nothing of less than a twentieth."""
    times = widening(row.get("widened"))
    return f", widened {times} times by its backtests" if times else ""


def told_apart(*values: float | None) -> list[str]:
    """Formats a number and its interval with three to six digits, of which the last is at most a fifth of the width."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    width, largest, n = max(known, default=0.0) - min(known, default=0.0), max(map(abs, known), default=0.0), _FEWEST
    if width and largest:
        n = min(max(math.floor(math.log10(largest)) + 1 - math.floor(math.log10(width / 5)), _FEWEST), _MOST)
    return [_rounded(value, n) if value and abs(value) >= 1e3 else significant(value, n) for value in values]


def with_interval(value: float | None) -> str:
    """The format of a column with its interval, whose digits are of both; of the number alone where there is none."""
    return told_apart(value)[0]


def percent(value: float | None) -> str:
    """Formats a relative error with its sign."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:+.1%}" if abs(value) < 10 else f"{value:+,.0%}" if abs(value) < 1e4 else f"{100 * value:+.0e}%"


def part(share: float) -> str:
    """Formats a share in percent, with as many digits as distinguish it from 100."""
    few, left = 100 * share, 100 * (1 - share)
    decimals = 1 - math.floor(math.log10(few)) if few < left else -math.floor(math.log10(left))
    return f"{few:.{max(0, decimals)}f}"


def time(seconds: float | None) -> str:
    """Formats a time in its two largest units; from a hundred days on in days."""
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
    """Formats bytes in decimal units, as the hub and disks do."""
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
}
UNITS: Final = {"cross_entropy": ", nats per token", "rbp": ", nats"}
"""What stands behind the title of a law on an axis or legend."""
_VARIANTS = (("_share", ", share"), ("_corrected", ", corrected"))


@dataclass(frozen=True)
class AxisWords:
    """The words for laws along one axis.

    Attributes:
        x: its symbol; title also says what it is.
        one: the last point of a law: "the largest size".
        point: noun for its points.
        more: how a model exceeds another by a factor: "{} times larger"; at_tenfold is that of ten.
        grows: with what a quantity changes.
        constant: symbol of the law's constant, which differs from that of compute.
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
    """Replaces Greek letters and signs."""
    return text.translate(_PLAIN_SIGNS)


def true_minus(text: str) -> str:
    """Replaces the hyphen of negative numbers by a minus sign."""
    return re.sub(r"(?<![\w.−-])-(?=\.?\d)", "−", text)


def law_title(law: str, k: int | None = None, method: Method = Method.ols) -> str:
    """The title of a law, with its method unless that is least squares."""
    if method is not Method.ols:
        return f"{law_title(law, k)}, {method.value}"
    own = quantity(law)
    if own is None:
        for ending, words in _VARIANTS:
            if law.endswith(ending):
                return law_title(law.removesuffix(ending), k) + words
    return f"{_LAWS[law] if own is None else own.label.replace('-ln ', '−ln ')}{'' if k is None else k}"


def legible(text: str | None, token_id: int) -> str:
    """A token's text with visible blanks and line ends, or its id."""
    return f"id {token_id}" if text is None else shortened(repr(text), 13)


def shortened(text: str, longest: int) -> str:
    """Cuts a text to at most so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def listed(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Joins the first names, and counts the others."""
    return between.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def enumerated(names: Sequence[str]) -> str:
    """Joins names in a line and counts the rest."""
    shown = [*names[:3], f"{len(names) - 3} more"] if len(names) > 4 else list(names)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def the_largest(names: Sequence[str]) -> str:
    """Names the largest runs as the subject of a sentence."""
    each = [name.replace(", ", " ") for name in names]
    return f"The largest run, {each[0]}," if len(each) == 1 else f"The {len(each)} largest runs, {enumerated(each)},"


def law_order(law: str, k: int | None) -> tuple[int, int]:
    """The sort key of a law: cross-entropy, then -ln RBP by k, then others."""
    return {"cross_entropy": 0, "rbp": 1}.get(law, 2), k or 0


def remedies(statuses: Iterable[Status]) -> list[str]:
    """A line with the remedy of each status other than ok."""
    return [f"[yellow]{status.label}[/yellow]: {status.remedy}" for status in sorted(set(statuses) - {Status.ok})]
