"""Emergence: windows and laws of fitted groups in, measured beside predicted and the sizes of crossings out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.emergence.analysis import LAGS, LEVELS, Emergence, Emergences
from rbpx.analyses.emergence.crossing import Crossing
from rbpx.display.constants import constant, ends_of, sizes_of
from rbpx.display.tables import UNKNOWN, console, grid, number, percent, put, remedies, short, span, status_name
from rbpx.groups.selection import Group
from rbpx.status import Status


def show(found: Sequence[Emergences]) -> None:
    """Print for each k the windows of every size beside what independence predicts, the laws, and the crossings."""
    screen = console()
    for emergences in found:
        for emergence in emergences.found:
            _print_windows(screen, emergences.group, emergence)
            _print_laws(screen, emergences.group, emergence)
        if not emergences.found:
            screen.print(f"{emergences.group.title}: no windows of more than one token are known.", soft_wrap=True)
    screen.print(
        f"p_N: share of windows of N consecutive tokens whose ranks are all at most k; ties "
        f"{found[0].group.ties.value}. Independent: RBP_k^N. Corrected: beta-binomial with the measured mean and "
        "autocorrelation of hits. S at p with a 95 % interval, an end of – where it is not bounded.",
        soft_wrap=True,
    )
    statuses: set[Status] = {law.fit.status for each in found for e in each.found for law in e.laws}
    statuses |= {c.status for each in found for e in each.found for law in e.laws for c in law.crossings}
    for line in remedies(statuses):
        screen.print(line, soft_wrap=True)


def _print_windows(screen: Console, group: Group, found: Emergence) -> None:
    table = grid(f"{group.title}, k = {found.k}: windows", ["size", *(f"p_{n}" for n in found.lengths)])
    for run, p_N in zip(group.runs, found.measured_MN, strict=True):
        table.add_row(escape(run.size), *map(_share, p_N))
    table.add_section()
    name = escape(group.runs[-1].size)
    table.add_row(f"{name} independent", *map(_share, found.independent_MN[-1]))
    if found.dependence:
        table.add_row(f"{name} corrected", *map(_share, found.dependence[-1].corrected_N))
        table.add_row(f"{name} N effective", *(short(n) for n in found.dependence[-1].effective_N))
    put(screen, table)
    if found.dependence:
        lags = zip(LAGS, found.dependence[-1].autocorrelation, strict=True)
        told = ", ".join(f"{number(rho, 3)} at {lag}" for lag, rho in lags)
        screen.print(f"Autocorrelation of the hits of {name} by lag: {told}.\n", soft_wrap=True)


def _share(p: float) -> str:
    return short(float(p))


def _print_laws(screen: Console, group: Group, found: Emergence) -> None:
    columns = ["N", "alpha", "95 % interval", "C", "95 % of C", "R2 of ln(-ln p)", "R2 of p", "backtest", "sizes"]
    title = f"{group.title}, k = {found.k}: -ln p_N = C · S^-alpha for each N, and C · N · S^-alpha"
    table = grid(title, [*columns, "over S", "status"], spare=("C", "95 % of C", "backtest", "over S"))
    for law in found.laws:
        fit, ends = law.fit, span(law.fit.alpha_lo, law.fit.alpha_hi)
        row = [number(fit.alpha), ends, *constant(fit), number(fit.r2, 3), "", percent(fit.backtest_error)]
        table.add_row(str(law.n), *row, *sizes_of(fit), status_name(fit.status))
    joint, ends = found.joint, span(found.joint.alpha_lo, found.joint.alpha_hi)
    r2 = [number(joint.r2_lnln, 3), number(joint.r2_p, 3)]
    C = [short(joint.C), ends_of(joint.C_lo, joint.C_hi)]
    table.add_row("joint", number(joint.alpha), ends, *C, *r2, "", str(joint.n_sizes), "", status_name(joint.status))
    if joint.alpha_within is not None:
        table.add_row("joint, own C", number(joint.alpha_within))
    put(screen, table)
    crossing = [law for law in found.laws if any(c.status is Status.ok for c in law.crossings)]
    if crossing:
        columns = ["N", *(f"S at p = {level}" for level in LEVELS)]
        table = grid(f"{group.title}, k = {found.k}: sizes at which p_N reaches a level, by the law of that N", columns)
        for law in crossing:
            table.add_row(str(law.n), *map(_crossing, law.crossings))
        put(screen, table)


def _crossing(crossing: Crossing) -> str:
    if crossing.status is not Status.ok:
        return UNKNOWN
    lo, hi = (UNKNOWN if end is None else f"{end:.0e}".replace("e+", "e") for end in (crossing.lo, crossing.hi))
    return f"{lo}..{hi}" if crossing.S is None else f"{crossing.S:.1e} ({lo}..{hi})".replace("e+", "e")
