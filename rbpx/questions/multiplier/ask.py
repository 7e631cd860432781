"""Answers what two families need for the same loss on one text, under every choice of E or over whole surfaces."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import View, decimal, ends, magnitude, state, text, with_ends, written
from rbpx.display.vocabulary import decimals
from rbpx.errors import RbpxError
from rbpx.laws.families.multiplier import MultiplierLaw, Offset, fit_multiplier
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Axis
from rbpx.questions.multiplier.sides import names_of, on_each_text, paired, points_of, sides_of, text_of
from rbpx.questions.multiplier.surface import PAYS, QUANTITY, THREE, over_surface, p_of
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import naming
from rbpx.runs.group import Group, Run
from rbpx.runs.select.along import AlongGroup, best_of_budgets
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.runs.select.ways import in_size_and_tokens
from rbpx.store.store import Record

_OFFSETS: Final = {Offset.given: "given", Offset.shared: "one E", Offset.free: "own E", Offset.none: "E = 0"}


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Result]:
    """Compare the two families on every text that both were measured on; no law is stored.

    Over all sizes and tokens where both families have runs that vary in either, along the axis elsewhere.

    Raises:
        RbpxError: a side is not named, is not there or is several groups on one text, or they share no text.
    """
    sides = sides_of(groups, request)
    surfaces = [group for group in groups if type(group) is TrainingGroup]
    found = [
        over_surface(connection, bases[0], variants[0], request)
        for bases, variants in on_each_text(surfaces, sides)
        if len(bases) == len(variants) == 1
    ]
    parts = [each for each in found if each is not None]
    done, along_C = {text_of(each.groups[0]) for each in parts}, request.axis is Axis.C
    rest = [group for group in groups if type(group) is not TrainingGroup and text_of(group) not in done]
    rest = [best_of_budgets(group) if along_C and isinstance(group, AlongGroup) else group for group in rest]
    for bases, variants in on_each_text(rest, sides):
        parts += [_along(connection, *both, request) for both in paired(bases, variants, sides)]
    if parts:
        return [_as_one(parts)]
    for side in sides:
        if not any(map(side.has, groups)):
            known = ", ".join(dict.fromkeys(group.first.family for group in groups))
            raise RbpxError(f"{side} is not in the store; families: {known}")
    raise RbpxError("base and variant share no text read alike; measure both on one text, under one protocol")


def _as_one(parts: Sequence[Result]) -> Result:
    def every(name: str) -> list[Any]:
        return [each for part in parts for each in getattr(part, name)]

    return Result(every("groups"), every("rows"), every("tables"), every("sentences"))


def _along(connection: duckdb.DuckDBPyConnection, base: Group, variant: Group, request: Request) -> Result:
    """Compare two groups along an axis, under every choice of E: overall, then model by model."""
    pairs, notes = points_of(connection, base, variant, request)
    names = names_of(base, variant, base.axis) | {"revision": variant.first.revision}
    offsets = [each for each in Offset if each is not Offset.given or request.E is not None]
    rows: list[Record] = []
    for pair in pairs:
        law, k, runs = pair[1].law, pair[1].k, sorted(pair[1].runs, key=lambda run: run.x or 0.0)
        x, y, replicates = ([getattr(points, name) for points in pair] for name in ("S_N", "y_N", "y_BN"))
        for offset in offsets:
            with naming(f"{base.title}: {law}"):
                fitted = fit_multiplier(x, y, replicates, offset, pair[0].n_documents, request.E)
            rows += _rows({**names, "law": law, "k": k, "offset": offset.value}, fitted, runs)
    overall = [row for row in rows if row["kind"] == "overall"]
    models = [row for row in rows if (row["kind"], row["offset"]) == ("at", offsets[0].value)]
    of = "" if names["revision"] is None else f", revision {names['revision']}"
    at = "" if names["fixed_size"] is None else f" at size {names['fixed_size']}"
    about = f"{names['dataset']}: {names['variant']} against {names['base']}{of}, along {names['axis']}{at}"
    note = "95 % intervals over models and documents; the same documents are drawn for both families."
    title = f"Multipliers model by model, {'one' if request.E is None else 'given'} E"
    tables = [
        OVERALL.table("Multipliers overall", overall, about, base.axis, note),
        MODELS.table(title, models, about, base.axis),
    ]
    return Result([base], rows, tables, notes)


def _rows(named: Record, law: MultiplierLaw, runs: Sequence[Run]) -> Iterator[Record]:
    """The multiplier under one choice of E, of kind `overall` and, for each model of the variant, `at`."""
    both = {"loss_from loss_to": law.supported, "alpha_base alpha_variant": law.alpha, "E_base E_variant": law.E}
    row: Record = {"kind": "overall", **named, **by_name(multiplier=law.overall)}
    for keys, values in both.items():
        row |= dict(zip(keys.split(), values or (None, None), strict=True))
    row |= {"residual_sd": law.residual_sd, "status": law.status.value}
    yield row if law.p is None else row | {"p": law.p}
    for run, at in zip(runs, law.at, strict=False):
        row = {"kind": "at", **named, "size": _model(run), "training_seed": run.training_seed}
        row |= {"loss": at.loss, "x_base": at.x_base, "x_variant": at.x_variant}
        yield row | by_name(multiplier=at.value) | {"status": at.status.value}


def _model(run: Run) -> str:
    """The name of a model of the variant: its size; along D and step its checkpoint or place on the axis."""
    return run.size if run.axis in (Axis.S, Axis.C) else run.revision or f"{run.x:.3g}"


OVERALL: Final = View[Record](
    "overall",
    QUANTITY,
    text("E", "offset", lambda row: _OFFSETS[row["offset"]], "of both laws, y = E + {c}·{x}^−α"),
    with_ends(
        "multiplier", "multiplier", None, THREE,
        f"{PAYS}; geometric mean over the losses of the variant's models that lie between measured losses of both "
        "families",
    ),
    ends("loss_from loss_to", None, decimals(3), "for losses", spare=3),
    written("α of base", "alpha_base", None, THREE, spare=2),
    written("α of variant", "alpha_variant", None, THREE, spare=1),
    p_of("of an E that is given, beside one that both share; below 0.05 the models speak against it", spare=4),
    state(),
)  # fmt: skip
MODELS: Final = View[Record](
    "models",
    QUANTITY,
    text("model", "model", lambda row: row["size"]),
    decimal("loss", "loss"),
    with_ends("multiplier", "multiplier", None, THREE),
    magnitude("base needs", "x_base", means="the {x} at which its law has that loss", spare=2),
    state(),
)
QUESTION = Question(answer, select=in_size_and_tokens)
