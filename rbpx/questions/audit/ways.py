"""Compares the ways in which one family was measured on one text, from the store alone.

A way is a group of runs with the same family, text, protocol, window, BOS and dtype, under one tie rule. Ways differ in
the tokens that they score and in how they rank these, never in the documents, so documents are resampled together.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.errors import UntoldRanksError
from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.names import Method
from rbpx.questions.audit.analysis import DEFAULT_K, LAWS, compare
from rbpx.runs.documents import with_documents
from rbpx.runs.fits import fit_points
from rbpx.runs.group import ALIKE, Group
from rbpx.runs.points.sizes import Evidence, size_points, weigh_group
from rbpx.runs.shifts import LawAtK, places
from rbpx.status import Status
from rbpx.store.store import Record
from rbpx.ties import Ties, rule_of

COLUMNS: Final = tuple(
    name for name in ALIKE if name not in ("source", "family", "dataset", "text_hash", "revision", "variant")
)
_PLAIN: Final = {"protocol": "paper", "dtype": "float32", "bos": "tokenizer", "padding": "counted"}  # the reference

_Side = tuple[Group, Sequence[Evidence]]
"""The runs of a way, with its tie rule, and the curves of each."""


@dataclass(frozen=True)
class Number:
    """What a way gives, or how far that is from the reference.

    Attributes:
        key: RBP at some k (a share), or cross-entropy (nats).
        of_law: whether it is the exponent of the law through all sizes, not the value of the largest.
        of: the largest size, or how many sizes there are.
        value: the number.
        absolute: what the way itself gives, where the number is a difference.
        status: that of the law.
    """

    key: LawAtK
    of_law: bool
    of: str
    value: Estimate
    absolute: float | None = field(default=None, compare=False)
    status: Status = Status.ok

    @property
    def is_same(self) -> bool:
        """Whether no document differs."""
        return self.value.value == 0 and self.value.lo is None and self.status in (Status.ok, Status.no_variation)


@dataclass(frozen=True, eq=False)
class Way:
    """Another way, at the sizes that it has in common with the reference.

    Attributes:
        group: its runs, with its tie rule.
        differs: its values in the columns where it differs from the reference, and in `ties`.
        numbers: its differences from the reference: of the largest size, then of the laws if there are 3 sizes.
    """

    group: Group
    differs: dict[str, Any]
    numbers: tuple[Number, ...]


@dataclass(frozen=True, eq=False)
class Ways:
    """All ways in which one family was measured on one text; `group` is the reference, `numbers` are its numbers."""

    group: Group
    numbers: tuple[Number, ...]
    ways: tuple[Way, ...]


def compare_ways(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Iterator[Ways]:
    """Compare the ways of each family and text under every tie rule; the reference has the requested one."""

    def text(group: Group) -> tuple[str, ...]:
        return tuple(str(getattr(group.first, name)) for name in ("family", "dataset", "text_hash", "revision"))

    for _, alike in groupby(sorted(groups, key=text), key=text):
        ways = [with_documents(connection, group, tests_order=False) for group in alike]
        first = max(ways, key=_plainness)
        others = sorted((way for way in ways if way is not first), key=lambda way: len(_apart(first, way)))
        k_grid = request.k.grid(min(way.vocab_size for way in ways), DEFAULT_K)
        asked_for = request.ties or rule_of(first.first.protocol)
        rules = sorted(Ties, key=lambda rule: rule is not asked_for)
        told = list[_Side]()
        for way in (replace(of, ties=rule) for of in (first, *others) for rule in rules):
            with suppress(UntoldRanksError):  # of an engine that has another rule
                told.append((way, weigh_group(connection, way, request, k_grid, LAWS)))
        for reference in told[:1]:
            found = tuple(way for side in told[1:] for way in _way(reference, side, request, k_grid))
            yield Ways(reference[0], tuple(_reference(reference, request, k_grid)), found)


def _plainness(group: Group) -> tuple[Any, ...]:
    """The reference is the greatest: the paper's protocol, float32, the tokenizer's BOS, the longest window."""
    first = group.first
    return (*(getattr(first, name) == value for name, value in _PLAIN.items()), first.window or 0, len(group.runs))


def _apart(reference: Group, group: Group) -> dict[str, Any]:
    """The values of a group in the columns where it differs from the reference."""
    values = {name: getattr(group.first, name) for name in COLUMNS}
    return {name: value for name, value in values.items() if value != getattr(reference.first, name)}


def _reference(side: _Side, request: Request, k_grid: Sequence[int]) -> Iterator[Number]:
    """What the reference itself gives."""
    group, evidence = side
    for (law, k), at in places(k_grid).items():
        value, resampled_B = float(evidence[-1].measured[law][at]), evidence[-1].resampled[law].T[at].T
        found = estimate(value, resampled_B, group.n_resampled, Recipe.expanded)
        yield Number((law, k), False, group.runs[-1].size, found)
    if group.n_sizes >= 3:
        for points in size_points(group, evidence, request, k_grid, LAWS):
            if points.k in (None, *k_grid):
                fit = fit_points(points, Method.ols).fit
                yield Number((points.law, points.k), True, f"{len(group.runs)} sizes", fit.exponent, status=fit.status)


def _way(reference: _Side, side: _Side, request: Request, k_grid: Sequence[int]) -> Iterator[Way]:
    """One way against the reference; none where they have no size in common."""
    assert side[0].n_documents == reference[0].n_documents, "one text has the same documents in every way"
    both = {run.training for run in reference[0].runs} & {run.training for run in side[0].runs}
    if not both:
        return
    (_, before), (group, after) = (
        (replace(of, runs=tuple(run for run in of.runs if run.training in both)),
         [each for run, each in zip(of.runs, evidence, strict=True) if run.training in both])
        for of, evidence in (reference, side)
    )  # fmt: skip
    shifts, laws = compare(group, before, after, request, k_grid)
    sizes = f"{len(group.runs)} sizes"
    numbers = [Number(key, False, group.runs[-1].size, of.difference, of.after) for key, of in shifts[-1].items()]
    numbers += [
        Number((law.law, law.k), True, sizes, law.difference.exponent, law.after.alpha, law.difference.status)
        for law in laws
        if law.k in (None, *k_grid)
    ]
    ties = {} if group.ties is reference[0].ties else {"ties": group.ties.value}
    yield Way(group, _apart(reference[0], group) | ties, tuple(numbers))


def records(ways: Ways) -> list[Record]:
    """Rows for programs, one for each number of each way, the reference first; none is stored."""
    rows = _rows("reference", ways.group, ways.numbers)
    return rows + [row for way in ways.ways for row in _rows("difference", way.group, way.numbers)]


def _rows(kind: str, group: Group, numbers: Sequence[Number]) -> list[Record]:
    largest, rows = group.runs[-1], []
    for each in numbers:
        law, k = each.key
        row: Record = {"kind": kind, **group.names()}
        if each.of_law:
            row |= {"size": None, "n_points": len(group.runs), "n_tokens": None, "run_ids": group.run_ids}
        else:
            row |= {"size": largest.size, "n_points": 1, "n_tokens": largest.n_tokens, "run_ids": [*largest.run_ids]}
        row |= {"quantity": f"alpha_{law}" if each.of_law else law, "k": k, **vars(each.value)}
        row |= {"of": each.absolute} if kind == "difference" else {}
        rows.append(row | {"status": each.status.value})
    return rows
