"""The design of trainings: what it can tell, and the runs to train next, in words and a table."""

from collections.abc import Sequence

from rbpx.analyses.design.analysis import Designed, Designs
from rbpx.counts import number_of
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import number, percent, rough, short
from rbpx.display.tables import console, grid, print_notes, put


def show(results: Sequence[Designs]) -> None:
    """Print a line for each design and a table of the runs to train next."""
    screen = console()
    for designs in results:
        for each in designs.of:
            name = law_name(each.trained.law, each.trained.k)
            status = status_name(each.status)
            screen.print(f"{designs.group.title}, {name}, {each.fit.form}: {status}", style="bold", soft_wrap=True)
            screen.print(_judged(each), markup=False, soft_wrap=True)
            if each.chosen:
                _print_chosen(each)
            screen.print()
    chosen = any(each.chosen for designs in results for each in designs.of)
    notes = (
        "The sd is that of ln D about its line on ln S, or of ln S on ln D where that is less: below 0.1 tokens are a "
        "function of size. Condition: of the derivatives of ln y by the constants, each of length 1."
    )
    of_runs = (
        " sd: standard deviation of what is asked for, before and after the run; the covariance of the constants by "
        "the information of the fit, linearised. A run named twice is one with another seed."
    )
    print_notes(
        screen,
        notes + (of_runs if chosen else ""),
        (each.status for designs in results for each in designs.of),
    )


def _judged(each: Designed) -> str:
    design, (least, greatest) = each.fit.design, each.ratios
    if design is None:
        return "no point"
    condition = "" if design.condition is None else f", condition {short(design.condition)}"
    return (
        f"{number_of(each.fit.n_points, 'point')} of {number_of(each.fit.n_runs, 'training')}, "
        f"{number_of(design.n_S, 'size')}, {number_of(design.n_D, 'number')} of tokens; D/S from {short(least)} to "
        f"{short(greatest)}, sd {rough(min(design.sd_D, design.sd_S))}{condition}"
    )


def _print_chosen(each: Designed) -> None:
    columns = ["run", "S", "D", "C = 6 S D", "sd before", "after", "narrower by", "per 1e18 FLOPs"]
    table = grid(f"To narrow {each.target}", columns, spare=("per 1e18 FLOPs", "sd before"))
    for rank, run in enumerate(each.chosen, 1):
        table.add_row(
            str(rank),
            short(run.S),
            short(run.D),
            short(run.C),
            number(run.sd_before, 4),
            number(run.sd_after, 4),
            percent(run.narrowed).lstrip("+"),
            rough(run.per_flop * 1e18),
        )
    put(console(), table)
