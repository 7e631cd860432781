"""Items of tasks in the report: success against size, the laws of emergence, and single items to look at."""

from collections.abc import Sequence

from rbpx.analyses.items.analysis import GroupItems
from rbpx.analyses.items.emergence import HITS
from rbpx.analyses.items.figure import figures
from rbpx.counts import number_of
from rbpx.display.chart.figure import Undrawn
from rbpx.display.chart.sheet import Cell, Sheet, decimal, entry, magnitude, named, sheet_of, span, state, whole
from rbpx.display.section import Section, Sources, doubts_of
from rbpx.display.visible import visible

__all__ = ["section"]

_LONGEST = 120  # characters of a context that are shown, the last ones


def section(results: Sequence[GroupItems], sources: Sources) -> Section:
    """All tasks of one family."""
    statuses = [
        (f"{items.group.title}, k = {law.k}, hits {HITS[correction]}", fit.status)
        for items in results
        for law in items.emergence
        for correction, fit in law.fits.items()
    ]
    drawn = [figure for items in results for figure in figures(items)]
    sheets = [sheet for items in results for sheet in (*_laws(items), *_explorer(items))]
    return Section(
        "items",
        f"Items of tasks, {results[0].group.first.family}",
        tuple(_sentence(items) for items in results),
        tuple(drawn) or (Undrawn("success", "Success against size", "Texts that are read whole have no items."),),
        (_scores(results), *sheets),
        doubts_of(statuses),
    )


def _sentence(items: GroupItems) -> str:
    whole_runs = [each for each in items.runs if each.part is None]
    first, last = whole_runs[0], whole_runs[-1]
    said = f"{items.group.title}: {number_of(last.scores.n_items, 'item')}"
    if last.scores.acc.value is None:
        return f"{said}, read as texts."
    what = "accuracy" if last.scores.chance is not None else "share that greedy decoding gives"
    said += f"; {what} {last.scores.acc.value:.3f} at {last.run.size}"
    if first is not last and first.scores.acc.value is not None:
        said += f", {first.scores.acc.value:.3f} at {first.run.size}"
    return said + (f"; chance {last.scores.chance:.3f}." if last.scores.chance is not None else ".")


def _scores(results: Sequence[GroupItems]) -> Sheet:
    rows: list[list[Cell]] = []
    for items in results:
        for each in items.runs:
            scores = each.scores
            row = [named(items.group.first.dataset), named(each.part), named(each.run.size), whole(scores.n_items)]
            row += [decimal(scores.chance, 3), decimal(scores.acc.value, 3), decimal(scores.acc_stderr, 3)]
            row += [span(scores.acc.lo, scores.acc.hi, 3)]
            row += [decimal(scores.acc_norm.value, 3), magnitude(scores.perplexity.value)]
            rows.append([*row, decimal(scores.bits_per_byte.value, 3)])
    columns = [("task", "dataset"), ("slice", "slice"), ("size", "size"), ("items", "n_items"), ("chance", "chance")]
    columns += [("accuracy", "acc"), ("+- stderr", "acc_stderr"), ("95 %", "acc_lo acc_hi")]
    columns += [("by characters", "acc_norm"), ("perplexity", "perplexity"), ("bits per byte", "bits_per_byte")]
    note = "Intervals over items; stderr as lm-evaluation-harness gives it."
    return sheet_of("scores", "Scores of items", columns, rows, note)


def _laws(items: GroupItems) -> list[Sheet]:
    rows = [
        [
            whole(law.k),
            entry(HITS[correction], (correction.value,), is_number=False),
            decimal(fit.alpha),
            span(fit.alpha_lo, fit.alpha_hi),
            decimal(fit.r, 3),
            decimal(fit.aic, 1),
            state(fit.status),
        ]
        for law in items.emergence
        for correction, fit in law.fits.items()
    ]
    columns = [("k", "k"), ("hits", "correction"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi"), ("correlation", "r")]
    note = (
        "Hits of one item are independent, correlate as measured, or correlate as fits the successes best; the least "
        "AIC fits best."
    )
    title = f"The law of emergence on items of {items.group.first.dataset}"
    name = f"laws-{items.group.first.dataset}"
    return [sheet_of(name, title, [*columns, ("AIC", "aic"), ("status", "status")], rows, note)] if rows else []


def _explorer(items: GroupItems) -> list[Sheet]:
    """Single items: those that the largest model gains and loses most over the smallest."""
    rows: list[list[Cell]] = []
    for view in items.shown:
        row = [
            whole(view.item),
            named(_tail(view.context)),
            named(None if view.target is None else visible(view.target)),
        ]
        for reading in view.readings:
            ranks = " ".join(f"{rank:g}" for rank in reading.ranks)
            said = f"{reading.probability:.3g} ({ranks}){' ✓' if reading.is_right else ''}"
            rows_of = entry(said, (reading.probability, ranks, str(reading.is_right)), is_number=False)
            row.append(rows_of)
        rows.append(row)
    columns = [("item", "item"), ("context", "context"), ("target", "target")]
    columns += [(run.size, f"p_{run.size} ranks_{run.size} right_{run.size}") for run in items.group.runs]
    note = (
        "By size: the probability of the right choice among the choices (of the target, where there are none), in "
        "brackets the ranks of its tokens, ✓ where the item is right. The items that the largest model gains most over "
        "the smallest, then those that it loses most; view doc=N shows any."
    )
    title = f"Items of {items.group.first.dataset}, one by one"
    return [sheet_of(f"explorer-{items.group.first.dataset}", title, columns, rows, note)] if rows else []


def _tail(context: str | None) -> str | None:
    if context is None:
        return None
    shown = visible(context.strip("\n"))
    return shown if len(shown) <= _LONGEST else f"…{shown[-_LONGEST:]}"
