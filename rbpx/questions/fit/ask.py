"""Answers which laws of size a group of runs has: what each model scores, the distribution of its ranks, every law."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import duckdb

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
        from rbpx.questions.fit.losses import of_losses  # which laws in size do without

        return of_losses(connection, group, request)
    laws = analyse(connection, group, request)
    fits = fits_of(laws)
    shown = [row for row in fits if not request.brief or _is_usual(laws, row)]
    return Result(
        [group],
        with_cells(group, fits, laws.cells),
        [*_tables(laws, shown, len(fits) - len(shown))],
        [*sentences(laws, shown)],
        partial(figures, laws),
        fits,
        rank_fits_of(laws),
        [*said_of_points(laws.cells, group.asked)],
    )


def _usual_k(laws: Laws) -> Sequence[int]:
    return [k for k in laws.k_grid if k in _USUAL_K] or laws.k_grid[: len(_USUAL_K)]


def _is_usual(laws: Laws, row: Record) -> bool:
    """Whether a law is of cross-entropy or of RBP at the usual k, which fit a screen."""
    return row["law"] == "cross_entropy" or (row["law"] == "rbp" and row["k"] in _usual_k(laws))


def _tables(laws: Laws, fits: Sequence[Record], n_unshown: int) -> Iterator[Table]:
    """What the models of a group score, and their laws."""
    yield _models(laws)
    if laws.cells:
        yield frontier_table(laws.cells, laws.group.title)
    if laws.group.n_sizes >= 3:
        yield _laws(laws, fits, n_unshown)
    given = [(law_title(law.law, law.k), each) for law in laws.laws for each in law.fit.pinned]
    yield from given_tables(given, laws.group.title)


def _models(laws: Laws) -> Table:
    group, usual, rows = laws.group, _usual_k(laws), list[Record]()
    for at, run in enumerate(group.runs):
        measured: dict[str, Any] = laws.evidence[at].measured if laws.evidence else {}
        shares = measured.get("rbp", [run.observed.get((k, 1)) for k in laws.k_grid])
        row = vars(run) | {"x": run.x} | {f"rbp_{k}": of for k, of in zip(laws.k_grid, shares, strict=True)}
        rows.append(row | run.imported | {name: float(measured[name]) for name in _TERMS if name in measured})
    view = View[Record](
        "models",
        text("size", "size"),
        place(spare=1),
        [decimal(f"RBP_{k}", f"rbp_{k}", spare=0 if k in usual else 4 + at) for at, k in enumerate(laws.k_grid)],
        decimal("CE", "cross_entropy_nats", means="cross-entropy, nats"),
        [decimal(name.replace("_", " "), name, spare=1) for name in IMPORTED],
        [decimal(heading, name, spare=2) for name, heading in _TERMS.items()],
        whole("tokens", "n_tokens", spare=3),
    )
    shown = rows if group.axis is Axis.S and not laws.cells else spread(rows, _MOST)
    note = f"{len(shown)} of {len(rows):,} runs." if len(shown) < len(rows) else ""
    return view.table("What each model scores", shown, f"{group.title}: {about(group)}", group.axis, note)


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


def _laws(laws: Laws, fits: Sequence[Record], n_unshown: int) -> Table:
    group, words = laws.group, AXES[laws.group.axis]
    methods = list(dict.fromkeys(law.method for law in laws.laws))
    offset = "E + " if methods == [Method.offset] else ""
    title = f"Scaling laws: y = {offset}{words.constant} · {words.x}^−α, fitted to ln y by {by_methods(methods)}"
    note = (
        f"RBP_k = Pr(rank ≤ k), ties {group.ties.value}; y is −ln RBP_k, or nats; "
        f"{title_of(group.axis, group.first.size_by)}. Intervals include the scatter of the models about the law"
        f"{' and document sampling.' if group.is_measured else '; document sampling is unknown.'}"
    )
    if n_unshown:
        note += f" Fitted too: {number_of(n_unshown, 'more law')} a text, which fit, ranks and entropy show."
    return LAWS.table(title, fits, group.title, group.axis, note)


QUESTION = of_each(answer, select=select)
