"""What a change is worth: multipliers of each quantity overall, and at the loss of each model of the variant."""

from collections.abc import Sequence

from rich.console import Console

from rbpx.analyses.multiplier.analysis import Worth
from rbpx.display.names import law_name
from rbpx.display.numbers import UNKNOWN, magnitude_span, short, significant, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.multiplier import Offset
from rbpx.status import Status

_OFFSETS = {Offset.shared: "one E", Offset.free: "own E", Offset.none: "E = 0"}
_WHAT = {"S": "parameters", "C": "compute", "D": "tokens", "step": "steps"}


def show(results: Sequence[Worth]) -> None:
    """Print each text: overall, then model by model under one E."""
    screen = console()
    for worth in results:
        _print_overall(screen, worth)
        _print_models(screen, worth)
        for note in worth.notes:
            screen.print(note, soft_wrap=True)
    what = _WHAT[results[0].axis]
    print_notes(
        screen,
        f"Multiplier: {what} that the base needs over {what} that the variant needs for the same loss; above 1 the "
        "variant pays. Overall: geometric mean over losses of the variant's models that both measured around. One E "
        "for both laws, an E each, or none. 95 % intervals over models and documents, these drawn alike for both.",
        [law.status for worth in results for each in worth.compared for law in each.laws]
        + [at.status for worth in results for each in worth.compared for at in each.laws[0].at],
    )


def _title(worth: Worth) -> str:
    base, variant = worth.names
    first = worth.variant.first
    at = "" if worth.variant.fixed_size is None else f" at size {worth.variant.fixed_size}"
    of = "" if first.revision is None else f", revision {first.revision}"
    return f"{first.dataset}: {variant} against {base}{of}, along {worth.axis}{at}"


def _print_overall(screen: Console, worth: Worth) -> None:
    columns = ["quantity", "E", "multiplier", "95 %", "for losses", "alpha of base", "of variant", "status"]
    table = grid(f"{_title(worth)}, overall", columns, left=2, spare=("of variant", "alpha of base", "for losses"))
    for compared in worth.compared:
        for law in compared.laws:
            alphas = law.alpha or (None, None)
            table.add_row(
                law_name(compared.law, compared.k) if law.offset is Offset.shared else "",
                _OFFSETS[law.offset],
                significant(law.overall.value, 3),
                magnitude_span(law.overall.lo, law.overall.hi),
                UNKNOWN if law.supported is None else span(*law.supported, 3),
                *(significant(alpha, 3) for alpha in alphas),
                law.status.label,
            )
    put(screen, table)


def _print_models(screen: Console, worth: Worth) -> None:
    columns = ["quantity", "model", "loss", "multiplier", "95 %", "base needs", "status"]
    table = grid(f"{_title(worth)}, model by model, one E", columns, left=2, spare=("base needs",))
    for compared in worth.compared:
        law = compared.laws[0]
        for place, (size, at) in enumerate(zip(compared.sizes, law.at, strict=False)):
            table.add_row(
                "" if place else law_name(compared.law, compared.k),
                size,
                significant(at.loss, 4),
                UNKNOWN if at.status is Status.unreachable else significant(at.value.value, 3),
                magnitude_span(at.value.lo, at.value.hi),
                short(at.x_base),
                at.status.label,
            )
    if table.row_count:
        put(screen, table)
