"""Closure: judged forms in; how far each is off at the largest size, and what the closest says of each law, out."""

from collections.abc import Sequence

from rich.console import Console

from rbpx.analyses.closure.analysis import Closures
from rbpx.analyses.closure.results import FormResult, Held
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, percent, short, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.rank_form import rank_forms

_QUANTITIES = {"error_entropy": "H(P)", "cross_entropy": "CE"}


def show(results: Sequence[Closures]) -> None:
    """Print every form of each group, then the closest one, quantity by quantity."""
    screen = console()
    for closures in results:
        runs = closures.group.runs
        if not closures.forms:
            screen.print(f"{closures.group.title}: no form was fitted ({status_name(closures.status)}).")
            continue
        title = f"{closures.group.title}: {runs[-1].size}, from {runs[0].size} to {_before(closures)}"
        columns = ["form", "P", "off", "own fit", "H(P)", "CE", "inside", "behind", "95 %", "alpha_1", "alpha_CE"]
        spare = ("95 %", "own fit", "alpha_1", "alpha_CE", "P")
        table = grid(title, [*columns, "closes"], spare=spare)
        for form in closures.forms:
            table.add_row(*_row(form))
        put(screen, table)
        screen.print(_verdict(closures), soft_wrap=True)
        _print_closest(screen, closures)
    ties = results[0].group.ties.value
    print_notes(
        screen,
        f"Ties {ties}. Each form is fitted to all sizes but the largest at once, each of its P parameters on a line in "
        "ln S. Off: median error of what it says of the largest size, over -ln RBP_k up to the largest k "
        "whose law stands, H(P) and CE; own fit: the same when fitted to the largest size itself. H(P) and CE: their "
        "errors. Inside: how many lie in their 95 % intervals (documents and models); a form closes if all do. Behind: "
        "nats a token of the largest size that it loses to the most likely form, with its interval over documents. "
        "alpha_1 and alpha_CE: exponents that it implies. A form without kinds of tokens says that CE is H(P).",
        (form.status for closures in results for form in closures.forms),
    )


def _before(closures: Closures) -> str:
    S = closures.group.runs[-1].non_embedding_params
    return next(run.size for run in reversed(closures.group.runs) if run.non_embedding_params < S)


def _row(form: FormResult) -> list[str]:
    errors = {held.quantity: percent(held.error) for held in form.held if held.k is None}
    value, lo, hi = form.behind or (None, None, None)
    return [
        form.label,
        str(form.n_parameters),
        UNKNOWN if form.error is None else f"{form.error:.1%}",
        UNKNOWN if form.error_own is None else f"{form.error_own:.1%}",
        errors.get("error_entropy", UNKNOWN),
        errors.get("cross_entropy", UNKNOWN),
        f"{form.n_inside}/{form.n_scored}",
        "best" if value == 0 else number(value),
        span(lo, hi),
        number(form.alpha_rbp_1, 3),
        number(form.alpha_cross_entropy, 3),
        "yes" if form.closes else "no",
    ]


def _verdict(closures: Closures) -> str:
    names = [form.label for form in closures.closing]
    closest = closures.forms[0]
    off = UNKNOWN if closest.error is None else f"{closest.error:.1%}"
    separate = UNKNOWN if closures.separate is None else f"{closures.separate:.1%}"
    reach = "no k" if closures.reach is None else f"k up to {closures.reach:,}"
    what = f"close all laws ({reach}): {', '.join(names)}" if names else f"No form closes all laws ({reach})"
    line = f"{what}; the closest, {closest.label}, is off by {off}, separate laws by {separate}."
    measured = closures.exponents
    if measured is not None and measured.alpha is not None and closest.difference is not None:
        line += (
            f" alpha of -ln RBP_1 less that of CE: {closest.difference:.3f} by it, {measured.alpha:.3f} "
            f"({span(measured.alpha_lo, measured.alpha_hi, 3)}) measured."
        )
    return f"{closures.group.title}: {line}"


def _print_closest(screen: Console, closures: Closures) -> None:
    closest = closures.forms[0]
    columns = ["quantity", "measured", "predicted", "95 % interval", "error", "separate", "own fit", "95 % of it"]
    title = f"{closures.group.title}: {closest.label}, {rank_forms()[closest.name].equation}"
    table = grid(title, [*columns, "inside"], spare=("95 % of it", "own fit", "separate"))
    for held in closest.held:
        table.add_row(*_quantity(held))
    put(screen, table)


def _quantity(held: Held) -> list[str]:
    inside = "yes" if held.inside else "no"
    return [
        _QUANTITIES.get(held.quantity, f"-ln RBP_{held.k}"),
        short(held.measured),
        short(held.predicted),
        f"{short(held.predicted_lo)}..{short(held.predicted_hi)}",
        percent(held.error),
        percent(held.separate / held.measured - 1),
        percent(held.own / held.measured - 1),
        f"{short(held.own_lo)}..{short(held.own_hi)}",
        inside if held.scored else f"({inside})",
    ]
