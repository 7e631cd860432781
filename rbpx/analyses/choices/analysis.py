"""Effects of choices (verb choices): compares the ways in which one family was measured on one text.

A way is a group of runs with the same family, text, protocol, window, BOS and dtype, under one tie rule. Ways differ in
the tokens that they score and in how they rank these, never in the documents, so documents are resampled together.
Shapes: B resamples.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.groups.fits import fit_points
from rbpx.groups.group import ALIKE, Group
from rbpx.groups.points.sizes import Evidence, Points, size_points, weigh_group
from rbpx.groups.shifts import LawAtK, places, shift_law, shifts_of_run
from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.names import Method
from rbpx.status import Status
from rbpx.store.store import Record, Store
from rbpx.ties import Ties, rule_of

DEFAULT_K: Final = (1, 10, 100)
COLUMNS: Final = tuple(
    name for name in ALIKE if name not in ("source", "family", "dataset", "text_hash", "revision", "variant")
)
_LAWS: Final = ("rbp", "cross_entropy")
_PLAIN: Final = {"protocol": "paper", "dtype": "float32", "bos": "tokenizer", "padding": "counted"}  # the reference


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
class Choices:
    """All ways in which one family was measured on one text; `group` is the reference, `numbers` are its numbers."""

    group: Group
    numbers: tuple[Number, ...]
    ways: tuple[Way, ...]


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Choices]:
    """Compare the ways of each family and text under every tie rule; the reference has the requested one."""

    def text(group: Group) -> tuple[str, ...]:
        first = group.first
        return tuple(str(name) for name in (first.family, first.dataset, first.text_hash, first.revision))

    measured = sorted((group for group in groups if group.is_measured), key=text)
    return [_compare(connection, list(ways), request) for _, ways in groupby(measured, key=text)]


def _compare(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Choices:
    first = max(groups, key=_plainness)
    others = sorted((group for group in groups if group is not first), key=lambda group: len(_apart(first, group)))
    k_grid = request.k.grid(min(group.vocab_size for group in groups), DEFAULT_K)
    rule_asked_for = request.ties or rule_of(first.first.protocol)
    sides = [
        _Side(way, weigh_group(connection, way, request, k_grid, _LAWS))
        for group in (first, *others)
        for way in (replace(group, ties=rule) for rule in sorted(Ties, key=lambda rule: rule is not rule_asked_for))
    ]
    ways = [way for side in sides[1:] for way in _way(sides[0], side, request, k_grid)]
    return Choices(sides[0].group, tuple(_reference(sides[0], request, k_grid)), tuple(ways))


@dataclass(frozen=True, eq=False)
class _Side:
    """One way, and the curves of each of its runs."""

    group: Group
    evidence: Sequence[Evidence]

    def laws(self, request: Request, k_grid: Sequence[int]) -> dict[LawAtK, Points]:
        """The points of each law, at the k that every way has."""
        points = size_points(self.group, self.evidence, request, k_grid, _LAWS)
        return {(each.law, each.k): each for each in points if each.k in (None, *k_grid)}

    def of_trainings(self, trainings: Container[Any]) -> "_Side":
        """The way at these sizes only."""
        kept = [at for at, run in enumerate(self.group.runs) if run.training in trainings]
        runs = tuple(self.group.runs[at] for at in kept)
        return _Side(replace(self.group, runs=runs), [self.evidence[at] for at in kept])


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
    group, largest = side.group, side.evidence[-1]
    for (law, k), at in places(k_grid).items():
        value, resampled_B = float(largest.measured[law][at]), largest.resampled[law].T[at].T
        found = estimate(value, resampled_B, group.n_resampled, Recipe.expanded)
        yield Number((law, k), False, group.runs[-1].size, found)
    if group.n_sizes >= 3:
        for key, points in side.laws(request, k_grid).items():
            fit = fit_points(points, Method.ols).fit
            yield Number(key, True, f"{len(group.runs)} sizes", fit.exponent, status=fit.status)


def _way(reference: _Side, way: _Side, request: Request, k_grid: Sequence[int]) -> list[Way]:
    """One way against the reference; none where they have no size in common."""
    assert way.group.n_documents == reference.group.n_documents, "one text has the same documents in every way"
    both = {run.training for run in reference.group.runs} & {run.training for run in way.group.runs}
    if not both:
        return []
    before, after = reference.of_trainings(both), way.of_trainings(both)
    shifts = shifts_of_run(before.evidence[-1], after.evidence[-1], k_grid, way.group.n_resampled)
    size, sizes = after.group.runs[-1].size, f"{len(after.group.runs)} sizes"
    numbers = [Number(key, False, size, shift.difference, shift.after) for key, shift in shifts.items()]
    if len({S for S, _ in both}) >= 3:
        points = after.laws(request, k_grid)
        for key, of in before.laws(request, k_grid).items():
            law = shift_law(before.group, of, points[key])
            numbers.append(Number(key, True, sizes, law.difference.exponent, law.after.alpha, law.difference.status))
    differs = _apart(reference.group, way.group)
    if way.group.ties is not reference.group.ties:
        differs["ties"] = way.group.ties.value
    return [Way(after.group, differs, tuple(numbers))]


def keep(store: Store, choices: Choices) -> list[Record]:
    """Rows for programs, one for each number of each way, the reference first; none is stored."""
    rows = _rows("reference", choices.group, choices.numbers)
    return rows + [row for way in choices.ways for row in _rows("difference", way.group, way.numbers)]


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
