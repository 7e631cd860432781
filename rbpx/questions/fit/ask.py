"""Answers which laws of size a group of runs has: what each model scores, the distribution of its ranks, every law."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.chart.figure import spread
from rbpx.display.frontier import frontier_table
from rbpx.display.given import given_tables
from rbpx.display.law_columns import backtest, constant, determination, exponent, points_of
from rbpx.display.view import Cell, Column, Table, View, decimal, place, state, text, whole, with_ends
from rbpx.display.vocabulary import AXES, law_title, title_of
from rbpx.errors import number_of
from rbpx.laws.names import IMPORTED, Axis, Method, OnText, SizeBy
from rbpx.laws.prediction.verdict import Form
from rbpx.questions.fit.analysis import Laws, analyse, fits_of, rank_fits_of
from rbpx.questions.fit.figures import figures
from rbpx.questions.fit.routed import check_routed, routed
from rbpx.questions.fit.words import about, by_methods, sentences
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import with_cells
from rbpx.runs.group import Group
from rbpx.runs.points.frontier import said_of_points
from rbpx.runs.select.sizes import select_alike
from rbpx.runs.select.ways import Cells, in_size
from rbpx.store.store import Record

_MOST: Final = 8  # of the many runs along a training, spread over it
_USUAL_K: Final = (1, 10, 100)
_TERMS: Final = {"error_entropy": "H(P)", "self_alignment": "KL", "confidence": "−ln ΣS"}
_FORM: Final = (
    "whether the data call for an irreducible offset E; undecided (`either` in csv and json) where they cannot tell"
)


def select(connection: duckdb.DuckDBPyConnection, request: Request, cells: Cells = None) -> Sequence[Group]:
    """One run a size; for laws in active beside all parameters, which no law is in, any runs that are alike."""
    if not isinstance(request.size_by, tuple):
        return in_size(connection, request, cells, sizes=3, loss_to_loss=True)
    groups = select_alike(connection, request.but(size_by=SizeBy.total), cells)
    check_routed(groups, request)
    return groups


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Fit every requested law to one group of runs; a refit replaces its own rows."""
    if isinstance(request.size_by, tuple):
        return routed(connection, group, request)
    if isinstance(request.axis, OnText):
        from rbpx.questions.fit.losses_tables import of_losses  # which laws in size do without

        return of_losses(connection, group, request)
    laws = analyse(connection, group, request)
    fits, shown = fits_of(laws), brief(laws) if request.brief else laws
    names = {(law.law, law.k) for law in shown.laws}
    return Result(
        [group],
        with_cells(group, fits, laws.cells),
        [*_tables(shown, [row for row in fits if (row["law"], row["k"]) in names])],
        [*sentences(shown)],
        partial(figures, laws),
        fits,
        rank_fits_of(laws),
        [*said_of_points(laws.cells, group.asked)],
    )


def brief(laws: Laws) -> Laws:
    """The laws of cross-entropy and of RBP at the usual k alone, which fit a screen."""
    usual = _usual_k(laws)
    shown = [law for law in laws.laws if law.law == "cross_entropy" or (law.law == "rbp" and law.k in usual)]
    return replace(laws, laws=tuple(shown), n_unshown=len(laws.laws) - len(shown))


def _usual_k(laws: Laws) -> Sequence[int]:
    return [k for k in laws.k_grid if k in _USUAL_K] or laws.k_grid[: len(_USUAL_K)]


def _tables(laws: Laws, fits: Sequence[Record]) -> Iterator[Table]:
    """What the models of a group score, how their ranks are distributed, and their laws."""
    yield _models(laws)
    if not laws.n_unshown:
        yield from _ranks(laws)
    if laws.cells:
        yield frontier_table(laws.cells, laws.group.title)
    if laws.group.n_sizes >= 3:
        yield _laws(laws, fits)
    given = [(law_title(law.law, law.k), each) for law in laws.laws for each in law.fit.pinned]
    yield from given_tables(given, laws.group.title)


