"""An SQL query of rbpx with its parameters written out, for a user to reproduce the numbers of a figure."""

import re
from collections.abc import Sequence

from rbpx.display.chart.figure import Origin
from rbpx.runs.group import Group
from rbpx.store.relations import read_sql

_Literal = str | float | Sequence[str] | Sequence[int]


def spelled(name: str, **parameters: _Literal) -> str:
    """The text of a query without its header, each `$parameter` written as a literal of SQL."""
    body = "\n".join(line for line in read_sql(name).splitlines() if not line.startswith("--"))
    return re.sub(r"\$(\w+)", lambda match: _literal(parameters[match[1]]), body).strip()


def from_shares(group: Group, ks: Sequence[int]) -> Origin:
    """Where the values of the runs of a group at some k come from."""
    first, ties = group.first, group.ties.value
    sql = spelled("shares", run_ids=group.run_ids, family=first.family, dataset=first.dataset, k=list(ks), ties=ties)
    return Origin(sql, tuple(group.run_ids))


def from_fits(fit_ids: Sequence[str], *groups: Group) -> Origin:
    """Where fitted laws of some groups come from."""
    run_ids = sorted({run_id for group in groups for run_id in group.run_ids})
    return Origin(spelled("laws", fit_ids=fit_ids), tuple(run_ids))


def _literal(value: _Literal) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int | float):
        return repr(value)
    return f"[{', '.join(_literal(each) for each in value)}]"
