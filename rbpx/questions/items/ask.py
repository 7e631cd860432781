"""Answers `items`: scores, exact match at k and its law, and single items."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.config.text.dataset import HARNESS
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.table import SIZE, STATUS, Column, Table, interval, table_of
from rbpx.display.vocabulary import listed, number, short, size_name, whole
from rbpx.errors import RbpxError, number_of
from rbpx.files.escapes import visible
from rbpx.laws.counts.fit import Correction
from rbpx.laws.intervals.estimate import document_weights
from rbpx.questions.items import ANALYSIS, ItemsKeys
from rbpx.questions.items.exact_match import exact_match, laws_of_items
from rbpx.questions.items.figures import figures
from rbpx.questions.items.scores import score
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.group import By, Group
from rbpx.runs.points.items import Answers, documents_of_items, in_common, item_answers, item_views, telling_items
from rbpx.runs.run import grouped
from rbpx.runs.select.groups import select
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100, 1000)
_SHOWN: Final = 12  # items in a report
_NAMED: Final = 4  # tasks in the first sentence
_MANY: Final = 3  # number of tasks from which a terminal shows the largest model alone
_LONGEST: Final = 120  # characters of a context that are shown, the last ones


_Task = tuple[Group, list[Record], Sequence[Record]]
"""The runs, their rows, and the items that the largest model gains and loses most; none of texts."""


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: ItemsKeys) -> list[Result]:
    """Scores the items of every group that has any; groups of one family share a result.

    Raises:
        RbpxError: no group has items, or items lack the categories to slice by.
    """
    tasks = [_task(connection, group, request) for group in groups if group.first.protocol == HARNESS]
    if groups and not tasks:
        raise RbpxError(ANALYSIS.lacking.format(store=request.store))
    families = grouped(tasks, lambda task: task[0].title_of_family).values()
    return [_of_family(of, request.k.by_number) for of in families]


def _of_family(tasks: Sequence[_Task], asks_k: bool) -> Result:
    groups, rows = [group for group, _, _ in tasks], [row for _, rows, _ in tasks for row in rows]
    return Result(
        groups,
        rows,
        [*_tables(groups, rows, asks_k), *(_items_table(group, shown) for group, _, shown in tasks)],
        [*_sentences([rows for _, rows, _ in tasks])],
        partial(figures, [(group, rows) for group, rows, _ in tasks]),
    )


def _task(connection: duckdb.DuckDBPyConnection, group: Group, request: ItemsKeys) -> _Task:
    weights_BI = document_weights(group.n_documents, request.resamples, request.seed)
    of_runs = [item_answers(connection, run.run_id, group.ties) for run in group.runs]
    rows, k_grid = list[Record](), list[int]()
    for run, answers in zip(group.runs, of_runs, strict=True):
        scored_BI = weights_BI[:, answers.item_I]
        # Thousands of tokens never match as a whole.
        k_grid = request.k.grid(run.vocab_size or 2, DEFAULT_K) if answers.of_items else []
        for part, chosen_I in _parts(answers, group, request):
            about = {**group.names(), **run.names(), "run_id": run.run_id, "slice": part}
            rows.append({"kind": "items", **about, **score(answers, scored_BI, chosen_I)})
            about = {"kind": "exact_match", **about, "n_items": rows[-1]["n_items"]}
            rows += [about | exact_match(answers.ranks, scored_BI, chosen_I, k) for k in k_grid]
    if not of_runs[0].of_items:
        return group, rows, ()
    # All sizes of a family tokenize items alike unless their tokenizers differ.
    tokens_of_items = [[*zip(each.item_I, map(len, each.ranks), strict=True)] for each in of_runs]
    alike = all(each == tokens_of_items[0] for each in tokens_of_items)
    if group.n_sizes > 1 and alike and request.slices is None:
        rows += [law for k in k_grid for law in laws_of_items(group, of_runs, scored_BI, k)]
    documents = documents_of_items(connection, request.store, group.runs[-1].run_id)
    common = in_common(of_runs)
    return group, rows, [*item_views(group.runs, common, telling_items(common, _SHOWN), documents)]


def _parts(answers: Answers, group: Group, request: ItemsKeys) -> list[tuple[str | None, np.ndarray]]:
    parts: list[tuple[str | None, np.ndarray]] = [(None, np.ones(len(answers.nats_I), bool))]
    if request.slices is None:
        return parts
    of_I = {"category": answers.category_I, "domain": answers.domain_I}.get(str(request.slices), np.array([]))
    names = sorted({str(name) for name in of_I if name is not None})
    if not names:
        raise RbpxError(
            f"slices={request.slices}: the items of {group.title} have no {request.slices}; they may have a category "
            "and a domain, whose columns dataset.category= and dataset.domains= name before they are measured"
        )
    return parts + [(name, np.asarray(of_I == name)) for name in names]


_OF_RUN: Final = (Column("task", "dataset"), Column("slice", "slice"), SIZE)
_ASSUMED: Final = {
    Correction.none: "independent", Correction.measured: "as measured", Correction.free: "as fitted"
}  # fmt: skip
_CORRELATION: Final = "of two hits of one item, 0 where they are independent"
SCORES: Final = table_of(
    "scores", *_OF_RUN, ("items", "n_items", whole),
    *interval("acc", "acc", ".3f", "share of items that are right; acc_norm, acc_bytes: for their length"),
    ("chance", "chance", ".3f"), ("stderr", "acc_stderr", ".3f"),
    ("p", "p_chance", ".1e", "of guessing to do as well"),
    *interval("acc_norm", "acc_norm", ".3f"), *interval("acc_bytes", "acc_bytes", ".3f"),
    *interval("perplexity", "perplexity", short), *interval("bits/byte", "bits_per_byte"),
    *interval("perplexity of bytes", "byte_perplexity", short), *interval("of words", "word_perplexity", short),
    first="dataset size n_items, slice acc, chance, acc_stderr, bits_per_byte, p_chance, acc_norm, acc_norm_lo, "
    "acc_bytes, perplexity, acc_bytes_lo word_perplexity, perplexity_lo, bits_per_byte_lo",
)  # fmt: skip
MATCHES: Final = table_of(
    "matches", *_OF_RUN, ("k", "k"), ("RBP_k", "rbp", ".4f"),
    *interval("exact match", "measured", number, "share of items whose tokens are all hits, with rank ≤ k"),
    *interval("independent", "independent", number, "exact match if hits of one item were independent"),
    ("correlation", "rho", ".3f", _CORRELATION),
    *interval("correlated", "correlated", number, "exact match if they had that correlation"),
    first="dataset size k measured independent correlated, slice, rho, rbp, independent_lo, correlated_lo",
)  # fmt: skip
LAWS: Final = table_of(
    "laws", ("task", "dataset"), ("k", "k"),
    ("hits", "correction", str, "how hits of one item are assumed to depend"),
    *interval("α", "alpha"),
    *interval("correlation", "r", ".3f", _CORRELATION),
    ("AIC", "aic", ".1f", "the smallest fits best"),
    STATUS,
    first="dataset k correction alpha r status, r_lo",
)  # fmt: skip


def _tables(groups: Sequence[Group], rows: Sequence[Record], asks_k: bool) -> Iterator[Table]:
    about, largest = groups[0].title_of_family, {group.runs[-1].run_id for group in groups}
    scores, matches, laws = ([row for row in rows if row["kind"] == kind] for kind in ("items", "exact_match", "law"))
    are_few = len(groups) < _MANY
    is_brief = [row["run_id"] in largest or (row["slice"] is None and are_few) for row in scores]
    yield SCORES.of("Scores of items", scores, about, brief=is_brief)
    is_brief = [asks_k and row["run_id"] in largest for row in matches]
    yield MATCHES.of("Exact match at k", matches, about, brief=is_brief)
    laws = [row | {"correction": _ASSUMED[row["correction"]]} for row in laws]
    yield LAWS.of("The law of emergence on items", laws, about, brief=False)


def _items_table(group: Group, shown: Sequence[Record]) -> Table:
    models = [Column(run.label, f"p_{run.size}") for run in group.runs]
    columns = (Column("item", "item", whole), Column("context", "context"), Column("target", "target"), *models)
    note = (
        "For each size: the probability of the right choice (of the target, where there are none), the ranks of its "
        "tokens, ✓ where it is right. First what the largest model gains most over the smallest, last what it loses."
    )
    rows = [
        row
        | {name: row[name] and visible(row[name]) for name in ("context", "target")}
        | {column.key: _reading(of) for column, of in zip(models, row["readings"], strict=False)}
        for row in ({**row, "context": row["context"] and row["context"].strip("\n")[-_LONGEST:]} for row in shown)
    ]
    table = table_of(f"explorer-{group.first.dataset}", *columns, is_wide=True)
    return table.of(f"Items of {group.first.dataset}, one by one", rows, note=note)


def _reading(of: Record) -> str:
    ranks = " ".join(f"{rank:g}" for rank in of["ranks"])
    return f"{of['probability']:.3g} ({ranks}){' ✓' if of['is_right'] else ''}"


def _sentences(of_tasks: Sequence[Sequence[Record]]) -> Iterator[str]:
    wholes = [[row for row in rows if row["kind"] == "items" and row["slice"] is None] for rows in of_tasks]
    keys = ["bits_per_byte" if rows[0]["acc"] is None else "acc" for rows in wholes]
    if len(wholes) > 1:
        scores = [
            f"{number(rows[-1][key], 3)} on {rows[-1]['dataset']}" for rows, key in zip(wholes, keys, strict=True)
        ]
        largest = size_name(wholes[0][-1]["size"])
        yield f"{largest} scores {listed(scores, _NAMED)} (shares of items, of texts bits a byte)."
    for (first, *_, last), key in zip((rows * 2 for rows in wholes), keys, strict=True):
        value, items = interval_of(estimate_in(last, key)), number_of(last["n_items"], "item")
        said = f"is right on {value} of {items}" if key == "acc" else f"takes {value} bits a byte"
        said = f"{size_name(last['size'])} {said} of {last['dataset']}"
        if last["chance"] is not None:
            said += f", {'' if last['acc_lo'] > last['chance'] else 'no '}better than guessing ({last['chance']:.3f})"
        yield said + (f"; {size_name(first['size'])}: {number(first[key], 3)}." if first is not last else ".")


QUESTION = Question(answer, select=partial(select, by=By.size))