def _models(laws: Laws) -> Table:
    group, usual = laws.group, _usual_k(laws)
    ce_spare = 0 if any(run.cross_entropy_nats is not None for run in group.runs) else 1
    view = View[Record](
        "models",
        text("size", "size"),
        place(spare=1),
        [decimal(f"RBP_{k}", f"rbp_{k}", spare=0 if k in usual else 4 + at) for at, k in enumerate(laws.k_grid)],
        decimal("CE", "cross_entropy_nats", means="cross-entropy, nats", spare=ce_spare),
        [decimal(name.replace("_", " "), name, spare=1) for name in IMPORTED],
        [decimal(heading, name, spare=2) for name, heading in _TERMS.items() if not laws.n_unshown],
        whole("tokens", "n_tokens", spare=3),
    )
    rows = _scores(laws)
    shown = rows if group.axis is Axis.S and not laws.cells else spread(rows, _MOST)
    note = f"{len(shown)} of {len(rows):,} runs." if len(shown) < len(rows) else ""
    return view.table("What each model scores", shown, f"{group.title}: {about(group)}", group.axis, note)


def _scores(laws: Laws) -> list[Record]:
    """What each model scores, by column; a quantity that is not known is None."""
    rows = []
    for at, run in enumerate(laws.group.runs):
        measured: dict[str, Any] = laws.evidence[at].measured if laws.evidence else {}
        shares = measured.get("rbp", [run.observed.get((k, 1)) for k in laws.k_grid])
        terms = {name: float(measured.get(name, math.nan)) for name in _TERMS}
        rows.append(
            {
                **{name: getattr(run, name) for name in ("size", "non_embedding_params", "x", "n_tokens")},
                **{f"rbp_{k}": share for k, share in zip(laws.k_grid, shares, strict=True)},
                "cross_entropy_nats": run.cross_entropy_nats,
                **{name: run.imported.get(name) for name in IMPORTED},
                **{name: value if math.isfinite(value) else None for name, value in terms.items()},
            }
        )
    return rows


RANKS: Final = View[Record](
    "ranks",
    text("size", "size"),
    decimal("μ", "mu", digits=2),
    decimal("σ", "sigma", digits=2),
    decimal("−ln RBP_1", "neg_ln_rbp_1"),
    decimal("derived", "derived_rbp_1"),
    decimal("CE", "cross_entropy_nats"),
    decimal("derived", "derived_cross_entropy"),
    text("paper", "paper"),
    text("full", "full"),
    decimal("γ", "gamma", digits=3),
)


def _ranks(laws: Laws) -> Iterator[Table]:
    rows = []
    for run, of in zip(laws.group.runs, laws.evidence, strict=False):
        if of.paper is None or of.full is None or laws.group.axis is not Axis.S:
            continue
        share = of.measured["rbp"][laws.k_grid.index(1)] if 1 in laws.k_grid else 0.0
        derived = [of.measured[f"lognormal_{name}"] for name in ("rbp1", "cross_entropy")]
        rbp_1, nats = (float(value) if np.isfinite(value) else None for value in derived)
        row = {"size": run.size, "neg_ln_rbp_1": -math.log(share) if share else None, "derived_rbp_1": rbp_1}
        row |= {"cross_entropy_nats": float(of.measured["cross_entropy"]), "derived_cross_entropy": nats}
        row |= {"paper": of.paper.status.label, "full": of.full.status.label}
        rows.append(row | of.paper.params | {"gamma": of.full.params.get("gamma_unconstrained")})
    if rows:
        yield RANKS.table(
            "Lognormal of the ranks: from 2 up (paper), of all (full); curves from paper", rows, laws.group.title
        )


def _name(row: Record) -> Cell:
    law, k, method = row["law"], row["k"], row["method"]
    return Cell((law_title(law, k, Method(method)),), (law, k, method), is_number=False)


def _form(row: Record) -> str | None:
    choice = row["params"].get("choice")
    return Form(choice["form"]).word if choice else None


LAWS: Final = View[Record](
    "laws",
    Column("law", ("law", "k", "method"), _name),
    exponent(),
    decimal("sd text", "alpha_text_sd", spare=9),
    decimal("sd models", "alpha_models_sd", spare=8),
    constant(spare=3),
    with_ends("E", "E", spare=6),
    determination(spare=2, ends_spare=7),
    points_of(spare=4),
    backtest(),
    text("form", "form", _form, _FORM, spare=1),
    state(),
)


def _laws(laws: Laws, fits: Sequence[Record]) -> Table:
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
    if laws.n_unshown:
        note += f" Fitted too: {number_of(laws.n_unshown, 'more law')} a text, which fit, ranks and entropy show."
    return LAWS.table(title, fits, group.title, group.axis, note)


QUESTION = of_each(answer, select=select)
