"""Compares what two families need for the same loss on one text, under every choice of E (verb multiplier)."""

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.laws.families.multiplier import MultiplierLaw, Offset, fit_multiplier
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Axis
from rbpx.questions.multiplier.surface import OverSurface, keep_surface, over_surface
from rbpx.runs.fits import naming
from rbpx.runs.group import Group, Run
from rbpx.runs.points.sizes import Points, size_points, weigh_group
from rbpx.runs.points.tasks import task_values
from rbpx.runs.select.along import AlongGroup, best_of_budgets
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.store.sql import ask
from rbpx.store.store import Record, Store

AnyGroup = TypeVar("AnyGroup", bound=Group)
DEFAULT_K: Final = (1, 10)
_DEFAULT_LAWS: Final = frozenset({"rbp", "cross_entropy", "bits_per_byte", "accuracy"})


@dataclass(frozen=True)
class Compared:
    """One quantity of both families.

    Attributes:
        law: name of the quantity; bits_per_byte across tokenizers.
        k: its k; None where it has none.
        runs: the models of the variant, in order of x.
        laws: the multipliers under each choice of E.
    """

    law: str
    k: int | None
    runs: tuple[Run, ...]
    laws: tuple[MultiplierLaw, ...]


@dataclass(frozen=True)
class _Side:
    """The models that a key of the request names: a family, or those of it that were trained in one way."""

    key: str
    family: str
    trained: str | None

    @property
    def name(self) -> str:
        """FAMILY or FAMILY:VARIANT, as a request names it."""
        return _name(self.family, self.trained)

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


@dataclass(frozen=True, eq=False)
class Worth:
    """Two families on one text.

    Attributes:
        group: the runs of the baseline.
        variant: those of the variant.
        names: the names of both.
        compared: every quantity that both have.
        notes: what is not compared, and why.
    """

    group: Group
    variant: Group
    names: tuple[str, ...]
    compared: tuple[Compared, ...]
    notes: tuple[str, ...]


def analyse(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request
) -> list[Worth | OverSurface]:
    """Compare the two families on every text that both were measured on.

    Over all sizes and tokens where both families have runs that vary in either, along the axis elsewhere.

    Raises:
        RbpxError: a side is not named, is not there or is several groups on one text, or they share no text.
    """
    families = {group.first.family for group in groups}
    variant, *others = request.variant or [""]
    if others:
        raise RbpxError(f"variant={request.typed['variant']} names several; multiplier compares one with base=")
    sides = [_side(key, name, families) for key, name in (("base", request.base), ("variant", variant))]
    surfaces = [group for group in groups if type(group) is TrainingGroup]
    over = list(_surfaces(connection, surfaces, sides, request))
    done = {_text(each.group) for each in over}
    along_C = request.axis is Axis.C
    rest = [group for group in groups if type(group) is not TrainingGroup and _text(group) not in done]
    rest = [best_of_budgets(group) if along_C and isinstance(group, AlongGroup) else group for group in rest]
    worth: list[Worth | OverSurface] = [
        *over,
        *(_worth(connection, base, variant, request) for base, variant in _pairs(rest, sides)),
    ]
    if not worth:
        for side in sides:
            if not any(map(side.has, groups)):
                known = ", ".join(dict.fromkeys(group.first.family for group in groups))
                raise RbpxError(f"{side.key}={side.name} is not in the store; families: {known}")
        raise RbpxError("base and variant share no text read alike; measure both on one text, under one protocol")
    return worth


def _surfaces(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[TrainingGroup], sides: Sequence[_Side], request: Request
) -> Iterator[OverSurface]:
    """The comparisons over sizes and tokens: of texts on which each side is one group of trainings."""
    texts: dict[tuple[Any, ...], list[TrainingGroup]] = {}
    for group in groups:
        texts.setdefault(_text(group), []).append(group)
    for members in texts.values():
        bases, variants = (side.standing(members) for side in sides)
        if len(bases) != 1 or len(variants) != 1:
            continue
        base, variant = bases[0], variants[0]
        pairs, notes = _points(connection, base, variant, request)
        over = over_surface((base, variant), _names(base, variant), pairs, notes, request)
        if over is not None:
            yield over


