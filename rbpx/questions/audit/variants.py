"""Compares the ways in which one family was measured on one text, from the store alone.

A way is the runs of one family, text, protocol, window, BOS and dtype under one tie rule. Ways score or rank tokens
differently but use the same documents, so documents are resampled together.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.errors import UntoldRanksError
from rbpx.laws.intervals.estimate import Recipe, estimate
from rbpx.laws.names import Method
from rbpx.questions.audit.analysis import DEFAULT_K, LAWS, compare
from rbpx.runs.documents import with_documents
from rbpx.runs.fits import fit_points
from rbpx.runs.group import ALIKE, Group
from rbpx.runs.points.sizes import Evidence, size_points, weigh_group
from rbpx.runs.shifts import places
from rbpx.status import Status
from rbpx.store.store import Record
from rbpx.ties import Ties, rule_of

COLUMNS: Final = tuple(
    name for name in ALIKE if name not in ("source", "family", "dataset", "text_hash", "revision", "variant")
)
_PLAIN: Final = {"protocol": "paper", "dtype": "float32", "bos": "tokenizer", "padding": "counted"}  # the reference

_RankedWay = tuple[Group, Sequence[Evidence]]
"""The runs of a way under its tie rule, and the curves of each run."""

Way = tuple[dict[str, Any], list[Record]]
"""The settings in which a way differs from the reference, with its tie rule, and its differences from the reference in
RBP at each k (shares) and cross-entropy (nats) of the largest common size, then in the exponents of the laws from 3
sizes on. For the reference: its own values."""


def compare_ways(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request
) -> Iterator[tuple[Group, list[Way]]]:
    """Compares the ways of each family and text under every tie rule; the reference, under the rule asked, is first."""

    def text(group: Group) -> tuple[str, ...]:
        return tuple(str(getattr(group.first, name)) for name in ("family", "dataset", "text_hash", "revision"))

    for _, alike in groupby(sorted(groups, key=text), key=text):
        ways = [with_documents(connection, group, tests_order=False) for group in alike]
        first = max(ways, key=_reference_key)
        others = sorted((way for way in ways if way is not first), key=lambda way: len(_differing(first, way)))
        k_grid = request.k.grid(min(way.vocab_size for way in ways), DEFAULT_K)
        asked_for = request.ties or rule_of(first.first.protocol)
        rules = sorted(Ties, key=lambda rule: rule is not asked_for)
        ranked = list[_RankedWay]()
        for way in (replace(of, ties=rule) for of in (first, *others) for rule in rules):
            with suppress(UntoldRanksError):  # an engine with another rule
                ranked.append((way, weigh_group(connection, way, request, k_grid, LAWS)))
        if ranked:
            found = (_way(ranked[0], way, request, k_grid) for way in ranked[1:])
            yield ranked[0][0], [_reference(ranked[0], request, k_grid), *(way for way in found if way is not None)]


def _reference_key(group: Group) -> tuple[Any, ...]:
    """Sort key, greatest for the reference: the paper's protocol, float32, the tokenizer's BOS, the longest window."""
    first = group.first
    return (*(getattr(first, name) == value for name, value in _PLAIN.items()), first.window or 0, len(group.runs))


def _values(group: Group) -> dict[str, Any]:
    return {name: getattr(group.first, name) for name in COLUMNS} | {"ties": group.ties.value}


def _differing(reference: Group, group: Group) -> dict[str, Any]:
    known = _values(reference)
    return {name: value for name, value in _values(group).items() if value != known[name]}


def _reference(side: _RankedWay, request: Request, k_grid: Sequence[int]) -> Way:
    (group, evidence), rows = side, list[Record]()
    for (law, k), at in places(k_grid).items():
        value, replicate_B = float(evidence[-1].measured[law][at]), evidence[-1].replicates[law].T[at].T
        number = estimate(value, replicate_B, group.n_effective, Recipe.expanded)
        rows.append(_of_one(group) | {"quantity": law, "k": k, **number.record()})
    for points in size_points(group, evidence, request, k_grid, LAWS) if group.n_sizes >= 3 else ():
        fit, law = fit_points(points, Method.ols).fit, f"alpha_{points.law}"
        rows.append(_of_all(group) | {"quantity": law, "k": points.k, **fit.alpha.record(), "status": fit.status})
    return _values(group), [{"kind": "reference"} | row for row in rows if row["k"] in (None, *k_grid)]


def _way(reference: _RankedWay, side: _RankedWay, request: Request, k_grid: Sequence[int]) -> Way | None:
    """Differences of one way from the reference; None without a common size."""
    both = {run.training for run in reference[0].runs} & {run.training for run in side[0].runs}
    if not both:
        return None
    (_, before), (group, after) = (
        (replace(of, runs=tuple(run for run in of.runs if run.training in both)),
         [each for run, each in zip(of.runs, evidence, strict=True) if run.training in both])
        for of, evidence in (reference, side)
    )  # fmt: skip
    shifts, laws = compare(group, before, after, request, k_grid)
    rows = [_of_one(group) | {"quantity": law, "k": k, **shift.difference.record(), "of": shift.after}
            for (law, k), shift in shifts[-1].items()]  # fmt: skip
    for law in laws:
        of_law = {"of": law.after.alpha.value, "status": law.difference.status}
        rows.append(
            _of_all(group) | {"quantity": f"alpha_{law.law}", "k": law.k, **law.difference.alpha.record()} | of_law
        )
    rows = [{"kind": "difference"} | row for row in rows if row["k"] in (None, *k_grid)]
    return _differing(reference[0], group), rows


def _of_one(group: Group) -> Record:
    """Columns about the largest size; none is stored."""
    largest, status = group.runs[-1], Status.ok.value
    about = {"size": largest.size, "n_points": 1, "n_tokens": largest.n_tokens, "run_ids": [*largest.run_ids]}
    return group.names() | about | {"status": status}


def _of_all(group: Group) -> Record:
    return group.names() | {"size": None, "n_points": len(group.runs), "n_tokens": None, "run_ids": group.run_ids}
