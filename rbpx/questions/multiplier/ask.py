"""Answers `multiplier`, along an axis or over surfaces."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.display.law_columns import estimate_in
from rbpx.display.table import STATUS, Column, interval, table_of
from rbpx.display.vocabulary import (
    amount,
    in_digits,
    law_order,
    law_title,
    short,
    significant,
    size_name,
    spoken,
    told_apart,
)
from rbpx.errors import RbpxError
from rbpx.laws.families.multiplier import Numbers, Offset, fit_multiplier
from rbpx.laws.families.shift import fit_shift, is_surface
from rbpx.laws.intervals.estimate import Estimate, flat
from rbpx.laws.names import Axis
from rbpx.questions.multiplier import MultiplierKeys
from rbpx.questions.multiplier.page import PAGE, WORTH
from rbpx.questions.multiplier.sides import names_of, on_each_text, paired, points_of, sides_of, text_of
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import naming
from rbpx.runs.group import By, Group
from rbpx.runs.points.surfaces import trained_of, varies_in_both
from rbpx.runs.run import Run
from rbpx.runs.select.budgets import best_of_budgets
from rbpx.runs.select.groups import Cells, select, select_trainings
from rbpx.status import Status, first_of, status_keys
from rbpx.store.store import Record

_OFFSETS: Final = {"given": "given", "shared": "one E", "free": "own E", "none": "E = 0", "surface": "S and D"}


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: MultiplierKeys) -> list[Result]:
    """Compares two families on every text that both were measured on, over size and tokens, else along the axis.

    Raises:
        RbpxError: a side is missing or ambiguous on a text, or the sides share no text.
    """
    sides, results, done = sides_of(connection, groups, request), list[Result](), set()
    for bases, variants in on_each_text([group for group in groups if group.by is By.training], sides):
        rows, notes = list[Record](), list[str]()
        if len(bases) == len(variants) == 1:
            rows, notes = _over_surface(connection, bases[0], variants[0], request)
        if rows:
            done.add(text_of(bases[0]))
            results.append(_result(bases[0], rows, notes, request.along))
    rest = [group for group in groups if group.by is not By.training and text_of(group) not in done]
    if request.axis is Axis.C:
        rest = [best_of_budgets(group) for group in rest]
    for both in on_each_text(rest, sides):
        for base, variant in paired(*both):
            results.append(_result(base, *_along(connection, base, variant, request), base.axis))
    if not results:
        raise RbpxError("base and variant share no text read alike; measure both on one text, under one protocol")
    return results


def _select(connection: duckdb.DuckDBPyConnection, request: MultiplierKeys, cells: Cells = None) -> list[Group]:
    """Selects the families that vary in size and tokens, with the runs along one axis.

    Raises:
        RbpxError: a side is underway; or as of `select`, unless two families vary in both and can be compared.
    """
    along = partial(select, connection, request, cells, best_of_budget=False)
    if request.axis not in (Axis.S, Axis.D, Axis.C) or request.E is not None:
        return along()
    surfaces = [group for group in select_trainings(connection, request, cells) if varies_in_both(group)]
    try:
        return [*surfaces, *along()]
    except RbpxError:
        if len(surfaces) < 2:
            sides_of(connection, surfaces, request, refuses=False)
            raise
    return surfaces


def _along(
    connection: duckdb.DuckDBPyConnection, base: Group, variant: Group, request: MultiplierKeys
) -> tuple[list[Record], list[str]]:
    pairs, notes = points_of(connection, base, variant, request)
    names, rows = names_of(base, variant, base.axis) | {"revision": variant.first.revision}, list[Record]()
    for of_base, of_variant in pairs:
        runs = sorted(of_variant.runs, key=lambda run: run.x or 0.0)
        x, y, replicates = ([getattr(of, name) for of in (of_base, of_variant)] for name in ("S_N", "y_N", "y_BN"))
        doubt = Status.one_document if Status.one_document in (of_base.doubt, of_variant.doubt) else None
        for offset in Offset:
            if offset is Offset.given and request.E is None:
                continue
            named = {**names, "law": of_variant.law, "k": of_variant.k, "offset": offset.value}
            with naming(f"{base.title}: {of_variant.law}"):
                overall, at = fit_multiplier(x, y, replicates, offset, of_base.n_effective, request.E)
            rows.append({"kind": "overall", **named, **_doubted(overall, doubt)})
            for run, row in zip(runs, at, strict=False):
                which = {"size": _model(run), "training_seed": run.training_seed}
                rows.append({"kind": "at", **named, **which, **_doubted(row, doubt)})
    return rows, notes


def _doubted(numbers: Numbers, doubt: Status | None) -> Record:
    return {**flat(numbers), "status": first_of([numbers["status"], doubt])}


def _model(run: Run) -> str:
    """Its size, or along D and step its checkpoint or place."""
    return run.size if run.axis in (Axis.S, Axis.C) else run.revision or f"{run.x:.3g}"


def _over_surface(
    connection: duckdb.DuckDBPyConnection, base: Group, variant: Group, request: MultiplierKeys
) -> tuple[list[Record], list[str]]:
    """Compares two families over a surface in their common quantities: overall, then at each place.

    Empty where a family does not vary in size and tokens, tokens were repeated, or C is not 6 S D, as with experts.
    """
    pairs, notes = points_of(connection, base, variant, request)
    names, rows, doubts = names_of(base, variant, request.along), list[Record](), list[Status]()
    for group in (base, variant):
        doubts += [Status.mixed] * (group.is_mixed or group.has_same)
    for pair in pairs:
        both = [trained_of(each) for each in pair]
        unfit = any(of.runs.repeats or any(run.is_routed for run in of.members) for of in both)
        if unfit or not is_surface(both[0].runs, both[1].runs):
            return [], []
        shift = fit_shift(both[0].runs, both[1].runs, request.along)
        reasons = [*shift.reasons, *doubts, *(of.doubt for of in both)]
        named = {**names, "law": both[1].law, "k": both[1].k, "offset": "surface"}
        numbers = flat({"multiplier": shift.multiplier, "slope": shift.slope}) | {"p": shift.p, **shift.common}
        numbers |= dict(zip(("apart_from", "apart_to"), shift.apart or (None, None), strict=True))
        rows.append({"kind": "overall", **named, **numbers, "weights": shift.weights, **status_keys(reasons)})
        for at in shift.at:
            place = {"C": at.C, "S": at.S, "D": at.D, **flat({"multiplier": at.value})}
            rows.append({"kind": "at", **named, **place, "status": first_of([at.status, *reasons])})
    return rows, notes


def _result(base: Group, rows: Sequence[Record], notes: Sequence[str], axis: Axis) -> Result:
    overall = [row for row in rows if row["kind"] == "overall"]
    if not overall:
        return Result([base], sentences=["There is no quantity that both have."], notes=notes)
    names, main = overall[0], [row for row in overall if row["offset"] == overall[0]["offset"]]
    at = [row for row in rows if (row["kind"], row["offset"]) == ("at", names["offset"])]
    of = f", revision {names['revision']}" if names.get("revision") else ""
    size = "" if names["fixed_size"] is None else f" at size {names['fixed_size']}"
    about = f"{names['dataset']}: {names['variant']} against {names['base']}{of}, along {names['axis']}{size}"
    is_main = [row["offset"] == names["offset"] for row in overall]
    tables = [OVERALL.of("Multipliers overall", map(_told, overall), about, axis, brief=is_main)]
    tables += [MODELS.of("Multipliers one by one", map(_told, at), about, axis, brief=False)] if at else []
    said = map(_sentence, sorted(main, key=lambda row: law_order(row["law"], row["k"])))
    return Result([base], rows, tables, [*said], notes=notes)


def _sentence(row: Record) -> str:
    base, variant, title = row["base"], row["variant"], law_title(row["law"], row["k"])
    m, on = estimate_in(row, "multiplier"), f"On {row['dataset']} {variant}"
    if m.value is None:
        return f"{on} cannot be compared with {base} by {title}. {Status(row['status']).remedy}"
    said = f"{on} has the {title} that {base} has at {_ends(m)} times the {WORTH[row['axis']]}"
    if m.ends is not None:
        said += f", so {_shows(row, m.ends)}"
    if row["offset"] != "surface":
        return f"{said}."
    S, D = (f"{spoken(row[f'{axis}_from'])} to {spoken(row[f'{axis}_to'])}" for axis in "SD")
    said += f"; compared from {S} parameters and {D} tokens, by {row['n_base']} runs of {base} and "
    said += f"{row['n_variant']} of {variant}"
    slope = estimate_in(row, "slope")
    if slope.ends is not None and slope.leaves_out_0:
        way, ten = "grows" if slope.ends[0] > 0 else "shrinks", _ends(slope.through(lambda each: 10**each))
        said += f"; the multiplier {way} with scale, by a factor of {ten} for ten times the compute"
    if Status.families_differ in row["reasons"]:
        said += f"; their constants differ (p = {significant(row['p'], 2)}), so read the multiplier at each compute"
    return f"{said}."


def _shows(row: Record, ends: tuple[float, float]) -> str:
    """Says whether the variant pays: at the middle of the compute, and over a surface from where on or up to where."""
    verdict, how_much = "it pays" if ends[0] > 1 else "it costs", ""
    if ends[0] <= 1 <= ends[1]:
        verdict = "no difference shows"
    elif ends[1] > _HARDLY * ends[0]:
        how_much = ", by how much is hardly known"
    start, end = row.get("apart_from"), row.get("apart_to")
    is_above = end is not None and end > row["C_to"] * 0.999
    if start is None or end is None or (is_above and start < row["C_from"] * 1.001):
        return f"{verdict}{how_much}"
    where = f"from {short(start)} FLOPs on" if is_above else f"up to {short(end)} FLOPs"
    if start <= math.sqrt(row["C_from"] * row["C_to"]) <= end:
        return f"{verdict}{'' if estimate_in(row, 'slope').leaves_out_0 else ', shown'} {where}{how_much}"
    return f"{verdict}, but {where} it {'pays' if is_above == (row['slope'] > 0) else 'costs'}{how_much}"


def _ends(of: Estimate) -> str:
    if of.value is None or of.ends is None:
        return _THREE(of.value)
    value, lo, hi = told_apart(of.value, *of.ends)
    return f"{value} (95 %: {lo} to {hi})"


_HARDLY: Final = 10  # upper over lower end of an interval whose middle says little
_THREE: Final = in_digits(3)
_QUANTITY: Final = Column("quantity", "law")
OVERALL: Final = table_of(
    "overall", _QUANTITY,
    ("E", "offset", str, "of both laws, y = E + {c}·{x}^−α"),
    *interval("multiplier", "multiplier", _THREE,
     "{x} that the base needs for the same loss over that of the variant, which pays above 1"),
    *interval("slope", "slope", _THREE, "of ln multiplier in ln C; constant at 0"),
    ("for losses", "loss_from loss_to", ".3f"), ("α of base", "alpha_base", _THREE),
    ("α of variant", "alpha_variant", _THREE),
    ("p", "p", in_digits(2), "of a given E, or of one surface for both beside constants of their own"),
    STATUS,
    first="law multiplier status, slope, offset, alpha_variant, alpha_base, loss_from",
)  # fmt: skip
MODELS: Final = table_of(
    "models", _QUANTITY, ("model", "model"), ("loss", "loss", ".4f"),
    ("C", "C", short, "training FLOPs of the variant, 6 S D"),
    ("S", "S", amount), ("D", "D", amount), *interval("multiplier", "multiplier", _THREE),
    ("base needs", "x_base", short, "the {x} at which its law has that loss"),
    STATUS,
    first="law multiplier status, model loss C, x_base",
)  # fmt: skip


def _told(row: Record) -> Record:
    model = row.get("size") and size_name(row["size"])
    return row | {"law": law_title(row["law"], row["k"]), "offset": _OFFSETS[row["offset"]], "model": model}


QUESTION = Question(answer, select=_select, page=PAGE)
