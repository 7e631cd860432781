"""Scores each run on the items of tasks (verb items), and fits the law of their exact matches.

Shapes: I items, B resamples of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.keys.tasks import ITEM_SLICES
from rbpx.config.request import Request
from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError
from rbpx.laws.counts.fit import OutcomeFit
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, document_weights, estimate, flat, of_share
from rbpx.laws.numeric import Floats
from rbpx.questions.items.exact_match import ExactMatch, exact_match, laws_of_items
from rbpx.runs.group import Group, Run
from rbpx.runs.points.items import Answers, ItemView, documents_of_items, item_answers, item_views, telling_items
from rbpx.store.store import Record, Store


@dataclass(frozen=True)
class Scores:
    """The scores of some items of one run; None where the items have no such thing.

    Attributes:
        n_items: how many.
        chance: accuracy of guessing.
        p_chance: the probability that guessing is right at least as often; None without choices.
        acc: share of items that are right by log-likelihood, or greedily where there are no choices.
        acc_stderr: its standard error, from the n - 1 variance of the items, as lm-evaluation-harness gives it.
        acc_norm: by log-likelihood over characters.
        acc_bytes: by log-likelihood over bytes.
        perplexity: exp of the mean nats of a target.
        word_perplexity: exp of the nats of a word of a text.
        byte_perplexity: exp of the nats of a byte.
        bits_per_byte: bits of a byte.
        n_tied: items that a tie decides, between the right choice and another or in greedy decoding.
    """

    n_items: int
    chance: float | None
    p_chance: float | None
    acc: Estimate
    acc_stderr: float | None
    acc_norm: Estimate
    acc_bytes: Estimate
    perplexity: Estimate
    word_perplexity: Estimate
    byte_perplexity: Estimate
    bits_per_byte: Estimate
    n_tied: int


def score(answers: Answers, weights_BI: npt.NDArray[np.int64], chosen_I: npt.NDArray[np.bool_]) -> Scores:
    """The scores of chosen items, with intervals over items.

    Args:
        answers: of a run.
        weights_BI: how often each item is drawn in each resample, shape [B, I].
        chosen_I: which items count.
    """
    drawn_BI = weights_BI[:, chosen_I].astype(np.float64)
    n_items = int(chosen_I.sum())

    def of(values_I: Floats) -> Floats:
        return values_I[chosen_I]

    def share(right_I: Floats) -> Estimate:
        right = of(right_I)
        return of_share(int(right.sum()), n_items) if np.isfinite(right).all() else NO_ESTIMATE

    def ratio(above_I: Floats, below_I: Floats, exponentiated: bool = True) -> Estimate:
        if not (np.isfinite(above_I).all() and np.isfinite(below_I).all()):
            return NO_ESTIMATE
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # a resample may draw none of them
            value, resampled_B = above_I.sum() / below_I.sum(), (drawn_BI @ above_I) / (drawn_BI @ below_I)
            if exponentiated:
                value, resampled_B = np.exp(value), np.exp(resampled_B)
        return estimate(float(value), resampled_B, n_items, Recipe.percentile)

    acc = share(answers.right_I)
    chance = float(of(answers.chance_I).mean()) if n_items else math.nan
    has_choices = math.isfinite(chance)
    nats_I, bytes_I, words_I = of(answers.nats_I), of(answers.bytes_I), of(answers.words_I)
    is_text = bool(np.isfinite(words_I).all())
    return Scores(
        n_items=n_items,
        chance=chance if has_choices else None,
        p_chance=_p_of_guessing(int(of(answers.right_I).sum()), of(answers.chance_I)) if has_choices else None,
        acc=acc,
        acc_stderr=None if acc.value is None or n_items < 2 else math.sqrt(acc.value * (1 - acc.value) / (n_items - 1)),
        acc_norm=share(answers.right_by_characters_I),
        acc_bytes=share(answers.right_by_bytes_I),
        perplexity=NO_ESTIMATE if is_text else ratio(nats_I, np.ones(n_items)),
        word_perplexity=ratio(nats_I, words_I),
        byte_perplexity=ratio(nats_I, bytes_I),
        bits_per_byte=ratio(nats_I / math.log(2), bytes_I, exponentiated=False),
        n_tied=int(answers.tied_I[chosen_I].sum()),
    )


def _p_of_guessing(n_right: int, chance_I: Floats) -> float:
    """The probability that guessing gets at least so many right; items may differ in how many choices they have."""
    from scipy.stats import binom  # takes half a second, which only groups with items need

    share_N = np.ones(1)  # the probability of each number of right ones
    for chance, n in zip(*np.unique(chance_I, return_counts=True), strict=True):
        share_N = np.convolve(share_N, binom.pmf(np.arange(n + 1), n, chance))
    return float(share_N[n_right:].sum())


DEFAULT_K = (1, 10, 100, 1000)
_SHOWN = 12  # items in a report
_OF_LAW = ("C", "alpha", "alpha_lo", "alpha_hi", "r", "r_lo", "r_hi", "aic", "n_sizes", "n_sequences", "status")


@dataclass(frozen=True)
class RunItems:
    """The items of one run, all of them or those of one slice.

    Attributes:
        run: the run.
        part: the category or domain; None for all items.
        scores: of these items.
        matches: exact match at each k.
    """

    run: Run
    part: str | None
    scores: Scores
    matches: tuple[ExactMatch, ...]


@dataclass(frozen=True, eq=False)
class GroupItems:
    """The runs of one group, in order of S, each with its slices behind it.

    Attributes:
        group: the runs.
        runs: what they score.
        laws: laws of exact match over all items, by k and by what is assumed of the hits of an item; empty below 2
            sizes.
        shown: the items that the largest model gains and loses most.
    """

    group: Group
    runs: tuple[RunItems, ...]
    laws: tuple[tuple[int, OutcomeFit], ...]
    shown: tuple[ItemView, ...]


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[GroupItems]:
    """Score the items of every group that has any.

    Raises:
        RbpxError: no group has items, or they have no categories to be sliced by.
    """
    if request.slices is not None and request.slices not in ITEM_SLICES:
        raise RbpxError(f"slices={request.slices} does not fit items; give {' or '.join(ITEM_SLICES)}, or leave it out")
    of_items = [group for group in groups if group.first.protocol == HARNESS]
    if groups and not of_items:
        raise RbpxError(
            f"no group of runs in store={request.store} has items; measure some, such as "
            "python -m rbpx measure dataset=lambada, or a text with protocol=harness"
        )
    return [_analyse(connection, group, request) for group in of_items]


def _analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> GroupItems:
    weights_BI = document_weights(group.n_documents, request.resamples, request.seed)
    runs, of_runs, k_grid = [], [], list[int]()
    for run in group.runs:
        answers = item_answers(connection, run.run_id, group.ties)
        of_runs.append(answers)
        scored = weights_BI[:, : len(answers.nats_I)]
        # A text of thousands of tokens is never matched as a whole.
        k_grid = request.k.grid(run.vocab_size or 2, DEFAULT_K) if answers.of_items else []
        for part, chosen_I in _parts(answers, group, request):
            matches = tuple(exact_match(answers.ranks, scored, chosen_I, k) for k in k_grid)
            runs.append(RunItems(run, part, score(answers, scored, chosen_I), matches))
    if not of_runs[0].of_items:
        return GroupItems(group, tuple(runs), (), ())
    # Items are cut alike at every size of a family unless its tokenizers differ.
    alike = all([*map(len, each.ranks)] == [*map(len, of_runs[0].ranks)] for each in of_runs)
    fits = group.n_sizes > 1 and alike and request.slices is None
    laws = tuple((k, law) for k in (k_grid if fits else ()) for law in laws_of_items(group, of_runs, scored, k))
    documents = documents_of_items(connection, request.store, group.runs[-1].run_id)
    shown = item_views(group.runs, of_runs, telling_items(of_runs, _SHOWN), documents)
    return GroupItems(group, tuple(runs), laws, tuple(shown))


def _parts(answers: Answers, group: Group, request: Request) -> list[tuple[str | None, np.ndarray]]:
    """All items, then those of each category or domain that was asked for."""
    parts: list[tuple[str | None, np.ndarray]] = [(None, np.ones(len(answers.nats_I), bool))]
    if request.slices is None:
        return parts
    of_I = answers.category_I if request.slices == "category" else answers.domain_I
    names = sorted({str(name) for name in of_I if name is not None})
    if not names:
        raise RbpxError(
            f"slices={request.slices}: the items of {group.title} have no {request.slices}; name its column with "
            "dataset.category= (and dataset.domains=) and measure them anew"
        )
    return parts + [(name, np.asarray(of_I == name)) for name in names]


def keep(store: Store, items: GroupItems) -> list[Record]:
    """A row for each run and slice (kind items), for each k of it (kind exact_match), and for each law (kind law)."""
    rows: list[Record] = []
    for each in items.runs:
        about = {**items.group.names(), **each.run.names(), "run_id": each.run.run_id}
        about |= {"slice": each.part, "n_items": each.scores.n_items}
        rows.append({"kind": "items", **about, **flat(vars(each.scores))})
        rows += [{"kind": "exact_match", **about, **flat(vars(match))} for match in each.matches]
    for k, fit in items.laws:
        row = {"kind": "law", **items.group.names(), "k": k, "correction": fit.correction.value}
        rows.append(row | {name: getattr(fit, name) for name in _OF_LAW} | {"reasons": fit.record().get("reasons")})
    return rows
