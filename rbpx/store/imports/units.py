"""Reads units in the headings of users' tables: `params (M)` counts millions of parameters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

_POWERS: Final = {"k": 3, "thousand": 3, "m": 6, "million": 6, "b": 9, "g": 9, "billion": 9, "t": 12, "trillion": 12}
_COUNT: Final = r"(?:(?:n|num|number of|#) ?)?"
_NAMES: Final = {  # field -> names of its heading, besides those without a unit
    "non_embedding_params": rf"{_COUNT}(?:non ?embedding )?param(?:eter)?s|(?:model )?size",
    "active_params": r"activ(?:e|ated) param(?:eter)?s",
    "total_params": r"total param(?:eter)?s",
    "training_tokens": rf"{_COUNT}(?:(?:pre ?)?train(?:ing|ed)? )?(?:tokens|data(?:set)? size)",
    "training_flops": r"(?:(?:pre ?)?train(?:ing)? )?(?:flops?|compute)",
}
_WORD: Final = r"(?:thousand|million|billion|trillion)"
_UNIT: Final = rf"(?:[x×] ?)?(?:1e\+?(?P<e>\d{{1,2}})|10\^(?P<p>\d{{1,2}})|(?P<word>{_WORD})s?|(?P<letter>[kmgbt]))"
_NOUN: Final = r"(?: (?:tokens|param(?:eter)?s|flops?))?"
_HEADING: Final = re.compile(rf"(?P<name>.+?)(?: ?[(\[] ?(?:in )?{_UNIT}{_NOUN} ?[)\]]| (?:in )?(?P<last>{_WORD})s)")


class Unit(NamedTuple):
    """A heading: its name, in lower case with spaces, and the factor of its numbers."""

    name: str
    times: Decimal


def unit_of(heading: str) -> Unit | None:
    """The unit in a heading; None without one."""
    found = _HEADING.fullmatch(re.sub(r"[\s_-]+", " ", heading).strip().lower())
    if found is None:
        return None
    power = found["e"] or found["p"] or _POWERS.get(found["letter"] or found["word"] or found["last"])
    return None if power is None else Unit(found["name"], Decimal(1).scaleb(int(power)))


def headings_with_units(headings: Iterable[str], aliases: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Field -> the headings that name it with a unit."""
    units = {heading: unit.name for heading in headings if (unit := unit_of(heading)) is not None}
    found: dict[str, list[str]] = {}
    for heading, name in units.items():
        for field, names in aliases.items():
            if name.replace(" ", "_") in names or re.fullmatch(_NAMES.get(field, "(?!)"), name):
                found.setdefault(field, []).append(heading)
    return found


def shown(times: Decimal) -> str:
    """A factor as people write it: 1e9, 0.01."""
    power = times.normalize().as_tuple()
    return f"1e{power.exponent}" if power.digits == (1,) and int(power.exponent) > 2 else f"{times:f}"
