"""Effects of choices (verb choices): differences between the ways in which one family was measured on one text.

A way is a group of runs with the same family, text, protocol, window, BOS and dtype, under one tie rule. Ways differ in
which tokens they score and in how these are ranked, never in the documents, so documents are resampled together.
Shapes: B resamples.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.groups.evidence import Evidence
from rbpx.groups.fits import fit_points
from rbpx.groups.group import ALIKE, Group, Run
from rbpx.groups.points import Points, size_points, weigh_group
from rbpx.groups.shifts import Key, LawShift, Shift, places, shift_law, shifts_of_run
from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.interval import Estimate
from rbpx.laws.names import Method
from rbpx.laws.power import PowerLawFit
from rbpx.store.store import Record, Store
from rbpx.ties import Ties, rule_of

DEFAULT_K: Final = (1, 10, 100)
COLUMNS: Final = tuple(
    name for name in ALIKE if name not in ("source", "family", "dataset", "text_hash", "revision", "variant")
)
_LAWS: Final = ("rbp", "cross_entropy")
_PLAIN: Final = {"protocol": "paper", "dtype": "float32", "bos": "tokenizer", "padding": "counted"}  # of the reference


@dataclass(frozen=True, eq=False)
class Reference:
    """The way that the others are compared with.

    Attributes:
        run: of the largest size.
        values: of that run, rbp (shares) and cross_entropy (nats).
        laws: of all sizes; empty for fewer than 3.
    """

    run: Run
    values: dict[Key, Estimate]
    laws: dict[Key, PowerLawFit]


@dataclass(frozen=True, eq=False)
class Way:
    """Another way, at the sizes that both have.

    Attributes:
        group: its runs, with its tie rule.
        differs: the columns in which it differs from the reference, and `ties`, with its values.
        run: of the largest size that both have.
        shifts: from the reference, of that size.
        laws: shifts of the laws; empty for fewer than 3 sizes.
    """

    group: Group
    differs: dict[str, Any]
    run: Run
    shifts: dict[Key, Shift]
    laws: dict[Key, LawShift]


@dataclass(frozen=True, eq=False)
class Choices:
    """All ways in which one family was measured on one text; `group` is the reference."""

    group: Group
    reference: Reference
    ways: tuple[Way, ...]
    k_grid: tuple[int, ...]


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Choices]:
    """Compare the ways of each family and text; the reference has the requested tie rule, its ways have all."""
    measured = sorted((group for group in groups if group.is_measured), key=_text)
    return [_compare(connection, list(ways), request) for _, ways in groupby(measured, key=_text)]


def _text(group: Group) -> tuple[str, ...]:
    """What all ways have in common."""
    first = group.first
    return tuple(str(name) for name in (first.family, first.dataset, first.text_hash, first.revision))


def _compare(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Choices:
    first = max(groups, key=_plainness)
    others = sorted((group for group in groups if group is not first), key=lambda group: len(_apart(first, group)))
    k_grid = request.k_grid(min(group.vocab_size for group in groups), DEFAULT_K)
    rule_asked_for = request.ties or rule_of(first.first.protocol)
    sides = [
        _Side(way, weigh_group(connection, way, request, k_grid, _LAWS))
        for group in (first, *others)
        for way in (replace(group, ties=rule) for rule in sorted(Ties, key=lambda rule: rule is not rule_asked_for))
    ]
    ways = [way for side in sides[1:] for way in _way(sides[0], side, request, k_grid)]
    return Choices(sides[0].group, _reference(sides[0], request, k_grid), tuple(ways), tuple(k_grid))


@dataclass(frozen=True, eq=False)
class _Side:
    """One way, and the curves of each of its runs."""

    group: Group
    evidence: Sequence[Evidence]

    def laws(self, request: Request, k_grid: Sequence[int]) -> dict[Key, Points]:
        """The points of each law at the k that every way has."""
        points = size_points(self.group, self.evidence, request, k_grid, _LAWS)
        return {(each.law, each.k): each for each in points if each.k in (None, *k_grid)}

    def of_trainings(self, trainings: Container[Any]) -> "_Side":
        """At some sizes only."""
        kept = [at for at, run in enumerate(self.group.runs) if run.training in trainings]
        runs = tuple(self.group.runs[at] for at in kept)
        return _Side(replace(self.group, runs=runs), [self.evidence[at] for at in kept])


def _plainness(group: Group) -> tuple[Any, ...]:
    """What makes a way the reference: the paper's protocol, float32, the tokenizer's BOS, the longest window."""
    first = group.first
    return (*(getattr(first, name) == value for name, value in _PLAIN.items()), first.window or 0, len(group.runs))


def _apart(reference: Group, group: Group) -> dict[str, Any]:
    """The columns in which a group differs from the reference, with its values."""
    pairs = [(name, getattr(group.first, name), getattr(reference.first, name)) for name in COLUMNS]
    return {name: value for name, value, other in pairs if value != other}


def _reference(side: _Side, request: Request, k_grid: Sequence[int]) -> Reference:
    group, largest = side.group, side.evidence[-1]
    values = {
        key: estimate(
            float(largest.measured[key[0]][at]), largest.resampled[key[0]].T[at].T, group.n_resampled, Recipe.expanded
        )
        for key, at in places(k_grid).items()
    }
    points = side.laws(request, k_grid) if group.n_sizes >= 3 else {}
    return Reference(group.runs[-1], values, {key: fit_points(of, Method.ols).fit for key, of in points.items()})


def _way(reference: _Side, way: _Side, request: Request, k_grid: Sequence[int]) -> list[Way]:
    """One way against the reference; none where they have no size in common."""
    n = way.group.n_resampled
    assert way.group.n_documents == reference.group.n_documents, "one text has the same documents in every way"
    both = {run.training for run in reference.group.runs} & {run.training for run in way.group.runs}
    if not both:
        return []
    before, after = reference.of_trainings(both), way.of_trainings(both)
    shifts = shifts_of_run(before.evidence[-1], after.evidence[-1], k_grid, n)
    laws: dict[Key, LawShift] = {}
    if len({S for S, _ in both}) >= 3:
        points = after.laws(request, k_grid)
        laws = {key: shift_law(before.group, of, points[key]) for key, of in before.laws(request, k_grid).items()}
    differs = _apart(reference.group, way.group)
    if way.group.ties is not reference.group.ties:
        differs["ties"] = way.group.ties.value
    return [Way(after.group, differs, after.group.runs[-1], shifts, laws)]


def keep(store: Store, choices: Choices) -> list[Record]:
    """Rows for programs, one for each quantity of each way, the reference first; differences are not stored."""
    group, reference = choices.group, choices.reference
    about, of_laws = _about("reference", group, reference.run), _about("reference", group)
    rows = [_row(about, key, value, status="ok") for key, value in reference.values.items()]
    rows += [_row(of_laws, key, fit.exponent, status=fit.status.value) for key, fit in reference.laws.items()]
    for way in choices.ways:
        about, of_laws = _about("difference", way.group, way.run), _about("difference", way.group)
        rows += [_row(about, key, of.difference, of=of.after, status="ok") for key, of in way.shifts.items()]
        for key, law in way.laws.items():
            fit = law.difference
            rows.append(_row(of_laws, key, fit.exponent, of=law.after.alpha, status=fit.status.value))
    return rows


def _about(kind: str, group: Group, run: Run | None = None) -> Record:
    """What rows say of the largest size, or (without a run) of the laws through all."""
    names: Record = {"kind": kind, **group.names()}
    if run is None:
        return names | {"size": None, "n_points": len(group.runs), "n_tokens": None, "run_ids": group.run_ids}
    return names | {"size": run.size, "n_points": 1, "n_tokens": run.n_tokens, "run_ids": list(run.run_ids)}


def _row(about: Record, key: Key, value: Estimate, **more: Any) -> Record:
    law, k = key
    return {**about, "quantity": law if about["size"] else f"alpha_{law}", "k": k, **vars(value), **more}
