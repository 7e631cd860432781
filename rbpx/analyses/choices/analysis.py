"""Effects of choices (verb choices): differences between the ways in which one family was measured on one text.

A way is a group of runs with the same family, text, protocol, window, BOS and dtype, under one tie rule. Ways differ in
which tokens they score and in how these are ranked, never in the documents, so documents are resampled together.
Shapes: B resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import duckdb

from rbpx.config.options import Dtype
from rbpx.config.request import Request
from rbpx.groups.evidence import Evidence
from rbpx.groups.fits import fit_points
from rbpx.groups.group import ALIKE, Group, Run
from rbpx.groups.points import size_points, weigh_group
from rbpx.groups.shifts import LawShift, Shift, shift_law, shift_run
from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.interval import Estimate
from rbpx.laws.names import Method
from rbpx.laws.power_fit import PowerLawFit
from rbpx.store.store import Record, Store
from rbpx.ties import Ties, rule_of

DEFAULT_K: Final = (1, 10, 100)
COLUMNS: Final = tuple(
    name for name in ALIKE if name not in ("source", "family", "dataset", "text_hash", "revision", "variant")
)
_LAWS: Final = ("rbp", "cross_entropy")
_PLAIN: Final = {
    "protocol": "paper",
    "dtype": Dtype.float32.value,
    "bos": "tokenizer",
    "padding": "counted",
}  # of the reference

Key = tuple[str, int | None]
"""A law and its k."""


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
    k_grid = request.k.grid(min(run.vocab_size or 0 for group in groups for run in group.runs), DEFAULT_K)
    rule_asked_for = request.ties or rule_of(first.first.protocol)
    reference = replace(first, ties=rule_asked_for)
    evidence = weigh_group(connection, reference, request, k_grid, _LAWS)
    ways = []
    for group in [first, *others]:
        for rule in [rule_asked_for, *(other for other in Ties if other is not rule_asked_for)]:
            if group is first and rule is rule_asked_for:
                continue
            way = replace(group, ties=rule)
            way_evidence = weigh_group(connection, way, request, k_grid, _LAWS)
            ways += _way(reference, evidence, way, way_evidence, request, k_grid)
    return Choices(reference, _reference(reference, evidence, request, k_grid), tuple(ways), tuple(k_grid))


def _plainness(group: Group) -> tuple[Any, ...]:
    """What makes a way the reference: the paper's protocol, float32, the tokenizer's BOS, the longest window."""
    first = group.first
    return (*(getattr(first, name) == value for name, value in _PLAIN.items()), first.window or 0, len(group.runs))


def _apart(reference: Group, group: Group) -> dict[str, Any]:
    """The columns in which a group differs from the reference, with its values."""
    pairs = [(name, getattr(group.first, name), getattr(reference.first, name)) for name in COLUMNS]
    return {name: value for name, value, other in pairs if value != other}


def _reference(group: Group, evidence: Sequence[Evidence], request: Request, k_grid: Sequence[int]) -> Reference:
    largest = evidence[-1]
    values: dict[Key, Estimate] = {}
    for (law, k), at in _places(k_grid).items():
        resampled_B = largest.resampled[law].T[at].T
        values[law, k] = estimate(float(largest.measured[law][at]), resampled_B, group.n_resampled, Recipe.expanded)
    points = size_points(group, evidence, request, k_grid, _LAWS) if group.n_sizes >= 3 else []
    laws = {(each.law, each.k): fit_points(each, Method.ols).fit for each in points if each.k in (None, *k_grid)}
    return Reference(group.runs[-1], values, laws)


def _places(k_grid: Sequence[int]) -> dict[Key, tuple[int, ...]]:
    """The place of each quantity of a run in its evidence."""
    return {**{("rbp", k): (at,) for at, k in enumerate(k_grid)}, ("cross_entropy", None): ()}


def _way(
    reference: Group,
    evidence: Sequence[Evidence],
    way: Group,
    way_evidence: Sequence[Evidence],
    request: Request,
    k_grid: Sequence[int],
) -> list[Way]:
    """One way against the reference; none where they have no size in common."""
    assert way.n_documents == reference.n_documents, "one text has the same documents in every way"
    both = {run.training for run in reference.runs} & {run.training for run in way.runs}
    if not both:
        return []
    sides = []
    for group, measured in ((reference, evidence), (way, way_evidence)):
        kept = [at for at, run in enumerate(group.runs) if run.training in both]
        sides.append((replace(group, runs=tuple(group.runs[at] for at in kept)), [measured[at] for at in kept]))
    (one, before), (other, after) = sides
    shifts = {
        (law, k): shift_run(before[-1], after[-1], law, way.n_resampled, *at)
        for (law, k), at in _places(k_grid).items()
    }
    laws: dict[Key, LawShift] = {}
    if len({S for S, _ in both}) >= 3:
        points = [size_points(group, measured, request, k_grid, _LAWS) for group, measured in sides]
        pairs = [pair for pair in zip(*points, strict=True) if pair[0].k in (None, *k_grid)]
        laws = {(a.law, a.k): shift_law(one, a, b) for a, b in pairs}
    differs = _apart(reference, way)
    if way.ties is not reference.ties:
        differs["ties"] = way.ties.value
    return [Way(other, differs, other.runs[-1], shifts, laws)]


def keep(store: Store, choices: Choices) -> list[Record]:
    """Rows for programs, one for each quantity of each way, the reference first; differences are not stored."""
    names, reference = choices.group.names(), choices.reference
    about = _about(reference.run)
    rows: list[Record] = []
    for (law, k), value in reference.values.items():
        rows.append({"kind": "reference", **names, **about, "quantity": law, "k": k, **vars(value), "status": "ok"})
    for (law, k), fit in reference.laws.items():
        row = {"kind": "reference", **names, **_of_law(choices.group), "quantity": f"alpha_{law}", "k": k}
        rows.append(row | vars(fit.exponent) | {"status": fit.status.value})
    for way in choices.ways:
        names, about = way.group.names(), _about(way.run)
        for (law, k), shift in way.shifts.items():
            row = {"kind": "difference", **names, **about, "quantity": law, "k": k, **vars(shift.difference)}
            rows.append(row | {"of": shift.after, "status": "ok"})
        for (law, k), shifted in way.laws.items():
            row = {"kind": "difference", **names, **_of_law(way.group), "quantity": f"alpha_{law}", "k": k}
            fit = shifted.difference
            rows.append(row | vars(fit.exponent) | {"of": shifted.after.alpha, "status": fit.status.value})
    return rows


def _about(run: Run) -> Record:
    return {"size": run.size, "n_points": 1, "n_tokens": run.n_tokens, "run_ids": list(run.run_ids)}


def _of_law(group: Group) -> Record:
    return {"size": None, "n_points": len(group.runs), "n_tokens": None, "run_ids": group.run_ids}
