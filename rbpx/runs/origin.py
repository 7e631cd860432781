"""Writes out the SQL query behind a figure, with its parameters as literals, for a user to reproduce the numbers."""

import re
from collections.abc import Sequence

from rbpx.display.chart.figure import Origin
from rbpx.runs.group import Group
from rbpx.store.relations import read_sql

_Literal = str | float | Sequence[str] | Sequence[int]


def spelled(name: str, **parameters: _Literal) -> str:
    """The text of a query without its header, each `$parameter` replaced by an SQL literal."""
    body = "\n".join(line for line in read_sql(name).splitlines() if not line.startswith("--"))
    return re.sub(r"\$(\w+)", lambda match: _literal(parameters[match[1]]), body).strip()


def from_shares(group: Group, ks: Sequence[int]) -> Origin:
    """The query for the values of the runs of a group at some k."""
    first, ties = group.first, group.ties.value
    sql = spelled("shares", run_ids=group.run_ids, family=first.family, dataset=first.dataset, k=list(ks), ties=ties)
    return Origin(sql, tuple(group.run_ids))


def from_fits(fit_ids: Sequence[str], *groups: Group) -> Origin:
    """The query for fitted laws."""
    run_ids = sorted({run_id for group in groups for run_id in group.run_ids})
    return Origin(spelled("laws", fit_ids=fit_ids), tuple(run_ids))


def _literal(value: _Literal) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int | float):
        return repr(value)
    return f"[{', '.join(_literal(each) for each in value)}]"
