"""Reads units in the headings of users' tables: `params (M)` counts millions of parameters."""

import re
from decimal import Decimal
from functools import cache
from typing import Final

_WORDS: Final = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LETTERS: Final = {"k": 3, "m": 6, "b": 9, "g": 9, "t": 12}
_SI: Final = {"kilo": 3, "mega": 6, "giga": 9, "tera": 12, "peta": 15, "exa": 18, "zetta": 21, "yotta": 24}
_POWERS: Final = {**_WORDS, **_LETTERS, **_SI, "p": 15, "e": 18, "z": 21, "y": 24}
_DAY_S: Final = 86_400  # of a PF-day, 1e15 operations a second for a day
_NOUNS: Final = r"(?:tokens|param(?:eter)?s|flops?|compute|size|steps?)"
_WORD: Final = rf"(?:{'|'.join(_WORDS)})s?"
_FLOP: Final = rf"(?:{'|'.join(_SI)}|[kmgtpezy]) ?(?:flops?|f(?:lop)?s?(?: ?/ ?s)? days?)"
_BRACKETED: Final = rf"[(\[] ?(?:in )?(?P<unit>{_WORD}|{_FLOP}|[kmbgt]|(?:[x×] ?)?(?:1e\+?|10\^)\d{{1,2}})"
_HEADINGS: Final = (  # outside of brackets a letter is a unit only behind what can be counted
    re.compile(rf"(?P<name>.+?) ?{_BRACKETED}(?: (?:of )?{_NOUNS})? ?[)\]]"),
    re.compile(rf"(?P<name>.+?) (?:in )?(?P<unit>{_WORD}|{_FLOP})"),
    re.compile(rf"(?P<unit>{_WORD}) (?:of )?(?P<name>.+)"),
    re.compile(rf"(?P<name>(?:.+ )?{_NOUNS}) (?P<unit>[kmbt])"),
)


@cache
def read_heading(heading: str) -> tuple[str, Decimal | None]:
    """A heading in lower case with spaces, without its unit, and the factor of its numbers, if any."""
    plain = re.sub(r"[\s_-]+", " ", heading).strip().lower()
    found = next((match for each in _HEADINGS if (match := each.fullmatch(plain))), None)
    if found is None:
        return plain, None
    unit, of_day = found["unit"], _DAY_S if "day" in found["unit"] else 1
    digits, prefix = re.search(r"\d+$", unit), re.match("|".join(_POWERS), unit)
    power = int(digits[0]) if digits else _POWERS[prefix[0]] if prefix else 0
    return found["name"], Decimal(of_day).scaleb(power)


def shown(times: Decimal) -> str:
    """A factor as people write it: 1e9, 8.64e19, 0.01."""
    power = times.normalize().as_tuple()
    is_long = len(power.digits) <= 3 and int(power.exponent) > 2
    return f"{times.normalize():e}".replace("e+", "e") if is_long else f"{times:f}"
