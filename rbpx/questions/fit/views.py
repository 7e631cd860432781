"""Shows the laws of size as tables: what each model scores, the distribution of its ranks, and every law."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.chart.figure import Figure, Undrawn, spread
from rbpx.display.frontier import frontier_table
from rbpx.display.given import GIVEN
from rbpx.display.law_columns import backtest, constant, determination, exponent, points_of
from rbpx.display.view import Cell, Column, Table, View, decimal, place, state, text, whole, with_ends
from rbpx.display.vocabulary import AXES, law_title, title_of
from rbpx.errors import number_of
from rbpx.laws.names import IMPORTED, Axis, Method
from rbpx.laws.power.law import PowerLawFit
from rbpx.laws.ranks.family import RankFit
from rbpx.questions.fit.analysis import Found, Laws, analyse, keep
from rbpx.questions.fit.figures import figures
from rbpx.questions.fit.routed import RoutedLaws, check_routed, routed_sentences, routed_tables
from rbpx.questions.fit.words import about, by_methods, sentences, warnings
from rbpx.questions.question import Question, each, one_by_one
from rbpx.runs.fits import Law
from rbpx.runs.group import Group, Run
from rbpx.runs.points.sizes import Evidence
from rbpx.store.store import Store

_Score = tuple[Run, Evidence | None]
_Ranked = tuple[Run, Evidence, RankFit, RankFit]  # the distribution of ranks from 2 up, and of all
_MOST: Final = 8  # of the many runs along a training, spread over it
_USUAL_K: Final = (1, 10, 100)
_TERMS: Final = {"error_entropy": "H(P)", "self_alignment": "KL", "confidence": "−ln ΣS"}
_FORM: Final = (
    "whether the data call for an irreducible offset E; undecided (`either` in csv and json) where they cannot tell"
)


@one_by_one
def tables(laws: Found) -> Iterator[Table]:
    """What the models of a group score, how their ranks are distributed, and their laws."""
    if isinstance(laws, RoutedLaws):
        yield from routed_tables(laws)
        return
    if not isinstance(laws, Laws):
        from rbpx.questions.fit import losses_views  # which laws in size do without, as below

        yield from losses_views.tables(laws)
        return
    yield _models(laws)
    if not laws.unshown:
        yield from _ranks(laws)
    if laws.cells:
        yield frontier_table(laws.cells, laws.group.title)
    if laws.group.n_sizes >= 3:
        yield _laws(laws)
    given = [(law_title(law.law, law.k), each) for law in laws.laws for each in law.fit.pinned]
    if given:
        yield GIVEN.table("Constants that were given", given, laws.group.title)


def brief(laws: Found) -> Found:
    """The laws of cross-entropy and of RBP at the usual k alone, which fit a screen."""
    if not isinstance(laws, Laws):
        return laws
    usual = _usual_k(laws)
    shown = [law for law in laws.laws if law.law == "cross_entropy" or (law.law == "rbp" and law.k in usual)]
    return replace(laws, laws=tuple(shown), unshown=tuple(law for law in laws.laws if law not in shown))


def _usual_k(laws: Laws) -> Sequence[int]:
    return [k for k in laws.k_grid if k in _USUAL_K] or laws.k_grid[: len(_USUAL_K)]


def _models(laws: Laws) -> Table:
    group, runs, usual = laws.group, laws.group.runs, _usual_k(laws)
    ce_spare = 0 if any(run.cross_entropy_nats is not None for run in runs) else 1
    view = View[_Score](
        "models",
        text("size", "size", lambda row: row[0].size),
        place(lambda row: row[0], spare=1),
        [
            decimal(f"RBP_{k}", f"rbp_{k}", _share(at, k), spare=0 if k in usual else 4 + at)
            for at, k in enumerate(laws.k_grid)
        ],
        decimal(
            "CE", "cross_entropy_nats", lambda row: row[0].cross_entropy_nats, 4, "cross-entropy, nats", ce_spare
        ),
        [decimal(name.replace("_", " "), name, _imported(name), spare=1) for name in IMPORTED],
        [decimal(heading, name, _measured(name), spare=2) for name, heading in _TERMS.items() if not laws.unshown],
        whole("tokens", "n_tokens", lambda row: row[0].n_tokens, spare=3),
    )  # fmt: skip
    rows: list[_Score] = list(zip(runs, laws.evidence or [None] * len(runs), strict=True))
    shown = rows if group.axis is Axis.S and not laws.cells else spread(rows, _MOST)
    note = f"{len(shown)} of {len(rows):,} runs." if len(shown) < len(rows) else ""
    title, of = "What each model scores", f"{group.title}: {about(group)}"
    return view.table(title, shown, of, group.axis, note)


def _share(at: int, k: int) -> Callable[[_Score], float | None]:
    def share(row: _Score) -> float | None:
        run, evidence = row
        return run.observed.get((k, 1)) if evidence is None else float(evidence.measured["rbp"][at])

    return share


def _imported(name: str) -> Callable[[_Score], float | None]:
    return lambda row: row[0].imported.get(name)


def _measured(name: str) -> Callable[[tuple[Run, Evidence | None, *tuple[object, ...]]], float | None]:
    """A quantity of a run; None where it is not known."""

    def value(row: tuple[Run, Evidence | None, *tuple[object, ...]]) -> float | None:
        found = math.nan if row[1] is None else float(row[1].measured.get(name, math.nan))
        return found if math.isfinite(found) else None

    return value


def _ranks(laws: Laws) -> list[Table]:
    rows = [
        (run, evidence, evidence.paper, evidence.full)
        for run, evidence in zip(laws.group.runs, laws.evidence, strict=False)
        if evidence.paper is not None and evidence.full is not None and laws.group.axis is Axis.S
    ]
    at_1 = laws.k_grid.index(1) if 1 in laws.k_grid else None

    def measured_at_1(row: _Ranked) -> float | None:
        share = 0.0 if at_1 is None else float(row[1].measured["rbp"][at_1])
        return -math.log(share) if share else None

    view = View[_Ranked](
        "ranks",
        text("size", "size", lambda row: row[0].size),
        decimal("μ", "mu", lambda row: row[2].params["mu"], 2),
        decimal("σ", "sigma", lambda row: row[2].params["sigma"], 2),
        decimal("−ln RBP_1", "neg_ln_rbp_1", measured_at_1),
        decimal("derived", "derived_rbp_1", _measured("lognormal_rbp1")),
        decimal("CE", "cross_entropy_nats", _measured("cross_entropy")),
        decimal("derived", "derived_cross_entropy", _measured("lognormal_cross_entropy")),
        text("paper", "paper", lambda row: row[2].status.label),
        text("full", "full", lambda row: row[3].status.label),
        decimal("γ", "gamma", lambda row: row[3].params.get("gamma_unconstrained"), 3),
    )
    title = "Lognormal of the ranks: from 2 up (paper), of all (full); curves from paper"
    return [view.table(title, rows, laws.group.title)] if rows else []


def _name(row: Law) -> Cell:
    return Cell((law_title(row.law, row.k, row.method),), (row.law, row.k, row.method.value), is_number=False)


def _fit(row: Law) -> PowerLawFit:
    return row.fit


LAWS: Final = View[Law](
    "laws",
    Column("law", ("law", "k", "method"), _name),
    exponent(_fit),
    decimal("sd text", "alpha_text_sd", lambda row: row.fit.alpha_sds[0], spare=9),
    decimal("sd models", "alpha_models_sd", lambda row: row.fit.alpha_sds[1], spare=8),
    constant(_fit, spare=3),
    with_ends("E", "E", lambda row: row.fit.offset, spare=6),
    determination(_fit, spare=2, ends_spare=7),
    points_of(_fit, spare=4),
    backtest(_fit),
    text("form", "form", lambda row: None if row.choice is None else row.choice.form.word, _FORM, spare=1),
    state(lambda row: row.fit.status),
)  # fmt: skip


def _laws(laws: Laws) -> Table:
    group, words = laws.group, AXES[laws.group.axis]
    methods = list(dict.fromkeys(law.method for law in laws.laws))
    offset = "E + " if methods == [Method.offset] else ""
    title = f"Scaling laws: y = {offset}{words.constant} · {words.x}^−α, fitted to ln y by {by_methods(methods)}"
    text = f"document sampling ({laws.resamples:,} resamples, the same for all points) and "
    note = (
        f"RBP_k = Pr(rank ≤ k), ties {group.ties.value}; y is −ln RBP_k, or nats; "
        f"{title_of(group.axis, group.first.size_by)}. Intervals include "
        f"{text if group.is_measured else ''}the scatter of the models about the law"
        f"{'.' if group.is_measured else '; document sampling is unknown.'}"
    )
    if laws.unshown:
        note += f" Fitted too: {number_of(len(laws.unshown), 'more law')} a text, which fit, ranks and entropy show."
    return LAWS.table(title, laws.laws, group.title, group.axis, note)


@one_by_one
def _sentences(laws: Found) -> Iterable[str]:
    if isinstance(laws, RoutedLaws):
        return routed_sentences(laws)
    if isinstance(laws, Laws):
        return sentences([laws])
    from rbpx.questions.fit import losses_views

    return losses_views.sentences(laws)


@one_by_one
def _figures(laws: Found, fit_ids: Sequence[str]) -> Iterable[Figure | Undrawn]:
    if isinstance(laws, RoutedLaws):
        return ()
    if isinstance(laws, Laws):
        return figures([laws], fit_ids)
    from rbpx.questions.fit import losses_views

    return losses_views.figures(laws, fit_ids)


@one_by_one
def _warnings(laws: Found) -> Iterable[str]:
    return warnings([laws]) if isinstance(laws, Laws) else ()


def _check(connection: duckdb.DuckDBPyConnection, store: Store, groups: Sequence[Group], request: Request) -> None:
    if isinstance(request.size_by, tuple):
        check_routed(groups, request)


QUESTION = Question(each(analyse), keep, tables, _sentences, _figures, check=_check, brief=brief, warnings=_warnings)
