"""Shows what a change is worth as tables: multipliers of each quantity overall, and at the loss of each model."""

from collections.abc import Iterator
from typing import Final

from rbpx.analyses.multiplier.analysis import Compared, Worth, analyse, keep, model_name
from rbpx.analyses.question import Question, one_by_one
from rbpx.display.view import Column, Table, View, decimal, ends, magnitude, state, text, with_ends, written
from rbpx.display.vocabulary import decimals, law_title, significant
from rbpx.groups.group import Run
from rbpx.laws.families.multiplier import Multiplier, MultiplierLaw, Offset

_OFFSETS: Final = {Offset.given: "given", Offset.shared: "one E", Offset.free: "own E", Offset.none: "E = 0"}
_Overall = tuple[Compared, MultiplierLaw]
_Model = tuple[Compared, Run, Multiplier]


@one_by_one
def tables(worth: Worth) -> Iterator[Table]:
    """Two families on every text that both were measured on: overall, then model by model under one E."""
    about, axis = _about(worth), worth.group.axis
    note = "95 % intervals over models and documents; the same documents are drawn for both families."
    laws = [(each, law) for each in worth.compared for law in each.laws]
    models = [(each, *of) for each in worth.compared for of in zip(each.runs, each.laws[0].at, strict=False)]
    yield OVERALL.table("Multipliers overall", laws, about, axis, note)
    of = "given" if any(law.offset is Offset.given for _, law in laws) else "one"
    yield MODELS.table(f"Multipliers model by model, {of} E", models, about, axis)


def _about(worth: Worth) -> str:
    (base, variant), first, size = worth.names, worth.variant.first, worth.variant.fixed_size
    of = "" if first.revision is None else f", revision {first.revision}"
    at = "" if size is None else f" at size {size}"
    return f"{first.dataset}: {variant} against {base}{of}, along {worth.group.axis.value}{at}"


@one_by_one
def sentences(worth: Worth) -> tuple[str, ...]:
    """What is not compared, and why."""
    return worth.notes


def _three(value: float | None) -> str:
    return significant(value, 3)


QUANTITY: Final[Column[_Overall | _Model]] = text("quantity", "law", lambda row: law_title(row[0].law, row[0].k))
OVERALL: Final = View[_Overall](
    "overall",
    QUANTITY,
    text("E", "offset", lambda row: _OFFSETS[row[1].offset], "of both laws, y = E + {c}·{x}^−α"),
    with_ends(
        "multiplier", "multiplier", lambda row: row[1].overall, _three,
        "{x} that the base needs for a loss over that of the variant, so above 1 the variant pays; geometric mean "
        "over the losses of the variant's models that lie between measured losses of both families",
    ),
    ends("loss_from loss_to", lambda row: row[1].supported or (None, None), decimals(3), "for losses", spare=3),
    written("α of base", "alpha_base", lambda row: (row[1].alpha or [None])[0], _three, spare=2),
    written("α of variant", "alpha_variant", lambda row: (row[1].alpha or [None])[-1], _three, spare=1),
    written(
        "p", "p", lambda row: row[1].p, lambda value: significant(value, 2),
        "of an E that is given, beside one that both share; below 0.05 the models speak against it", spare=4,
    ),
    state(lambda row: row[1].status),
)  # fmt: skip
MODELS: Final = View[_Model](
    "models",
    QUANTITY,
    text("model", "model", lambda row: model_name(row[1])),
    decimal("loss", "loss", lambda row: row[2].loss),
    with_ends("multiplier", "multiplier", lambda row: row[2].value, _three),
    magnitude("base needs", "x_base", lambda row: row[2].x_base, "the {x} at which its law has that loss", 2),
    state(lambda row: row[2].status),
)  # fmt: skip
QUESTION = Question(analyse, keep, tables, sentences)