def _text(group: Group) -> tuple[Any, ...]:
    first = group.first
    return first.dataset, first.text_hash, first.protocol, first.window, first.stride


def _names(*groups: Group) -> tuple[str, ...]:
    return tuple(_name(group.first.family, group.first.variant) for group in groups)


def _side(key: str, name: str | None, families: Container[str]) -> _Side:
    """The family and the way of training that a key names; a family may have a colon in its own name."""
    if not name:
        raise RbpxError(f"{key}= is missing; name two families: base=pythia variant=pythia-deduped")
    family, _, trained = (name, "", "") if name in families else name.partition(":")
    return _Side(key, family, trained or None)


def _name(family: str, trained: str | None) -> str:
    return family if trained is None else f"{family}:{trained}"


def _pairs(groups: Sequence[Group], sides: Sequence[_Side]) -> Iterator[tuple[Group, Group]]:
    """The groups of both sides on each text; along D and step, where a group is of one size, those of the same S.

    Raises:
        RbpxError: a side is several groups on one text, and nothing says which is to be compared with which.
    """
    texts: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        first = group.first
        at = None if group.fixed_size is None else first.non_embedding_params
        alike = (*_text(group), at)
        texts.setdefault(alike, []).append(group)
    for members in texts.values():
        bases, variants = (side.standing(members) for side in sides)
        if len(bases) == len(variants) == 1:
            yield bases[0], variants[0]
        elif bases and variants:
            yield from _trained_alike(bases, variants, sides)


def _trained_alike(
    bases: Sequence[Group], variants: Sequence[Group], sides: Sequence[_Side]
) -> Iterator[tuple[Group, Group]]:
    """Pair the groups of both sides that have one source and revision, such as checkpoints after equal tokens."""
    by_training = []
    for own, side in zip((bases, variants), sides, strict=True):
        by_training.append({(group.first.source, group.first.revision or ""): group for group in own})
        if len(by_training[-1]) < len(own):
            raise _unclear(f"{side.key}={side.name} is {len(own)} groups of runs", own)
    base_of, variant_of = by_training
    both = sorted(base_of.keys() & variant_of.keys())
    if not both:
        raise _unclear("no groups of base and variant have one source and revision", [*bases, *variants])
    for training in both:
        yield base_of[training], variant_of[training]


def _unclear(what: str, groups: Sequence[Group]) -> RbpxError:
    return RbpxError(f"{what}: {'; '.join(group.title for group in groups)}; narrow it")


def _worth(connection: duckdb.DuckDBPyConnection, base: Group, variant: Group, request: Request) -> Worth:
    pairs, notes = _points(connection, base, variant, request)
    compared = []
    for one, other in pairs:
        x, y = ([points.S_N for points in (one, other)], [points.y_N for points in (one, other)])
        resampled = [points.y_BN for points in (one, other)]
        offsets = [each for each in Offset if each is not Offset.given or request.E is not None]
        with naming(f"{base.title}: {other.law}"):
            laws = tuple(fit_multiplier(x, y, resampled, each, one.n_documents, request.E) for each in offsets)
        compared.append(Compared(other.law, other.k, tuple(sorted(other.runs, key=lambda run: run.x or 0.0)), laws))
    return Worth(base, variant, _names(base, variant), tuple(compared), notes)


def model_name(run: Run) -> str:
    """The name of a model of the variant: its size; along D and step its checkpoint or place on the axis."""
    if run.axis in (Axis.S, Axis.C):
        return run.size
    return run.revision or f"{run.x:.3g}"


