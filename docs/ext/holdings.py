"""What the store holds, from the code: relations and columns, laws, distributions, statuses, questions in SQL."""

import re
from collections.abc import Mapping
from typing import Any

from ext import meanings
from ext.markdown import name, plain
from rbpx.config.folders import folder
from rbpx.laws.names import QUANTITIES, Method
from rbpx.laws.power.offset import EQUATIONS
from rbpx.laws.quantity import quantity
from rbpx.laws.ranks.family import FAMILIES
from rbpx.status import Status
from rbpx.store.relations import COLUMNS
from tests.support.raised import RAISED


def relations() -> str:
    """A section for each relation; a column is explained where it first stands, later ones name it."""
    parts, known = [], set()
    for relation, meaning in meanings.RELATIONS.items():
        columns: Any = COLUMNS[relation]
        lines = [_column(c.name, c.type) for c in columns if c.name not in known]
        again = [name(c.name) for c in columns if c.name in known]
        parts.append(f"## {relation}\n\n{plain(meaning)}\n\n" + "\n".join(lines) + "\n")
        parts += [f"As above: {', '.join(again)}.\n"] if again else []
        known |= {c.name for c in columns}
    return "\n".join(parts)


def _column(column: str, kind: Any) -> str:
    return f"- {name(column)} ({plain(kind)}): {plain(meanings.COLUMNS[column])}"


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
    """Each status with the word of tables, where that is not its name, what to do about it, and what raises it."""
    names = {status: status.value.replace("_", " ") for status in Status}
    words = {status: "" if status.label == names[status] else f" ({status.label})" for status in Status}
    return "\n".join(
        f"- {name(status.value)}{words[status]}: {plain(status.remedy)} *Raised by* {plain(RAISED[status].says)}."
        for status in Status
    )


def questions() -> str:
    """Each file of SQL with what its header says that it asks; parameters and columns stand in the file."""
    project = folder("conf").parent
    lines = []
    for path in sorted((project / "rbpx").rglob("*.sql"), key=lambda path: path.stem):
        asked = re.match(r"(?:-- (?!\$|returns:).*\n)+", path.read_text(encoding="utf-8"))
        meant = "" if asked is None else re.sub(r"^-- ", "", asked[0], flags=re.MULTILINE)
        lines.append(f"- [{name(path.stem)}](../../{path.relative_to(project).as_posix()}): {plain(meant)}")
    return "\n".join(lines)


def _list(meant: Mapping[str, str]) -> str:
    return "\n".join(f"- {name(each)}: {plain(text)}" for each, text in meant.items())
