"""Chooses what is compared: the groups of base and variant on each text, and the quantities that both have."""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.laws.names import Axis
from rbpx.runs.group import Group, grouped
from rbpx.runs.points.sizes import Points, size_points, weigh_group
from rbpx.runs.points.tasks import task_values
from rbpx.runs.select.side import READ_ALIKE
from rbpx.store.sql import ask
from rbpx.store.store import Record
from rbpx.typed import typed

AnyGroup = TypeVar("AnyGroup", bound=Group)
DEFAULT_K: Final = (1, 10)
_DEFAULT_LAWS: Final = frozenset({"rbp", "cross_entropy", "bits_per_byte", "accuracy"})


@dataclass(frozen=True)
class Side:
    """The models that a key of the request names: a family, or those of it that were trained in one way."""

    key: str
    family: str
    trained: str | None

    def __str__(self) -> str:
        return f"{self.key}={_name(self.family, self.trained)}"

    def has(self, group: Group) -> bool:
        """Whether a group belongs to it."""
        return group.first.family == self.family and self.trained in (None, group.first.variant)

    def standing(self, members: Sequence[AnyGroup]) -> list[AnyGroup]:
        """Its groups on one text."""
        own = [group for group in members if self.has(group)]
        # Finished models, where there are any, rather than checkpoints.
        own = [group for group in own if group.first.revision is None] or own
        if self.trained is None:  # the family's name alone means its models without a variant, where it has any
            own = [group for group in own if group.first.variant is None] or own
        return own


def sides_of(groups: Sequence[Group], request: Request) -> list[Side]:
    """Both sides.

    Raises:
        RbpxError: one is not named, or names several.
    """
    variants = request.variant or []
    if request.base is None or len(variants) != 1:
        names = typed("multiplier", base="pythia", variant="pythia-deduped")
        raise RbpxError(f"multiplier compares one family with one other, or ways of training; name them, as in {names}")
    families = {group.first.family for group in groups}
    return [_side(key, name, families) for key, name in (("base", request.base), ("variant", variants[0]))]


def _side(key: str, name: str, families: Container[str]) -> Side:
    """The family and the way of training that a key names; a family may have a colon in its own name."""
    family, _, trained = (name, "", "") if name in families else name.partition(":")
    return Side(key, family, trained or None)


def _name(family: str, trained: str | None) -> str:
    return family if trained is None else f"{family}:{trained}"


def names_of(base: Group, variant: Group, axis: Axis) -> Record:
    """What all rows about two groups say of them."""
    both = (_name(group.first.family, group.first.variant) for group in (base, variant))
    named = {**dict(zip(("base", "variant"), both, strict=True)), "axis": axis.value, "fixed_size": variant.fixed_size}
    return named | {name: base.names()[name] for name in ("source", *READ_ALIKE, "ties")}


def text_of(group: Group) -> tuple[Any, ...]:
    """The text of a group, and how it was read."""
    return tuple(getattr(group.first, name) for name in READ_ALIKE)


def on_each_text(groups: Sequence[AnyGroup], sides: Sequence[Side]) -> Iterator[tuple[list[AnyGroup], list[AnyGroup]]]:
    """The groups of both sides on each text; along D and step, where a group is of one size, those of the same S."""

    def text(group: AnyGroup) -> tuple[Any, ...]:
        return (*text_of(group), None if group.fixed_size is None else group.first.non_embedding_params)

    for members in grouped(groups, text).values():
        bases, variants = (side.standing(members) for side in sides)
        if bases and variants:
            yield bases, variants


def paired(bases: Sequence[Group], variants: Sequence[Group], sides: Sequence[Side]) -> Iterator[tuple[Group, Group]]:
    """Pair the groups of both sides on a text: of several those of one source and revision, as after equal tokens.

    Raises:
        RbpxError: nothing says which is to be compared with which.
    """
    if len(bases) == len(variants) == 1:
        yield bases[0], variants[0]
        return
    by_training = []
    for own, side in zip((bases, variants), sides, strict=True):
        by_training.append({(group.first.source, group.first.revision or ""): group for group in own})
        if len(by_training[-1]) < len(own):
            raise _unclear(f"{side} is {len(own)} groups of runs", own)
    base_of, variant_of = by_training
    both = sorted(base_of.keys() & variant_of.keys())
    if not both:
        raise _unclear("no groups of base and variant have one source and revision", [*bases, *variants])
    for training in both:
        yield base_of[training], variant_of[training]


def _unclear(what: str, groups: Sequence[Group]) -> RbpxError:
    return RbpxError(f"{what}: {'; '.join(group.title for group in groups)}; narrow it")


def points_of(
    connection: duckdb.DuckDBPyConnection, base: Group, variant: Group, request: Request
) -> tuple[list[tuple[Points, Points]], list[str]]:
    """Every quantity that both have; where tokenizers differ, losses in bits per byte alone, with a note."""
    laws = set(request.laws.names) if request.laws.by_name else set(_DEFAULT_LAWS)
    both, notes, is_measured = (base, variant), list[str](), base.is_measured and variant.is_measured
    vocab = min(group.vocab_size for group in both)
    k_grid = request.k.grid(vocab, DEFAULT_K) if is_measured else request.k.listed(DEFAULT_K)
    sides = []
    for group in both:
        each, values = list[Points](), task_values(connection, group, request) if is_measured else None
        if values is not None:  # features that predict success on a task, over targets and right choices alone
            each = list(values.features)
        if not each:
            each = size_points(group, weigh_group(connection, group, request, k_grid, laws), request, k_grid, laws)
        sides.append({(points.law, points.k): points for points in each})
    if is_measured:
        rows = [ask(connection, "tokenizers", run_ids=group.run_ids).to_pylist() for group in both]
        of_base, of_variant = ({row["tokenizer_hash"] for row in of} for of in rows)
        if of_base != of_variant:
            notes = ["The tokenizers differ, so losses are compared in bits per byte and ranks are not."]
            lengths = [{row["run_id"]: row["bytes_per_token"] for row in of} for of in rows]
            sides = [_in_bits(side, of) for side, of in zip(sides, lengths, strict=True)]
    pairs = [(points, sides[1][name]) for name, points in sides[0].items() if name in sides[1]]
    return [(one, other) for one, other in pairs if len(one.runs) and len(other.runs) and one.y_N.size], notes


def _in_bits(side: Mapping[Any, Points], bytes_per_token: Mapping[str, float | None]) -> dict[Any, Points]:
    """Bits per byte, the one quantity that remains: that of the items of a task, else of cross-entropy."""
    if ("bits_per_byte", None) in side:
        return {("bits_per_byte", None): side["bits_per_byte", None]}
    points = side.get(("cross_entropy", None))
    if points is None:
        return {}
    per_token = [bytes_per_token[run.run_id] for run in points.runs]
    scale_N = 1 / (math.log(2) * np.array(per_token, np.float64))  # NaN of a run that was measured before they counted
    y_BN = None if points.y_BN is None else points.y_BN * scale_N
    return {("bits_per_byte", None): replace(points, law="bits_per_byte", y_N=points.y_N * scale_N, y_BN=y_BN)}
