"""Reads units in the headings of users' tables: `params (M)` counts millions of parameters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

_WORDS: Final = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LETTERS: Final = {"k": 3, "m": 6, "b": 9, "g": 9, "t": 12}
_SI: Final = {"kilo": 3, "mega": 6, "giga": 9, "tera": 12, "peta": 15, "exa": 18, "zetta": 21, "yotta": 24}
_POWERS: Final = {**_WORDS, **_LETTERS, **_SI, "p": 15, "e": 18, "z": 21, "y": 24}
_DAY_S: Final = 86_400  # of a PF-day, 1e15 operations a second for a day
_COUNT: Final = r"(?:(?:n|num|number of|#) ?)?"
_OF: Final = r"(?:val(?:id(?:ation)?)?|eval(?:uation)?|test)[ /.]"
_NAMES: Final = {  # field -> headings that people write for it, the preferred first; `size` counts with a unit alone
    "non_embedding_params": (rf"{_COUNT}(?:non ?embedding )?param(?:eter)?s|(?:model )?size",),
    "active_params": (r"activ(?:e|ated) param(?:eter)?s",),
    "total_params": (r"total param(?:eter)?s",),
    "training_tokens": (
        rf"{_COUNT}(?:(?:pre ?)?train(?:ing|ed)? )?(?:tokens|data(?:set)? size)",
        "num input tokens seen",
    ),
    "training_flops": (r"(?:(?:pre ?)?train(?:ing)? )?(?:flops?|compute)",),
    "cross_entropy_nats": (rf"(?!test){_OF}loss", r"test[ /.]loss", r"(?:final )?loss", r"train(?:ing)?[ /.]loss"),
    "perplexity": (rf"(?:{_OF})?(?:ppl|perplexity)",),
    "bits_per_byte": (rf"(?:{_OF})?bpb",),
}
_OF_UNIT: Final = ("model size", "size", "data size", "dataset size")
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


class Unit(NamedTuple):
    """A heading: its name, in lower case with spaces, and the factor of its numbers."""

    name: str
    times: Decimal


def unit_of(heading: str) -> Unit | None:
    """The unit in a heading; None without one."""
    plain = _spaced(heading)
    found = next((match for each in _HEADINGS if (match := each.fullmatch(plain))), None)
    if found is None:
        return None
    unit, of_day = found["unit"], _DAY_S if "day" in found["unit"] else 1
    digits, prefix = re.search(r"\d+$", unit), re.match("|".join(_POWERS), unit)
    power = int(digits[0]) if digits else _POWERS[prefix[0]] if prefix else 0
    return Unit(found["name"], Decimal(of_day).scaleb(power))


def spoken_headings(headings: Iterable[str], aliases: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Field -> the headings that name it as people write it, with a unit or without; the preferred ones alone."""
    ranked: dict[str, list[tuple[int, str]]] = {}
    for heading in headings:
        unit = unit_of(heading)
        name = _spaced(heading) if unit is None else unit.name
        for field, names in aliases.items():
            patterns = () if unit is None and name in _OF_UNIT else _NAMES.get(field, ())
            rank = next((at for at, pattern in enumerate(patterns) if re.fullmatch(pattern, name)), None)
            if rank is not None or (unit is not None and name.replace(" ", "_") in names):
                ranked.setdefault(field, []).append((rank or 0, heading))
    return {field: [name for at, name in of if at == min(of)[0]] for field in aliases if (of := ranked.get(field))}


def _spaced(heading: str) -> str:
    return re.sub(r"[\s_-]+", " ", heading).strip().lower()


def shown(times: Decimal) -> str:
    """A factor as people write it: 1e9, 8.64e19, 0.01."""
    power = times.normalize().as_tuple()
    is_long = len(power.digits) <= 3 and int(power.exponent) > 2
    return f"{times.normalize():e}".replace("e+", "e") if is_long else f"{times:f}"
