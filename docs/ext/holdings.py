"""What the store holds, from the code: relations and columns, laws, distributions, statuses."""

from collections.abc import Mapping
from typing import Any

from ext import meanings
from ext.markdown import name, plain
from rbpx.laws.names import QUANTITIES, Method
from rbpx.laws.power.offset import EQUATIONS
from rbpx.laws.quantity import quantity
from rbpx.laws.ranks.family import FAMILIES
from rbpx.status import Status
from rbpx.store.schema import COLUMNS
from tests.support.raised import RAISED


def relations() -> str:
    """A section for each relation; a column is explained where it first stands, later ones name it."""
    parts, known = [], set()
    for relation, meaning in meanings.RELATIONS.items():
        columns: Any = COLUMNS[relation]
        lines = [f"- {name(c.name)}: {plain(meanings.COLUMNS[c.name])}" for c in columns if c.name not in known]
        again = [name(c.name) for c in columns if c.name in known]
        parts.append(f"## {relation}\n\n{plain(meaning)}\n\n" + "\n".join(lines) + "\n")
        parts += [f"As above: {', '.join(again)}.\n"] if again else []
        known |= {c.name for c in columns}
    return "\n".join(parts)


def laws() -> str:
    """Names of laws in `fits`, and the methods that fit them."""
    own = {law: quantity(law) for law in QUANTITIES}
    known = meanings.LAWS | {law: f"{q.equation}; {q.source}" for law, q in own.items() if q is not None}
    methods = {method.value: EQUATIONS[method] for method in Method}
    return f"{_list(known)}\n\n## Methods\n\n{_list(methods)}"


def distributions() -> str:
    """The distributions that `ranks` fits."""
    return _list({family.name: family.equation for family in FAMILIES.values()})


def statuses() -> str:
    """Each status with the word of tables, where that is not its name, what to do, and points that raise it."""
    names = {status: status.value.replace("_", " ") for status in Status}
    words = {status: "" if status.label == names[status] else f" ({status.label})" for status in Status}
    return "\n".join(
        f"- {name(status.value)}{words[status]}: {plain(status.remedy)} *{plain(RAISED[status].says)}*"
        for status in Status
    )


def _list(meant: Mapping[str, str]) -> str:
    return "\n".join(f"- {name(each)}: {plain(text)}" for each, text in meant.items())
