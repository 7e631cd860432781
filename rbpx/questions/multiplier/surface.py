"""Compares two families over all their sizes and tokens, where both vary in either."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import Column, View, magnitude, state, text, with_ends, written
from rbpx.display.vocabulary import law_title, short, significant, spoken
from rbpx.laws.families.shift import Shift, fit_shift, is_surface
from rbpx.laws.intervals.estimate import by_name
from rbpx.questions.multiplier.sides import names_of, points_of
from rbpx.questions.result import Result
from rbpx.runs.points.surfaces import Trained, trained_of
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record


def over_surface(
    connection: duckdb.DuckDBPyConnection, base: TrainingGroup, variant: TrainingGroup, request: Request
) -> Result | None:
    """Compare two families over a surface, in the quantities that both have.

    Args:
        connection: to the store.
        base: all trainings of the baseline.
        variant: those of the variant.
        request: the axis along which the variant is shifted.

    Returns:
        The multipliers, of kind `overall` and, for each place, `at`; None where either family does not vary in both
        size and tokens, tokens were repeated, or S counts experts that a token does not use, so that C is not 6 S D.
    """
    pairs, notes = points_of(connection, base, variant, request)
    names, rows = names_of(base, variant, request.along), list[Record]()
    for pair in pairs:
        of_base, of_variant = map(trained_of, pair)
        if _unfit(of_base) or _unfit(of_variant) or not is_surface(of_base.runs, of_variant.runs):
            return None
        shift = fit_shift(of_base.runs, of_variant.runs, request.along)
        named = {**names, "law": of_variant.law, "k": of_variant.k, "offset": "surface"}
        rows += _rows(named, shift, in_order([*shift.reasons, *_doubts(base, variant)]))
    if not rows:
        return None
    overall, places = ([row for row in rows if row["kind"] == kind] for kind in ("overall", "at"))
    about = f"{names['dataset']}: {names['variant']} against {names['base']} over sizes and tokens, along "
    about += names["axis"]
    note = "95 % intervals over runs, forms, bends and misfit; over documents too where they are measured."
    tables = [SURFACE.table("Multipliers over sizes and tokens", overall, about, request.along, note)]
    tables += [PLACES.table("Multipliers by compute", places, about, request.along, _PLACED)] if places else []
    return Result([base], rows, tables, [*notes, *(said for row in overall for said in _said(row))])


def _unfit(trained: Trained) -> bool:
    return trained.runs.repeats or any(run.is_routed for run in trained.members)


def _doubts(*groups: TrainingGroup) -> Iterator[Status]:
    if any(group.is_mixed for group in groups):
        yield Status.mixed_checkpoints
    if any(group.n_same for group in groups):
        yield Status.same_weights


def _rows(named: Record, shift: Shift, reasons: Sequence[Status]) -> Iterator[Record]:
    """What the variant is worth overall, where that holds and how it changes, then at each place."""
    row: Record = {"kind": "overall", **named, **by_name(multiplier=shift.overall, slope=shift.slope), "p": shift.p}
    if (common := shift.common) is not None:
        ends = {"S": common.S, "D": common.D, "C": common.C}
        row |= {f"{axis}_{end}": of[at] for axis, of in ends.items() for at, end in enumerate(("from", "to"))}
        row |= {"n_base": common.n_base, "n_variant": common.n_variant}
    row |= {"weights": shift.weights, "status": first_of(reasons).value}
    yield row | {"reasons": [reason.value for reason in reasons]}
    for at in shift.at:
        place = {"kind": "at", **named, "C": at.C, "S": at.S, "D": at.D, **by_name(multiplier=at.value)}
        yield place | {"status": first_of([at.status, *reasons]).value}


def _said(row: Record) -> Iterator[str]:
    """What a variant is worth, whether that changes with scale, and whether one number says it."""
    base, variant, title = row["base"], row["variant"], law_title(row["law"], row["k"])
    m, slope = ([row[f"{name}{end}"] for end in ("", "_lo", "_hi")] for name in ("multiplier", "slope"))
    if "n_base" not in row or None in (*m[1:], *slope[1:]):
        why = Status(row["status"]).label
        yield f"{title}: {variant} and {base} cannot be compared over sizes and tokens: {why}."
        return
    none = ", so no difference shows" if m[1] <= 1 <= m[2] else ""
    S, D = (f"{spoken(row[f'{axis}_from'])} to {spoken(row[f'{axis}_to'])}" for axis in "SD")
    yield (
        f"{title}: {variant} is worth {_ends(*m)} times the {row['axis']} of {base}{none}; compared from {S} "
        f"parameters and {D} tokens, by {row['n_base']} runs of {base} and {row['n_variant']} of {variant}."
    )
    if not slope[1] <= 0 <= slope[2]:
        way, ten = "grows" if slope[0] > 0 else "shrinks", _ends(*(10**each for each in slope))
        yield (
            f"{title}: the multiplier {way} with scale, by a factor of {ten} for ten times the compute: quote it with "
            "its compute."
        )
    if Status.families_differ.value in row["reasons"]:
        p = significant(row["p"], 2)
        yield f"{title}: {variant} has other constants than {base} (p = {p}), so read the multiplier at each compute."


def _ends(value: float, lo: float, hi: float) -> str:
    return f"{THREE(value)} ({THREE(lo)} to {THREE(hi)})"


THREE: Final = partial(significant, digits=3)
QUANTITY: Final[Column[Record]] = text("quantity", "law", lambda row: law_title(row["law"], row["k"]))
p_of: Final = partial(written, "p", "p", None, partial(significant, digits=2))
PAYS: Final = "{x} that the base needs for a loss over that of the variant, so above 1 the variant pays"
_PLACED: Final = (
    "The least, the middle and the most compute of the runs compared, at their mean tokens for a parameter, and ten "
    "times the most."
)
SURFACE: Final = View[Record](
    "surface",
    QUANTITY,
    with_ends("multiplier", "multiplier", None, THREE, f"{PAYS}; at the middle compute of the runs compared"),
    with_ends("slope", "slope", None, THREE, "of ln multiplier in ln C; constant at 0"),
    p_of("of one surface for both beside constants of their own; below 0.05 the runs speak against it", spare=1),
    state(),
)
PLACES: Final = View[Record](
    "places",
    QUANTITY,
    magnitude("C", "C", means="training FLOPs of the variant, 6 S D"),
    written("S", "S", None, short, spare=2),
    written("D", "D", None, short, spare=3),
    with_ends("multiplier", "multiplier", None, THREE),
    state(),
)
