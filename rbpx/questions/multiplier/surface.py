"""Compares two families over all their sizes and tokens, where both vary in either."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rbpx.config.request import Request
from rbpx.laws.families.shift import Shift, fit_shift, is_surface
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Axis
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points
from rbpx.runs.points.surfaces import Trained, trained_of
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record


@dataclass(frozen=True, eq=False)
class Shifted:
    """One quantity of both families over a surface.

    Attributes:
        law: name of the quantity; bits_per_byte across tokenizers.
        k: its k; None where it has none.
        shift: the multiplier, where it holds and how it changes.
        reasons: every status that holds.
    """

    law: str
    k: int | None
    shift: Shift
    reasons: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)


@dataclass(frozen=True, eq=False)
class OverSurface:
    """Two families on one text, over sizes and tokens.

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
    compared: tuple[Shifted, ...]
    notes: tuple[str, ...]

    @property
    def axis(self) -> Axis:
        """Along which the variant is shifted."""
        return self.compared[0].shift.axis


def over_surface(
    groups: tuple[TrainingGroup, TrainingGroup],
    names: tuple[str, ...],
    pairs: Sequence[tuple[Points, Points]],
    notes: tuple[str, ...],
    request: Request,
) -> OverSurface | None:
    """Compare two families over a surface.

    Args:
        groups: all trainings of the baseline and of the variant.
        names: of both.
        pairs: the points of each quantity that both have.
        notes: what is not compared.
        request: the axis.

    Returns:
        The multipliers; None where either family does not vary in both size and tokens, tokens were repeated, or S
        counts experts that a token does not use, so that C is not 6 S D.
    """
    compared = []
    for pair in pairs:
        base, variant = (trained_of(points) for points in pair)
        if any(_unfit(each) for each in (base, variant)) or not is_surface(base.runs, variant.runs):
            return None
        shift = fit_shift(base.runs, variant.runs, request.along)
        reasons = in_order([*shift.reasons, *_doubts(groups)])
        at = tuple(replace(each, status=first_of([each.status, *reasons])) for each in shift.at)
        compared.append(Shifted(variant.law, variant.k, replace(shift, at=at), reasons))
    return OverSurface(*groups, names, tuple(compared), notes) if compared else None


def _unfit(trained: Trained) -> bool:
    return trained.runs.repeats or any(run.is_routed for run in trained.members)


def _doubts(groups: tuple[TrainingGroup, TrainingGroup]) -> Iterator[Status]:
    if any(group.is_mixed for group in groups):
        yield Status.mixed_checkpoints
    if any(group.n_same for group in groups):
        yield Status.same_weights


def keep_surface(over: OverSurface) -> list[Record]:
    """Rows for programs, of kind `overall` and, for each place, `at`; no law is stored."""
    rows: list[Record] = []
    names: Record = {"base": over.names[0], "variant": over.names[1], "axis": over.axis.value, "fixed_size": None}
    shared = ("source", "dataset", "text_hash", "protocol", "window", "stride", "ties")
    names |= {name: over.group.names()[name] for name in shared}
    for each in over.compared:
        shift, of = each.shift, {**names, "law": each.law, "k": each.k, "offset": "surface"}
        row: Record = {"kind": "overall", **of, **by_name(multiplier=shift.overall, slope=shift.slope), "p": shift.p}
        row |= _ranges(shift) | {"weights": shift.weights, "status": each.status.value}
        rows.append(row | {"reasons": [reason.value for reason in each.reasons]})
        for at in shift.at:
            place = {"kind": "at", **of, "C": at.C, "S": at.S, "D": at.D, **by_name(multiplier=at.value)}
            rows.append(place | {"status": at.status.value})
    return rows


def _ranges(shift: Shift) -> dict[str, Any]:
    common = shift.common
    if common is None:
        return {}
    ranges = {
        f"{axis}_{end}": of[at]
        for axis in ("S", "D", "C")
        for at, end in enumerate(("from", "to"))
        if (of := getattr(common, axis))
    }
    return {**ranges, "n_base": common.n_base, "n_variant": common.n_variant}
