"""Emergence: windows and laws of fitted groups in; measured and predicted shares, and sizes of crossings, out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.emergence.analysis import LAGS, LEVELS, Emergence, Emergences
from rbpx.analyses.emergence.crossing import Crossing
from rbpx.display.fit_cells import constant, sizes_of
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, magnitude_span, number, percent, short, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.groups.selection import Group
from rbpx.status import Status


def show(results: Sequence[Emergences]) -> None:
    """Print for each k the shares of windows of every size beside those under independence, the laws, the crossings."""
    screen = console()
    for emergences in results:
        for emergence in emergences.by_k:
            _print_windows(screen, emergences.group, emergence)
            _print_laws(screen, emergences.group, emergence)
        if not emergences.by_k:
            screen.print(f"{emergences.group.title}: no windows of more than one token are known.", soft_wrap=True)
    statuses: set[Status] = {law.fit.status for each in results for e in each.by_k for law in e.laws}
    statuses |= {c.status for each in results for e in each.by_k for law in e.laws for c in law.crossings}
    print_notes(
        screen,
        f"p_N: share of windows of N consecutive tokens whose ranks are all at most k; ties "
        f"{results[0].group.ties.value}. Independent: RBP_k^N. Corrected: beta-binomial with the measured mean and "
        "autocorrelation of hits. S at p: with a 95 % interval, – for an end that is unbounded.",
        statuses,
    )


def _print_windows(screen: Console, group: Group, result: Emergence) -> None:
    table = grid(f"{group.title}, k = {result.k}: windows", ["size", *(f"p_{n}" for n in result.lengths)])
    for run, p_N in zip(group.runs, result.measured_MN, strict=True):
        table.add_row(escape(run.size), *map(_share, p_N))
    table.add_section()
    name = escape(group.runs[-1].size)
    table.add_row(f"{name} independent", *map(_share, result.independent_MN[-1]))
    if result.dependence:
        table.add_row(f"{name} corrected", *map(_share, result.dependence[-1].corrected_N))
        table.add_row(f"{name} N effective", *(short(n) for n in result.dependence[-1].effective_N))
    put(screen, table)
    if result.dependence:
        lags = zip(LAGS, result.dependence[-1].autocorrelation, strict=True)
        by_lag = ", ".join(f"{number(rho, 3)} at {lag}" for lag, rho in lags)
        screen.print(f"Autocorrelation of the hits of {name} by lag: {by_lag}.\n", soft_wrap=True)


def _share(p: float) -> str:
    return short(float(p))


def _print_laws(screen: Console, group: Group, result: Emergence) -> None:
    columns = ["N", "alpha", "95 % interval", "C", "95 % of C", "R2 of ln(-ln p)", "R2 of p", "backtest", "sizes"]
    title = f"{group.title}, k = {result.k}: -ln p_N = C · S^-alpha for each N, and C · N · S^-alpha"
    table = grid(title, [*columns, "over S", "status"], spare=("C", "95 % of C", "backtest", "over S"))
    for law in result.laws:
        fit, ends = law.fit, span(law.fit.alpha_lo, law.fit.alpha_hi)
        row = [number(fit.alpha), ends, *constant(fit), number(fit.r2, 3), "", percent(fit.backtest_error)]
        table.add_row(str(law.n), *row, *sizes_of(fit), status_name(fit.status))
    joint, ends = result.joint, span(result.joint.alpha_lo, result.joint.alpha_hi)
    r2 = [number(joint.r2_lnln, 3), number(joint.r2_p, 3)]
    C = [short(joint.C), magnitude_span(joint.C_lo, joint.C_hi)]
    table.add_row("joint", number(joint.alpha), ends, *C, *r2, "", str(joint.n_sizes), "", status_name(joint.status))
    if joint.alpha_within is not None:
        table.add_row("joint, own C", number(joint.alpha_within))
    put(screen, table)
    crossing = [law for law in result.laws if any(c.status is Status.ok for c in law.crossings)]
    if crossing:
        columns = ["N", *(f"S at p = {level}" for level in LEVELS)]
        table = grid(
            f"{group.title}, k = {result.k}: sizes at which p_N reaches a level, by the law of that N", columns
        )
        for law in crossing:
            table.add_row(str(law.n), *map(_crossing, law.crossings))
        put(screen, table)


def _crossing(crossing: Crossing) -> str:
    if crossing.status is not Status.ok:
        return UNKNOWN
    lo, hi = (UNKNOWN if end is None else f"{end:.0e}".replace("e+", "e") for end in (crossing.lo, crossing.hi))
    return f"{lo}..{hi}" if crossing.S is None else f"{crossing.S:.1e} ({lo}..{hi})".replace("e+", "e")
