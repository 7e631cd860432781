"""Gaps: fitted pairs in; which text or slice is harder, how fast the gap changes and where it closes, out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.gaps.analysis import Gaps
from rbpx.analyses.gaps.cells import closed, multiplicity, p_value
from rbpx.analyses.gaps.law import Gap
from rbpx.analyses.gaps.shape import REACH
from rbpx.analyses.gaps.slices import SlicePoints
from rbpx.counts import number_of
from rbpx.display.along import counted, in_axis, print_group_notes
from rbpx.display.fit_cells import sizes_of
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.names import Axis
from rbpx.status import Status

_MOST_PAIRS = 2  # of one family with a table each; more of them are rows of a table for each loss


def show(results: Sequence[Gaps]) -> None:
    """Print the pairs of texts, a table each with a row for each loss, or many in a table for each loss; or slices."""
    screen = console()
    families: dict[str, list[Gaps]] = {}
    for gaps in results:
        if gaps.slices is None:
            families.setdefault(gaps.group.title_of_family, []).append(gaps)
    for family, pairs in families.items():
        if len(pairs) > _MOST_PAIRS:
            _print_losses(screen, family, pairs)
        else:
            for gaps in pairs:
                _print_pair(screen, gaps)
    for group in dict.fromkeys(gaps.group for gaps in results if gaps.slices is not None):
        _print_slices(screen, [gaps for gaps in results if gaps.group is group and gaps.slices is not None])
    ties = ", ".join(dict.fromkeys(f"ties {gaps.group.ties.value}" for gaps in results))
    what = "slice" if any(gaps.slices for gaps in results) else "text"
    every = [each.gap for gaps in results for each in gaps.gaps]
    axis = results[0].group.axis
    print_notes(
        screen,
        f"L_A / L_B = G ({axis.value} / {axis.value}_ref)^delta, {ties}; A is the {what} with the higher loss at the "
        f"geometric mean of the {in_axis('sizes', axis)}, where the ratio is given. delta < 0: the gap closes. "
        f"{multiplicity(every)} Closed at: the {axis.value} where the "
        "ratio would be 1, with a 95 % interval over the forms that the losses call for, – for an end that is "
        f"unbounded; beyond: more than {REACH:g} times outside the sizes, if at all. Form: power, if both losses are "
        "power laws; offset, if one has an irreducible part, so that the ratio is no power law and delta is its mean "
        "slope over the sizes.",
        (status for gap in every for status in (gap.fit.status, *gap.reasons())),
    )
    print_group_notes(screen, [gaps.group for gaps in results])


def _print_pair(screen: Console, gaps: Gaps) -> None:
    names = (gaps.group.first.dataset, gaps.other.first.dataset)
    for swapped, (A, B) in ((False, names), (True, names[::-1])):
        rows = [each for each in gaps.gaps if each.gap.swapped is swapped]
        if rows:
            axis = gaps.group.axis
            points = number_of(len(gaps.group.runs), counted(axis))
            title = f"{gaps.group.title_of_family}: {A} (A) against {B} (B), {points}"
            table = grid(title, ["loss", *_named(_COLUMNS, axis)], spare=_named(_SPARE, axis))
            for each in rows:
                table.add_row(law_name(each.law, each.k), *_row(each.gap))
            put(screen, table)


def _print_losses(screen: Console, family: str, pairs: Sequence[Gaps]) -> None:
    """Print all pairs of one family, a table for each loss."""
    for law, k in dict.fromkeys((each.law, each.k) for gaps in pairs for each in gaps.gaps):
        title = f"{family}, {law_name(law, k)}: {len(pairs)} pairs of texts"
        axis = pairs[0].group.axis
        table = grid(title, ["A", "B", *_named(_COLUMNS, axis)], left=2, spare=_named(_SPARE, axis))
        for gaps in pairs:
            names = (gaps.group.first.dataset, gaps.other.first.dataset)
            for each in (each for each in gaps.gaps if (each.law, each.k) == (law, k)):
                A, B = names[::-1] if each.gap.swapped else names
                table.add_row(escape(A), escape(B), *_row(each.gap))
        put(screen, table)


def _print_slices(screen: Console, results: Sequence[Gaps]) -> None:
    """Print the slices, then how each compares with the first one."""
    group, pairs = results[0].group, [gaps.slices for gaps in results if gaps.slices is not None]
    first = pairs[0][0]
    smallest, largest = group.runs[0].size, group.runs[-1].size
    title = f"{group.title}: slices of its scored tokens, {len(group.runs)} sizes"
    table = grid(title, ["slice", "tokens", "documents", f"CE of {smallest}", f"CE of {largest}"])
    for part in (first, *(other for _, other in pairs)):
        table.add_row(escape(part.chosen.name), f"{part.n_tokens:,}", f"{part.n_documents:,}", *_entropies(part))
    put(screen, table)
    for at, loss in enumerate(results[0].gaps):
        title = f"{group.title}, {law_name(loss.law, loss.k)}: each slice against the first, {first.chosen.name}"
        names = ["slice", "A is", *_named(_COLUMNS, group.axis)]
        table = grid(title, names, left=2, spare=_named(_SPARE, group.axis))
        for gaps, (_, other) in zip(results, pairs, strict=True):
            gap = gaps.gaps[at].gap
            harder = UNKNOWN if gap.ratio is None else "this" if gap.swapped else "first"
            table.add_row(escape(other.chosen.name), harder, *_row(gap))
        put(screen, table)


def _entropies(part: SlicePoints) -> list[str]:
    entropies = next(each for each in part.points if each.law == "cross_entropy")
    return [number(float(entropies.y_N[0]), 3), number(float(entropies.y_N[-1]), 3)]


_COLUMNS = ["L_A/L_B", "95 % of it", "delta", "95 % interval", "p", "p Holm", "p bend", "form", "R2", "sizes", "over S"]
_COLUMNS += ["gap", "closed at"]
_SPARE = ("p Holm", "p bend", "95 % of it", "form", "p", "R2", "over S", "sizes")


def _named(columns: Sequence[str], axis: Axis) -> list[str]:
    return [in_axis(column, axis) for column in columns]


def _row(gap: Gap) -> list[str]:
    return [
        number(gap.ratio, 3),
        span(gap.ratio_lo, gap.ratio_hi, 3),
        number(gap.delta, 4),
        span(gap.delta_lo, gap.delta_hi, 3),
        p_value(gap.p),
        p_value(gap.p_adjusted),
        p_value(None if gap.curvature is None else gap.curvature.p),
        UNKNOWN if gap.form is None else gap.form.value,
        number(gap.fit.r2, 3),
        *sizes_of(gap.fit),
        _verdict(gap),
        closed(gap),
    ]


def _verdict(gap: Gap) -> str:
    """The verdict; with what is known to be wrong beside it, or the status alone where there is no verdict."""
    if gap.verdict is None:
        return status_name(gap.fit.status)
    doubts = [gap.fit.status] if gap.fit.status not in (Status.ok, *gap.reasons()) else []
    doubts += [Status.bends] if gap.bends and gap.verdict not in ("turns", "bends") else []
    return ", ".join([gap.verdict, *map(status_name, doubts)])
