"""Shows items of tasks as tables: scores, exact match at k, the laws of emergence, and single items to look at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from rbpx.display.view import Cell, Column, Table, View, decimal, state, text, whole, with_ends, written
from rbpx.display.vocabulary import UNKNOWN, decimals, number, short
from rbpx.errors import number_of
from rbpx.files.visible import visible
from rbpx.laws.counts.fit import OutcomeFit
from rbpx.laws.intervals.estimate import Estimate
from rbpx.questions.items.analysis import GroupItems, RunItems, analyse, keep
from rbpx.questions.items.exact_match import HITS, ExactMatch
from rbpx.questions.items.figures import figures
from rbpx.questions.question import of_parts, one_by_one
from rbpx.runs.group import Run
from rbpx.runs.points.items import ItemView
from rbpx.runs.select.ways import in_size

Row = TypeVar("Row")
_LONGEST: Final = 120  # characters of a context that are shown, the last ones
_EXACT_MATCH: Final = "share of items whose tokens are all hits, with rank ≤ k"
_INDEPENDENT: Final = "what it would be if the tokens of an item were hits independently of each other"
_CORRELATION: Final = "of two hits of one item, 0 where they are independent"
_CORRELATED: Final = "what exact match would be with that correlation"
_Matched = tuple[RunItems, ExactMatch]
_Law = tuple[str, int, OutcomeFit]


def _fitted_r(row: _Law) -> Estimate:
    return Estimate(row[2].r, row[2].r_lo, row[2].r_hi)


def _of_run(of: Callable[[Row], RunItems]) -> Sequence[Column[Row]]:
    """The task, the slice of it, and the model."""
    return (
        text("task", "dataset", lambda row: of(row).run.dataset),
        text("slice", "slice", lambda row: of(row).part, spare=1),
        text("size", "size", lambda row: of(row).run.size),
    )


SCORES: Final = View[RunItems](
    "scores",
    _of_run(lambda of: of),
    whole("items", "n_items", lambda of: of.scores.n_items),
    decimal("chance", "chance", lambda of: of.scores.chance, 3, "what guessing gets", 2),
    with_ends(
        "acc", "acc", lambda of: of.scores.acc, decimals(3),
        "share of items whose right choice has the highest log-likelihood or, without choices, whose target is "
        "what greedy decoding gives", 1,
    ),
    decimal(
        "stderr", "acc_stderr", lambda of: of.scores.acc_stderr, 3,
        "standard error of acc, as lm-evaluation-harness gives it", 3,
    ),
    written(
        "p", "p_chance", lambda of: of.scores.p_chance,
        lambda p: UNKNOWN if p is None else f"{p:.1e}", "how likely guessing is to do as well", 5,
    ),
    with_ends(
        "acc_norm", "acc_norm", lambda of: of.scores.acc_norm, decimals(3),
        "with log-likelihoods over the characters of a choice", 6, 7,
    ),
    with_ends("acc_bytes", "acc_bytes", lambda of: of.scores.acc_bytes, decimals(3), "over its bytes", 8, 10),
    with_ends(
        "perplexity", "perplexity", lambda of: of.scores.perplexity, short,
        "of a whole target; byte and word ppl: the same per byte and per word", 9, 11,
    ),
    with_ends("bits/byte", "bits_per_byte", lambda of: of.scores.bits_per_byte, spare=4, ends_spare=12),
    with_ends("byte ppl", "byte_perplexity", lambda of: of.scores.byte_perplexity, short, spare=13),
    with_ends("word ppl", "word_perplexity", lambda of: of.scores.word_perplexity, short, spare=10),
)  # fmt: skip
MATCHES: Final = View[_Matched](
    "matches",
    _of_run(lambda row: row[0]),
    text("k", "k", lambda row: str(row[1].k)),
    decimal("RBP_k", "rbp", lambda row: row[1].rbp, spare=3),
    with_ends("exact match", "measured", lambda row: row[1].measured, number, _EXACT_MATCH),
    with_ends("independent", "independent", lambda row: row[1].independent, number, _INDEPENDENT, ends_spare=4),
    decimal("correlation", "rho", lambda row: row[1].rho, 3, _CORRELATION, 2),
    with_ends("correlated", "correlated", lambda row: row[1].correlated, number, _CORRELATED, ends_spare=5),
)  # fmt: skip
LAWS: Final = View[_Law](
    "laws",
    text("task", "dataset", lambda row: row[0]),
    text("k", "k", lambda row: str(row[1])),
    text("hits", "correction", lambda row: HITS[row[2].correction], "how hits of one item are assumed to depend"),
    with_ends("α", "alpha", lambda row: row[2].exponent),
    with_ends("correlation", "r", _fitted_r, decimals(3), _CORRELATION, ends_spare=1),
    decimal("AIC", "aic", lambda row: row[2].aic, 1, "the smallest fits best", 2),
    state(lambda row: row[2].status),
)  # fmt: skip


def tables(results: Sequence[GroupItems]) -> list[Table]:
    """The tables of all tasks of one family."""
    about, ties = results[0].group.title_of_family, ", ".join(dict.fromkeys(r.group.ties.value for r in results))
    scored = [each for items in results for each in items.runs]
    matched = [(each, match) for each in scored for match in each.matches]
    laws = [(items.group.first.dataset, *law) for items in results for law in items.laws]
    emerging = (
        "Tokens are hits with −ln RBP_k = C·S^−α, fitted to the exact matches by maximum likelihood, each item with "
        "its length."
    )
    return [
        SCORES.table("Scores of items", scored, about),
        MATCHES.table("Exact match at k", matched, about, note=f"Intervals over items; ties {ties}."),
        LAWS.table("The law of emergence on items", laws, about, note=emerging),
        *(_one_by_one(items.group.runs, items.group.first.dataset, items.shown) for items in results),
    ]


def _one_by_one(runs: Sequence[Run], task: str, shown: Sequence[ItemView]) -> Table:
    """The items that the largest model gains and loses most over the smallest."""
    columns: list[Column[ItemView]] = [
        whole("item", "item", lambda view: view.item),
        text("context", "context", lambda view: None if view.context is None else _tail(view.context)),
        text("target", "target", lambda view: None if view.target is None else visible(view.target)),
        *(_reading(at, run.size) for at, run in enumerate(runs)),
    ]
    note = (
        "For each size: the probability of the right choice among the choices (of the target, where there are none), "
        "in brackets the ranks of its tokens, ✓ where the item is right. First the items that the largest model gains "
        "most over the smallest, then those that it loses most; view doc=N shows any other."
    )
    table = View(f"explorer-{task}", columns).table(f"Items of {task}, one by one", shown, note=note)
    return replace(table, is_wide=True)


def _reading(at: int, size: str) -> Column[ItemView]:
    def cell(view: ItemView) -> Cell:
        reading = view.readings[at]
        ranks = " ".join(f"{rank:g}" for rank in reading.ranks)
        said = f"{reading.probability:.3g} ({ranks}){' ✓' if reading.is_right else ''}"
        return Cell((said,), (reading.probability, ranks, str(reading.is_right)), is_number=False)

    return Column(size, (f"p_{size}", f"ranks_{size}", f"right_{size}"), cell)


def _tail(context: str) -> str:
    shown = visible(context.strip("\n"))
    return shown if len(shown) <= _LONGEST else f"…{shown[-_LONGEST:]}"


@one_by_one
def sentences(items: GroupItems) -> Iterator[str]:
    """What the largest and the smallest model score on each task, and how many items a tie decides."""
    every = [each for each in items.runs if each.part is None and each.scores.acc.value is not None]
    if not every:
        yield f"{items.group.title}: {number_of(items.runs[-1].scores.n_items, 'text')}, read whole."
        return
    n_items, chance = every[-1].scores.n_items, every[-1].scores.chance
    ends = ", ".join(f"{each.scores.acc.value:.3f} at {each.run.size}" for each in every[-1:] + every[:-1][:1])
    what = f"greedy decoding gives {ends}" if chance is None else f"accuracy {ends}; chance {chance:.3f}"
    yield f"{items.group.title}: {number_of(n_items, 'item')}; {what}."
    n_tied = sum(each.scores.n_tied for each in every)
    if n_tied and chance is None:
        yield f"{number_of(n_tied, 'item')} would be greedy but for a tie, which the lowest id wins."
    elif n_tied:
        tie = "ties" if n_tied == 1 else "tie"
        yield f"{number_of(n_tied, 'right choice')} {tie} with another; the first one counts."


QUESTION = of_parts(analyse, keep, tables, sentences, figures, together="family", select=partial(in_size, along=False))
