"""An SQL query of rbpx with its parameters written out, for a user to reproduce the numbers of a figure."""

import re
from collections.abc import Sequence

from rbpx.store.queries import read_sql

__all__ = ["spelled"]

_Literal = str | int | Sequence[str] | Sequence[int]


def spelled(name: str, **parameters: _Literal) -> str:
    """The text of a query without its header, each `$parameter` written as a literal of SQL."""
    body = "\n".join(line for line in read_sql(name).splitlines() if not line.startswith("--"))
    return re.sub(r"\$(\w+)", lambda match: _literal(parameters[match[1]]), body).strip()


def _literal(value: _Literal) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int):
        return str(value)
    return f"[{', '.join(_literal(each) for each in value)}]"
