"""Shows what a change is worth as tables: multipliers of each quantity overall, and at the loss of each model."""

from collections.abc import Iterator
from typing import Final

from rbpx.display.view import Column, Table, View, decimal, ends, magnitude, state, text, with_ends, written
from rbpx.display.vocabulary import decimals, law_title, short, significant, spoken
from rbpx.laws.families.multiplier import Multiplier, MultiplierLaw, Offset
from rbpx.laws.families.shift import At
from rbpx.laws.names import Axis
from rbpx.questions.multiplier.analysis import Compared, Worth, analyse, keep, model_name
from rbpx.questions.multiplier.surface import OverSurface, Shifted
from rbpx.questions.question import of_parts, one_by_one
from rbpx.runs.group import Run
from rbpx.runs.select.ways import in_size_and_tokens
from rbpx.status import Status

_OFFSETS: Final = {Offset.given: "given", Offset.shared: "one E", Offset.free: "own E", Offset.none: "E = 0"}
_Overall = tuple[Compared, MultiplierLaw]
_Model = tuple[Compared, Run, Multiplier]


@one_by_one
def tables(worth: Worth | OverSurface) -> Iterator[Table]:
    """Two families on every text that both were measured on: overall, then place by place or model by model."""
    if isinstance(worth, OverSurface):
        yield from _of_surface(worth)
        return
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


def _of_surface(over: OverSurface) -> Iterator[Table]:
    (base, variant), axis = over.names, over.axis
    about = f"{over.variant.first.dataset}: {variant} against {base} over sizes and tokens, along {axis.value}"
    note = "95 % intervals over runs, forms, bends and misfit; over documents too where they are measured."
    yield SURFACE.table("Multipliers over sizes and tokens", over.compared, about, axis, note)
    places = [(each, at) for each in over.compared for at in each.shift.at]
    if places:
        yield PLACES.table("Multipliers by compute", places, about, axis, _PLACED)


@one_by_one
def sentences(worth: Worth | OverSurface) -> Iterator[str]:
    """What a variant is worth over a surface and whether that changes with scale; what is not compared, and why."""
    yield from worth.notes
    if isinstance(worth, OverSurface):
        for each in worth.compared:
            yield from _said(worth.names, worth.axis, each)


def _said(names: tuple[str, ...], axis: Axis, of: Shifted) -> Iterator[str]:
    (base, variant), shift, common = names, of.shift, of.shift.common
    title = law_title(of.law, of.k)
    if common is None or shift.overall.ends is None or shift.slope.ends is None:
        yield f"{title}: {variant} and {base} cannot be compared over sizes and tokens: {of.status.label}."
        return
    lo, hi = shift.overall.ends
    ends = f"{_three(shift.overall.value)} ({_three(lo)} to {_three(hi)})"
    none = "" if lo > 1 or hi < 1 else ", so no difference shows"
    S, D = (f"{spoken(of[0])} to {spoken(of[1])}" for of in (common.S, common.D))
    yield (
        f"{title}: {variant} is worth {ends} times the {axis.value} of {base}{none}; compared from {S} parameters and "
        f"{D} tokens, by {common.n_base} runs of {base} and {common.n_variant} of {variant}."
    )
    if shift.slope.leaves_out_0:
        way = "grows" if (shift.slope.value or 0.0) > 0 else "shrinks"
        yield (
            f"{title}: the multiplier {way} with scale, by a factor of {_ten(shift.slope.value)} "
            f"({_ten(shift.slope.lo)} to {_ten(shift.slope.hi)}) for ten times the compute: quote it with its compute."
        )
    if Status.families_differ in of.reasons:
        p = significant(shift.p, 2)
        yield f"{title}: {variant} has other constants than {base} (p = {p}), so read the multiplier at each compute."


def _ten(slope: float | None) -> str:
    return _three(None if slope is None else 10**slope)


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
_PLACED: Final = (
    "The least, the middle and the most compute of the runs compared, at their mean tokens for a parameter, and ten "
    "times the most."
)
SURFACE: Final = View[Shifted](
    "surface",
    text("quantity", "law", lambda row: law_title(row.law, row.k)),
    with_ends(
        "multiplier", "multiplier", lambda row: row.shift.overall, _three,
        "{x} that the base needs for a loss over that of the variant, so above 1 the variant pays; at the middle "
        "compute of the runs compared",
    ),
    with_ends("slope", "slope", lambda row: row.shift.slope, _three, "of ln multiplier in ln C; constant at 0"),
    written(
        "p", "p", lambda row: row.shift.p, lambda value: significant(value, 2),
        "of one surface for both beside constants of their own; below 0.05 the runs speak against it", spare=1,
    ),
    state(lambda row: row.reasons or (Status.ok,)),
)  # fmt: skip
PLACES: Final = View[tuple[Shifted, At]](
    "places",
    text("quantity", "law", lambda row: law_title(row[0].law, row[0].k)),
    magnitude("C", "C", lambda row: row[1].C, "training FLOPs of the variant, 6 S D"),
    written("S", "S", lambda row: row[1].S, short, spare=2),
    written("D", "D", lambda row: row[1].D, short, spare=3),
    with_ends("multiplier", "multiplier", lambda row: row[1].value, _three),
    state(lambda row: row[1].status),
)  # fmt: skip
QUESTION = of_parts(analyse, keep, tables, sentences, together="all", select=in_size_and_tokens)
