"""Selects the groups of base and variant on each text, and their common quantities."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import duckdb
import numpy as np

from rbpx.errors import RbpxError
from rbpx.laws.names import Axis
from rbpx.questions.multiplier import MultiplierKeys
from rbpx.runs.group import KNOWN_BY, Group
from rbpx.runs.points.sizes import Points, known_points
from rbpx.runs.points.tasks import task_values
from rbpx.runs.run import Run, grouped, training_of
from rbpx.runs.schedules import said_of_underway, underway
from rbpx.runs.select.side import READ_ALIKE
from rbpx.runs.select.stored import select_runs
from rbpx.spelling import typed
from rbpx.store.sql import ask
from rbpx.store.store import Record

AnyGroup = TypeVar("AnyGroup", bound=Group)
DEFAULT_K: Final = (1, 10)
_DEFAULT_LAWS: Final = frozenset({"rbp", "cross_entropy", "bits_per_byte", "accuracy"})


@dataclass(frozen=True)
class ModelSelector:
    """The models that a key names: a family, or one variant of it."""

    key: str
    family: str
    trained: str | None

    def has(self, run: Run) -> bool:
        """Whether a run belongs to it."""
        return run.family == self.family and self.trained in (None, run.variant)

    def select(self, members: Sequence[AnyGroup]) -> list[AnyGroup]:
        """Selects its groups on one text: finished models if there are any, else checkpoints.

        The bare name of a family means its models without a variant, if it has any.
        """
        own = [group for group in members if self.has(group.first)]
        own = [group for group in own if group.first.revision is None] or own
        plain = [group for group in own if group.first.variant is None] if self.trained is None else []
        return plain or own


def sides_of(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: MultiplierKeys, refuses: bool = True
) -> list[ModelSelector]:
    """Base and variant; with `refuses` raises RbpxError where one is missing, ambiguous, or has no group."""
    variants = request.variant or []
    if request.base is None or len(variants) != 1:
        names = typed("multiplier", base="pythia", variant="pythia-deduped")
        raise RbpxError(f"multiplier compares one family with one other, or ways of training; name them, as in {names}")
    families, sides = {group.first.family for group in groups}, list[ModelSelector]()
    for key, name in (("base", request.base), ("variant", variants[0])):
        # the name of a family may contain a colon
        family, _, trained = (name, "", "") if name in families else name.partition(":")
        sides.append(ModelSelector(key, family, trained or None))
        if any(sides[-1].has(group.first) for group in groups):
            continue
        runs = select_runs(connection, request, plans=True)
        own = [run for run in runs if sides[-1].has(run)]
        running = underway(own)
        if running and len(running) == len(grouped(own, training_of)):
            raise RbpxError(f"no run of {key}={name} has finished; {said_of_underway(len(running), own[0].source)}")
        if refuses or not own:
            held = ", ".join(sorted(set(map(_name_of, runs))))
            why = f"has no known {KNOWN_BY[request.along]}" if own else f"is not in the store, which holds {held}"
            raise RbpxError(f"{key}={name} {why}")
    return sides


def _name_of(run: Run) -> str:
    return run.family if run.variant is None else f"{run.family}:{run.variant}"


def names_of(base: Group, variant: Group, axis: Axis) -> Record:
    """Columns that all rows about two groups share."""
    named = {"base": _name_of(base.first), "variant": _name_of(variant.first)}
    shared = {name: base.names()[name] for name in ("source", *READ_ALIKE, "ties")}
    return {**named, "axis": axis.value, "fixed_size": variant.fixed_size, **shared}


def text_of(group: Group) -> tuple[Any, ...]:
    """The text of a group, and how it was read."""
    return tuple(getattr(group.first, name) for name in READ_ALIKE)


def on_each_text(
    groups: Sequence[AnyGroup], sides: Sequence[ModelSelector]
) -> Iterator[tuple[list[AnyGroup], list[AnyGroup]]]:
    """The groups of both sides on each text; along D and step, groups of one size are matched by S."""

    def text(group: AnyGroup) -> tuple[Any, ...]:
        return (*text_of(group), None if group.fixed_size is None else group.first.non_embedding_params)

    for members in grouped(groups, text).values():
        bases, variants = (side.select(members) for side in sides)
        if bases and variants:
            yield bases, variants


def paired(bases: Sequence[Group], variants: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Pairs the groups of both sides on a text, of several those of one source and revision; RbpxError if ambiguous."""
    if len(bases) == len(variants) == 1:
        return [(bases[0], variants[0])]
    of_base, of_variant = (
        grouped(own, lambda group: (group.first.source, group.first.revision or "")) for own in (bases, variants)
    )
    both = sorted(of_base.keys() & of_variant.keys())
    if not both or len(of_base) < len(bases) or len(of_variant) < len(variants):
        titles = "; ".join(group.title for group in (*bases, *variants))
        raise RbpxError(
            f"base and variant have groups on one text which source and revision do not pair: {titles}; narrow it"
        )
    return [(of_base[training][0], of_variant[training][0]) for training in both]


def points_of(
    connection: duckdb.DuckDBPyConnection, base: Group, variant: Group, request: MultiplierKeys
) -> tuple[list[tuple[Points, Points]], list[str]]:
    """Every common quantity; across tokenizers losses in bits per byte, with a note."""
    laws = set(request.laws.names) if request.laws.by_name else set(_DEFAULT_LAWS)
    both, notes, is_measured = (base, variant), list[str](), base.is_measured and variant.is_measured
    sides, tokenizers, lengths = [], list[set[str]](), list[Mapping[str, float | None]]()
    for group in both:
        each, values = list[Points](), task_values(connection, group, request) if is_measured else None
        if values is not None:  # features that predict success on a task, over targets and right choices alone
            each = list(values.features)
        if not each:
            each = known_points(connection, group, request, laws, DEFAULT_K)
        sides.append({(points.law, points.k): points for points in each})
        rows = ask(connection, "tokenizers", run_ids=group.run_ids).to_pylist() if is_measured else []
        tokenizers.append({row["tokenizer_hash"] for row in rows})
        lengths.append({row["run_id"]: row["bytes_per_token"] for row in rows})
    if tokenizers[0] != tokenizers[1]:
        notes = ["The tokenizers differ, so losses are compared in bits per byte and ranks are not."]
        sides = [_in_bits(side, of) for side, of in zip(sides, lengths, strict=True)]
    pairs = [(points, sides[1][name]) for name, points in sides[0].items() if name in sides[1]]
    return [(one, other) for one, other in pairs if len(one.runs) and len(other.runs) and one.y_N.size], notes


def _in_bits(side: Mapping[Any, Points], bytes_per_token: Mapping[str, float | None]) -> dict[Any, Points]:
    """Bits per byte of the items of a task, else of the cross-entropy."""
    bits, points = ("bits_per_byte", None), side.get(("cross_entropy", None))
    if bits in side or points is None:
        return {bits: side[bits]} if bits in side else {}
    per_token = np.array([bytes_per_token[run.run_id] for run in points.runs], np.float64)
    scale_N = 1 / (math.log(2) * per_token)  # NaN of a run that was measured before bytes were counted
    y_BN = None if points.y_BN is None else points.y_BN * scale_N
    return {bits: replace(points, law="bits_per_byte", y_N=points.y_N * scale_N, y_BN=y_BN)}
