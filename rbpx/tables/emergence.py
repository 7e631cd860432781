"""Emergence: windows and laws of fitted groups in, measured beside predicted and the sizes of crossings out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.emergence import LAGS, LEVELS, Emergence, Emergences
from rbpx.analyses.selection import Group
from rbpx.laws.crossing import Crossing
from rbpx.status import Status
from rbpx.tables.plain import UNKNOWN, console, grid, number, put, remedies, short, span, status_name


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
        "autocorrelation of hits. S at p: size at which the law reaches it, with a 95 % interval; – where an end is "
        "not bounded. R2 of the joint law is of ln(-ln p), then of p.",
        soft_wrap=True,
    )
    statuses = {law.fit.status for each in found for e in each.found for law in e.laws}
    statuses |= {c.status for each in found for e in each.found for law in e.laws for c in law.crossings}
    for line in remedies(statuses):
        screen.print(line, soft_wrap=True)


def _print_windows(screen: Console, group: Group, found: Emergence) -> None:
    table = grid(f"{group.title}, k = {found.k}: windows", ["size", *(f"p_{n}" for n in found.lengths)])
    table.columns[0].min_width = 14
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
    columns = ["N", "alpha", "95 % interval", "R2", *(f"S at p = {level}" for level in LEVELS), "status"]
    table = grid(f"{group.title}, k = {found.k}: -ln p_N = C · S^-alpha", columns, left=0)
    for law in found.laws:
        fit = law.fit
        crossings = [_crossing(crossing) for crossing in law.crossings]
        table.add_row(
            str(law.n), number(fit.alpha, 3), span(fit.alpha_lo, fit.alpha_hi, 3), number(fit.r2, 3), *crossings,
            status_name(fit.status),
        )  # fmt: skip
    joint = found.joint
    table.add_section()
    r2 = f"{number(joint.r2_lnln, 2)}, {number(joint.r2_p, 2)}"
    ends = span(joint.alpha_lo, joint.alpha_hi, 3)
    table.add_row("joint", number(joint.alpha, 3), ends, r2, "", "", "", status_name(joint.status))
    put(screen, table)


def _crossing(crossing: Crossing) -> str:
    if crossing.status is not Status.ok:
        return UNKNOWN
    lo, hi = (UNKNOWN if end is None else f"{end:.0e}".replace("e+", "e") for end in (crossing.lo, crossing.hi))
    return f"{lo}..{hi}" if crossing.S is None else f"{crossing.S:.1e} ({lo}..{hi})".replace("e+", "e")
