"""Shows when tokens are learned: which tables a group has, and those of all trainings on a text."""

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest

from rbpx.display.view import Table
from rbpx.display.vocabulary import legible
from rbpx.laws.learning.curves import FEWEST
from rbpx.questions.learning import columns
from rbpx.questions.learning.analysis import Learning, Result, analyse
from rbpx.questions.learning.carriers import Carrier
from rbpx.questions.learning.figures import figures
from rbpx.questions.learning.hits import HitTimes
from rbpx.questions.learning.improvements import Trend
from rbpx.questions.learning.kept import keep
from rbpx.questions.learning.orders import Orders
from rbpx.questions.learning.words import sentences
from rbpx.questions.question import of_parts, one_by_one
from rbpx.runs.select.ways import in_size


@one_by_one
def tables(result: Result) -> Iterator[Table]:
    """The tables of one group, or of the orders on one text."""
    found = _of_orders(result) if isinstance(result, Orders) else _of_group(result)
    return (table for table in found if table.rows)


def _of_group(result: Learning) -> Iterator[Table]:
    about, axis, losses = result.group.title, result.axis, result.losses
    if (of := result.improvements) is not None:
        better, worse = of.of_trend(Trend.improves)[: of.top], of.of_trend(Trend.worsens)[: -of.top - 1 : -1]
        note = f"k = {of.k}; ties {result.group.ties.value}."
        yield columns.BETTER.table("What improves, by share", better, about, axis, note)
        yield columns.WORSE.table("What gets worse, the worst first", worse, about, axis, note)
    note = f"Sigmoids need {FEWEST} points: fewer do not identify four numbers."
    overview = columns.Overview(result.runs, len(result.tokens.doc_M), result.tokens.n_left_out, result.status)
    yield columns.GROUP.table("Points and tokens", [overview], about, axis, note if losses is None else "")
    if losses is not None:
        yield columns.KIND.table("What becomes of the losses of tokens", losses.kinds, about, axis)
        yield columns.SPECTRUM.table("Spectrum of times", losses.bins, about, axis)
        yield columns.SLOPES.table("The slope rebuilt where points were left out", losses.gaps, about, axis)
        yield columns.WORLDS.table("Whether a good rebuild shows steps", losses.worlds, about, axis)
    times = [(of_k, point) for of_k in result.times for point in of_k.points]
    yield columns.HISTORIES.table("What becomes of hits", result.times, about, axis)
    often = [row for of_k in result.times for row in _often(result, of_k)]
    yield columns.IDS.table("Token ids by how often (of how many)", often, about, axis)
    yield columns.POINTS.table("Times from hits", times, about, axis)
    yield columns.TAILS.table("The tail of the times and the law of RBP_k", result.times, about, axis)
    if result.carriers is not None:
        carried = [columns.Named(each, _name(result, each)) for each in result.carriers.classes]
        yield columns.CARRIERS.table("Who carries the slope between the last two points", carried, about, axis)
        yield columns.CHOSEN.table("What those listed owe to chance", result.carriers.chosen, about, axis)
    if result.forecast is not None:
        found = result.forecast
        likely = [columns.Likely(each, legible(result.texts.get(each.token_id), each.token_id)) for each in found.next]
        yield columns.LEARNERS.table(f"Which misses at k = {found.k} become hits", found.learners, about, axis)
        yield columns.REACHED.table("Misses that became hits", found.reached, about, axis)
        yield columns.NEXT.table("The likeliest to be learned next", likely, about, axis)


def _often(result: Learning, times: HitTimes) -> Iterator[columns.Often]:
    said = [
        [
            f"{legible(result.texts.get(t.token_id), t.token_id)} {t.n:,} ({t.n_scored:,})"
            for t in times.ids
            if t.history is h
        ]
        for h in columns.OFTEN
    ]
    for row in zip_longest(*said):
        yield columns.Often(times.k, dict(zip(columns.OFTEN, row, strict=True)))


def _name(result: Learning, carrier: Carrier) -> str:
    if carrier.by == "token" and carrier.number is not None:
        return legible(result.texts.get(carrier.number), carrier.number)
    return f"document {carrier.number}" if carrier.by == "document" else carrier.name


def _of_orders(result: Orders) -> Iterator[Table]:
    about, axis = result.about, result.group.axis
    yield columns.PAIRS.table("Whether trainings learn in the same order", result.pairs, about, axis)
    if result.factors is not None:
        shares = ", ".join(f"{share:.0%}" for share in result.factors.share_F)
        note = f"Factors of the ranks of {result.n_tokens:,} tokens; shares of their variance: {shares}."
        rows = [
            columns.Loading(title, tuple(loading_F))
            for title, loading_F in zip(result.titles, result.factors.loading_NF.tolist(), strict=True)
        ]
        yield columns.FACTORS.table("What their orders have in common", rows, about, axis, note)


QUESTION = of_parts(
    analyse, keep, tables, sentences, figures, together="family", select=partial(in_size, sizes=3, best_of_budget=False)
)