def _points(
    connection: duckdb.DuckDBPyConnection, base: Group, variant: Group, request: Request
) -> tuple[list[tuple[Points, Points]], tuple[str, ...]]:
    """Every quantity that both have; where tokenizers differ, losses in bits per byte alone, with a note."""
    laws = set(request.laws.names) if request.laws.by_name else set(_DEFAULT_LAWS)
    measured, notes = base.is_measured and variant.is_measured, tuple[str, ...]()
    vocab = min((run.vocab_size or 2 for group in (base, variant) for run in group.runs), default=2)
    k_grid = request.k.grid(vocab, DEFAULT_K) if measured else request.k.listed(DEFAULT_K)
    sides = []
    for group in (base, variant):
        each, values = list[Points](), task_values(connection, group, request) if measured else None
        if values is not None:  # features that predict success on a task, over targets and right choices alone
            n = values.n_items
            each = [Points(of.name, of.k, group.runs, of.x_R, of.x_BR, None, n) for of in values.features]
        if not each:
            each = size_points(group, weigh_group(connection, group, request, k_grid, laws), request, k_grid, laws)
        sides.append({(points.law, points.k): points for points in each})
    if measured:
        bytes_per_token = [_bytes_per_token(connection, group) for group in (base, variant)]
        if bytes_per_token[0][0] != bytes_per_token[1][0]:
            notes = ("The tokenizers differ, so losses are compared in bits per byte and ranks are not.",)
            sides = [_in_bits(side, of) for side, (_, of) in zip(sides, bytes_per_token, strict=True)]
    pairs = [(points, sides[1][name]) for name, points in sides[0].items() if name in sides[1]]
    return [(one, other) for one, other in pairs if len(one.runs) and len(other.runs) and one.y_N.size], notes


def _bytes_per_token(connection: duckdb.DuckDBPyConnection, group: Group) -> tuple[set[str], dict[str, float | None]]:
    """The tokenizers of a group, and bytes of text per scored token of each run."""
    rows = ask(connection, "tokenizers", run_ids=group.run_ids).to_pylist()
    return {row["tokenizer_hash"] for row in rows}, {row["run_id"]: row["bytes_per_token"] for row in rows}


def _in_bits(side: dict[Any, Points], bytes_per_token: dict[str, float | None]) -> dict[Any, Points]:
    """Bits per byte, the one quantity that remains: that of the items of a task, else of cross-entropy.

    Raises:
        RbpxError: the bytes of a run are not known.
    """
    if ("bits_per_byte", None) in side:
        return {("bits_per_byte", None): side["bits_per_byte", None]}
    points = side.get(("cross_entropy", None))
    if points is None:
        return {}
    per_token = [bytes_per_token[run.run_id] for run in points.runs]
    old = [run.run_id for run, each in zip(points.runs, per_token, strict=True) if each is None]
    if old:
        raise RbpxError(f"run {old[0]} was measured before bytes were counted; `store rm` it and measure it again")
    scale_N = np.array([1 / (math.log(2) * each) for each in per_token if each is not None])
    y_BN = None if points.y_BN is None else points.y_BN * scale_N
    return {("bits_per_byte", None): replace(points, law="bits_per_byte", y_N=points.y_N * scale_N, y_BN=y_BN)}


def keep(store: Store, worth: Worth | OverSurface) -> list[Record]:
    """Rows for programs, of kind `overall` and, for each model of the variant or place, `at`; no law is stored."""
    if isinstance(worth, OverSurface):
        return keep_surface(worth)
    rows: list[Record] = []
    names: Record = {"base": worth.names[0], "variant": worth.names[1], "axis": worth.group.axis.value}
    names |= {"fixed_size": worth.variant.fixed_size, "revision": worth.variant.first.revision}
    shared = ("source", "dataset", "text_hash", "protocol", "window", "stride", "ties")
    names |= {name: worth.group.names()[name] for name in shared}
    for compared, law in [(each, law) for each in worth.compared for law in each.laws]:
        of: Record = {**names, "law": compared.law, "k": compared.k, "offset": law.offset.value}
        alphas, offsets, supported = (each or (None, None) for each in (law.alpha, law.E, law.supported))
        row: Record = {"kind": "overall", **of, **by_name(multiplier=law.overall)}
        row |= {"loss_from": supported[0], "loss_to": supported[1]}
        row |= {"alpha_base": alphas[0], "alpha_variant": alphas[1], "E_base": offsets[0], "E_variant": offsets[1]}
        row |= {"residual_sd": law.residual_sd, "status": law.status.value}
        rows.append(row | ({} if law.p is None else {"p": law.p}))
        for run, at in zip(compared.runs, law.at, strict=False):
            row = {"kind": "at", **of, "size": model_name(run), "training_seed": run.training_seed}
            row |= {"loss": at.loss, "x_base": at.x_base, "x_variant": at.x_variant}
            rows.append(row | by_name(multiplier=at.value) | {"status": at.status.value})
    return rows
