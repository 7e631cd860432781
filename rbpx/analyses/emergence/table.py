"""Emergence: windows and laws of fitted groups in; measured and predicted shares, and sizes of crossings, out."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.emergence.analysis import LAGS, LEVELS, Emergence, Emergences
from rbpx.analyses.emergence.crossing import Crossing
from rbpx.display.along import in_axis, place, place_heading, print_group_notes
from rbpx.display.fit_cells import constant, sizes_of
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, magnitude_span, number, percent, short, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.groups.group import Group
from rbpx.laws.names import Axis
from rbpx.laws.verdict import FAR
from rbpx.status import Status


def show(results: Sequence[Emergences]) -> None:
    """Print for each group what every k and N comes to; one k is printed with all its sizes, levels and constants."""
    screen = console()
    for emergences in results:
        if not emergences.by_k:
            screen.print(f"{emergences.group.title}: no windows of more than one token are known.", soft_wrap=True)
        elif len(emergences.by_k) == 1:
            _print_windows(screen, emergences.group, emergences.by_k[0])
            _print_laws(screen, emergences.group, emergences.by_k[0])
        else:
            _print_summary(screen, emergences)
    shown, axis = [emergence for each in results for emergence in each.by_k], results[0].group.axis.value
    for line in dict.fromkeys(line for each in results for line in _bends(each)):
        screen.print(line, soft_wrap=True)
    ask = " One k, as k=10, is printed with every size and level." if any(len(e.by_k) > 1 for e in results) else ""
    print_notes(
        screen,
        "p_N: share of windows of N consecutive tokens whose ranks are all at most k; ties "
        f"{results[0].group.ties.value}. Independent: RBP_k^N. Laws: -ln p_N = C {axis}^-alpha for each N, with R2 of "
        "ln(-ln p); pooled: one alpha and a constant for each N, from the counts of windows, p = 0 included; C N: one "
        "constant, times N. S at p: with a 95 % interval, – for an end that is unbounded; outside the sizes over "
        f"forms, as in predict; * more than {FAR} times outside.{ask}",
        (status for emergence in shown for status in _statuses(emergence)),
    )
    print_group_notes(screen, [each.group for each in results])


def _statuses(emergence: Emergence) -> Iterator[Status]:
    for law in emergence.laws:
        yield law.fit.status
        yield from (crossing.status for crossing in law.crossings if crossing.has_numbers)
    yield from (emergence.pooled.status, emergence.joint.status)


def _bends(result: Emergences) -> Iterator[str]:
    """Why a pooled law bends, a line for each group."""
    said = [f"k = {e.k} ({', '.join(one.name for one in e.pooled.bent)})" for e in result.by_k if e.pooled.bent]
    if said:
        yield f"{result.group.title}: the pooled law bends at {', '.join(said)}."


def _print_summary(screen: Console, result: Emergences) -> None:
    columns = ["k", "N", "smallest", "largest", "independent", "alpha", "95 % interval", "S at p = 0.5", "status"]
    axis = result.group.axis
    table = grid(
        f"{result.group.title}: p_N at the smallest and the largest {axis.value}, and its laws",
        [in_axis(column, axis) for column in columns],
        spare=("independent", in_axis("S at p = 0.5", axis)),
    )
    for emergence in result.by_k:
        unseen = []
        for at, law in enumerate(emergence.laws):
            p_M = emergence.measured_MN[:, at]
            if not (p_M > 0).any():
                unseen.append(str(law.n))
                continue
            shares = [_share(p_M[0]), _share(p_M[-1]), _share(emergence.independent_MN[-1, at])]
            crossing = _crossing(law.crossings[LEVELS.index(0.5)])
            table.add_row(
                str(emergence.k),
                str(law.n),
                *shares,
                number(law.fit.alpha),
                span(law.fit.alpha_lo, law.fit.alpha_hi),
                crossing,
                status_name(law.fit.status),
            )
        if unseen:
            table.add_row(str(emergence.k), ", ".join(unseen), "0", "0")
        for name, fit in (("pooled", emergence.pooled), ("C N", emergence.joint)):
            ends = span(fit.alpha_lo, fit.alpha_hi)
            table.add_row(str(emergence.k), name, "", "", "", number(fit.alpha), ends, "", status_name(fit.status))
    put(screen, table)


def _print_windows(screen: Console, group: Group, result: Emergence) -> None:
    columns = ["size", *place_heading(group.axis), *(f"p_{n}" for n in result.lengths)]
    table = grid(f"{group.title}, k = {result.k}: windows", columns)
    for run, p_N in zip(group.runs, result.measured_MN, strict=True):
        table.add_row(escape(run.size), *place(run), *map(_share, p_N))
    table.add_section()
    name = escape(group.runs[-1].size)
    empty = [""] * len(place(group.runs[-1]))
    table.add_row(f"{name} independent", *empty, *map(_share, result.independent_MN[-1]))
    if result.dependence:
        table.add_row(f"{name} corrected", *empty, *map(_share, result.dependence[-1].corrected_N))
        table.add_row(f"{name} N effective", *empty, *(short(n) for n in result.dependence[-1].effective_N))
    put(screen, table)
    if result.dependence:
        lags = zip(LAGS, result.dependence[-1].autocorrelation, strict=True)
        by_lag = ", ".join(f"{number(rho, 3)} at {lag}" for lag, rho in lags)
        screen.print(f"Autocorrelation of the hits of {name} by lag: {by_lag}.\n", soft_wrap=True)


def _share(p: float) -> str:
    return short(float(p))


def _print_laws(screen: Console, group: Group, result: Emergence) -> None:
    columns = ["N", "alpha", "95 % interval", "C", "95 % of C", "R2", "R2 of p", "backtest", "sizes"]
    title = f"{group.title}, k = {result.k}: " + in_axis(
        "-ln p_N = C · S^-alpha for each N, and C · N · S^-alpha", group.axis
    )
    named = [in_axis(column, group.axis) for column in [*columns, "over S", "status"]]
    over = in_axis("over S", group.axis)
    table = grid(title, named, spare=("C", "95 % of C", "R2 of p", "backtest", over))
    for law in result.laws:
        fit, ends = law.fit, span(law.fit.alpha_lo, law.fit.alpha_hi)
        row = [number(fit.alpha), ends, *constant(fit), number(fit.r2, 3), "", percent(fit.backtest_error)]
        table.add_row(str(law.n), *row, *sizes_of(fit), status_name(fit.status))
    pooled, joint, ends = result.pooled, result.joint, span(result.joint.alpha_lo, result.joint.alpha_hi)
    name, of_pooled = status_name(pooled.status), span(pooled.alpha_lo, pooled.alpha_hi)
    table.add_row("pooled", number(pooled.alpha), of_pooled, "", "", "", "", "", str(pooled.n_sizes), "", name)
    r2 = [number(joint.r2_lnln, 3), number(joint.r2_p, 3)]
    C = [short(joint.C), magnitude_span(joint.C_lo, joint.C_hi)]
    table.add_row("C N", number(joint.alpha), ends, *C, *r2, "", str(joint.n_sizes), "", status_name(joint.status))
    put(screen, table)
    crossing = [law for law in result.laws if any(c.has_numbers for c in law.crossings)]
    if crossing:
        columns = ["N", *(f"{group.axis.value} at p = {level}" for level in LEVELS)]
        title = f"{group.title}, k = {result.k}: where p_N reaches a level"
        table = grid(title if group.axis is not Axis.S else title.replace("where", "sizes at which"), columns)
        for law in crossing:
            table.add_row(str(law.n), *map(_crossing, law.crossings))
        put(screen, table)


def _crossing(crossing: Crossing) -> str:
    lo, hi = (UNKNOWN if end is None else f"{end:.0e}".replace("e+", "e") for end in (crossing.lo, crossing.hi))
    text = f"{lo}..{hi}" if crossing.S is None else f"{crossing.S:.1e} ({lo}..{hi})".replace("e+", "e")
    text = text if crossing.has_numbers else UNKNOWN
    return f"{text}*" if crossing.is_beyond else text
