"""What the terminal and the report say of a gap in the same words: p values, where it closes, how many were tested."""

import math
from collections.abc import Sequence

from rbpx.analyses.gaps.law import Gap
from rbpx.analyses.gaps.shape import REACH
from rbpx.display.numbers import UNKNOWN, number
from rbpx.laws.significance import ALPHA

__all__ = ["closed", "multiplicity", "p_value"]


def p_value(p: float | None) -> str:
    """A p value in three decimals."""
    return "<0.001" if p is not None and p < 0.0005 else number(p, 3)


def closed(gap: Gap) -> str:
    """The size at which a gap closes, with its interval; what lies too far outside the sizes is named, not given."""
    if gap.is_beyond:
        return "beyond"
    if gap.ln_S_closed is None or gap.verdict != "closes":
        return UNKNOWN
    ends = [math.log(min(gap.fit.params["S"]) / REACH), math.log(max(gap.fit.params["S"]) * REACH)]

    def size(ln_S: float | None) -> str:
        return "beyond" if ln_S is not None and not ends[0] <= ln_S <= ends[1] else _power(ln_S)

    return f"{_power(gap.ln_S_closed)} ({size(gap.ln_S_closed_lo)}..{size(gap.ln_S_closed_hi)})"


def multiplicity(gaps: Sequence[Gap]) -> str:
    """How many gaps were tested, and what that does to the verdicts."""
    n = sum(gap.p_adjusted is not None for gap in gaps)
    text = (
        f"p Holm: of delta = 0, adjusted for all gaps of this request ({n}); below {ALPHA:g} the gap closes or opens; "
        f"it may close or may open where only its own p is below {ALPHA:g}, as 1 of 20 gaps without any trend is; else "
        "it is parallel, as far as these sizes show."
    )
    tested = [gap for gap in gaps if gap.curvature is not None]
    if tested:
        text += (
            f" p bend: of a straight line against a parabola, each by itself; {sum(gap.bends for gap in tested)} of "
            f"{len(tested)} bend at {ALPHA:g}, where chance alone gives {ALPHA * len(tested):.1f}."
        )
    return text


def _power(ln_S: float | None) -> str:
    """A size in one digit, however large."""
    if ln_S is None:
        return UNKNOWN
    exponent = math.floor(ln_S / math.log(10))
    digit = round(math.exp(ln_S - exponent * math.log(10)))
    return f"1e{exponent + 1}" if digit == 10 else f"{digit}e{exponent}"
