"""Writes out the SQL query behind a figure, with its parameters as literals."""

import re
from collections.abc import Sequence

from rbpx.display.chart.figure import Origin
from rbpx.display.vocabulary import AXES
from rbpx.errors import number_of
from rbpx.laws.names import Axis
from rbpx.runs.group import Group
from rbpx.store.relations import literal, read_sql


def spelled(name: str, **parameters: str | Sequence[str] | Sequence[int]) -> str:
    """The text of a query without its header, each `$parameter` replaced by an SQL literal."""
    body = "\n".join(line for line in read_sql(name).splitlines() if not line.startswith("--"))
    return re.sub(r"\$(\w+)", lambda match: literal(parameters[match[1]]), body).strip()


def from_shares(group: Group, ks: Sequence[int]) -> Origin:
    """The query for the values of the runs of a group at some k."""
    first, ties = group.first, group.ties.value
    sql = spelled("shares", run_ids=group.run_ids, family=first.family, dataset=first.dataset, k=list(ks), ties=ties)
    return Origin(sql, tuple(group.run_ids))


def from_fits(fit_ids: Sequence[str], *groups: Group) -> Origin:
    """The query for fitted laws."""
    run_ids = sorted({run_id for group in groups for run_id in group.run_ids})
    return Origin(spelled("laws", fit_ids=fit_ids), tuple(run_ids))


def describe_runs(group: Group) -> str:
    """Describes what was measured in one line: models, tokens, documents, protocol and precision."""
    runs, first = group.runs, group.first
    sizes = list(dict.fromkeys(run.label for run in runs))
    count = number_of(len(runs), AXES[group.axis].point)
    if group.axis is Axis.S and len(sizes) < len(runs):
        count = f"{number_of(len(runs), 'run')} of {number_of(len(sizes), 'size')}"
    named = f"{count}, {' to '.join(dict.fromkeys((sizes[0], sizes[-1])))}"
    if not group.is_measured:
        return f"{named}; imported from {first.source}, ties {group.ties.value}"
    tokens = dict.fromkeys(f"{run.n_tokens or 0:,}" for run in sorted(runs, key=lambda run: run.n_tokens or 0))
    skipped = f", {first.n_skipped:,} without a scored token" if first.n_skipped else ""
    return (
        f"{named}; {' to '.join([*tokens][:: max(len(tokens) - 1, 1)])} scored tokens a model, "
        f"{number_of(first.n_documents or 0, 'document')}{skipped}; {first.protocol} protocol, {first.dtype}, "
        f"ties {group.ties.value}, text {str(first.text_hash)[:8]}"
    )
