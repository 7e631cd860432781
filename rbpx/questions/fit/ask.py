"""Answers `fit`: the laws, and the scores of each model."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import duckdb

from rbpx.config.keys.laws import USUAL, USUAL_K
from rbpx.display.chart.figure import spread
from rbpx.display.fixed_parameters import given_tables
from rbpx.display.frontier import frontier_table
from rbpx.display.law_columns import ALPHA, BACKTEST, CONSTANT, POINTS, R2, law_row, with_params
from rbpx.display.table import PLACE, SIZE, STATUS, Table, interval, table_of
from rbpx.display.vocabulary import AXES, law_title, whole
from rbpx.laws.names import IMPORTED, LOGNORMAL, Axis, Method
from rbpx.laws.prediction.verdict import SupportedForm
from rbpx.questions.fit import FitKeys
from rbpx.questions.fit.figures import figures
from rbpx.questions.fit.overview import PAGE
from rbpx.questions.fit.sentences import against_lognormal, by_methods, sentences
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import with_cells
from rbpx.runs.group import Group
from rbpx.runs.laws import GroupLaws, analyse, fit_rows, rank_fit_rows, with_offsets
from rbpx.runs.origin import describe_runs
from rbpx.runs.points.frontier import said_of_points
from rbpx.runs.select.groups import select
from rbpx.store.store import Record

_MOST: Final = 8  # rows for the runs along one training
_TERMS: Final = {"error_entropy": "H(P)", "self_alignment": "KL", "confidence": "−ln ΣS"}


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: FitKeys) -> Result:
    """Fits every requested law; a new fit replaces the stored rows of the same law."""
    if request.is_usual and group.is_measured:
        request = request.but(laws=[*USUAL, *LOGNORMAL], k=[k for k in USUAL_K if k < group.vocab_size])
    laws = analyse(connection, group, request)
    laws = with_offsets(laws) if request.method == [Method.ols] else laws
    fits = fit_rows(laws)
    rows = with_cells(group, fits, laws.cells)
    return Result(
        [group],
        rows,
        [*_tables(laws, fits)],
        [*sentences(laws, fits)],
        partial(figures, laws),
        fits,
        rank_fit_rows(laws),
        [*said_of_points(laws.cells, group.asked), *against_lognormal(fits)],
        plain=[*map(with_params, rows)],
    )


def _tables(laws: GroupLaws, fits: Sequence[Record]) -> Iterator[Table]:
    if laws.group.n_sizes >= 3:
        yield _laws(laws, fits)
    yield _models(laws)
    if laws.cells:
        yield frontier_table(laws.cells, laws.group.title)
    given = [(law_title(law.law, law.k), each) for law in laws.laws for each in law.fit.pinned]
    yield from given_tables(given, laws.group.title)


def _models(laws: GroupLaws) -> Table:
    group, rows = laws.group, list[Record]()
    for at, run in enumerate(group.runs):
        measured: dict[str, Any] = laws.evidence[at].measured if laws.evidence else {}
        shares = measured.get("rbp", [run.observed.get((k, 1)) for k in laws.k_grid])
        row = (
            vars(run) | {group.axis.value: run.x} | {f"rbp_{k}": of for k, of in zip(laws.k_grid, shares, strict=True)}
        )
        rows.append(row | run.imported | {name: float(measured[name]) for name in _TERMS if name in measured})
    usual, others = ([f"rbp_{k}" for k in laws.k_grid if (k in USUAL_K) is of] for of in (True, False))
    models = table_of(
        "models", SIZE, *PLACE, *((f"RBP_{k}", f"rbp_{k}", ".4f") for k in laws.k_grid),
        ("CE", "cross_entropy_nats", ".4f", "cross-entropy, nats"),
        *((name.replace("_", " "), name, ".4f") for name in IMPORTED),
        *((heading, name, ".4f") for name, heading in _TERMS.items()), ("tokens", "n_tokens", whole),
        first=f"size {{x}} cross_entropy_nats {' '.join(usual)}, non_embedding_params {' '.join(IMPORTED)}, "
        f"{' '.join(_TERMS)}, n_tokens, {', '.join(others)}",
    )  # fmt: skip
    shown = rows if group.axis is Axis.S and not laws.cells else spread(rows, _MOST)
    note, are_few = f"{len(shown)} of {len(rows):,} runs." if len(shown) < len(rows) else "", group.n_sizes < 3
    of = group.title if are_few else f"{group.title}: {describe_runs(group)}"
    return models.of("What each model scores", shown, of, group.axis, note, brief=are_few)


LAWS: Final = table_of(
    "laws", ("law", "title law k method"), *ALPHA, ("sd text", "alpha_text_sd", ".4f"),
    ("sd models", "alpha_models_sd", ".4f"), *CONSTANT, *interval("E", "E"), *R2, *POINTS, BACKTEST,
    ("form", "form", str, "whether the points call for an irreducible offset E"),
    STATUS,
    first="title alpha status, E r2 backtest_error, form, C, n_points {x}_from, E_lo r2_lo, alpha_models_sd, "
    "alpha_text_sd",
)  # fmt: skip


def _told(law: Record, axis: Axis) -> Record:
    words, method, choice = AXES[axis], Method(law["method"]), law["params"].get("choice")
    title = law_title(law["law"], law["k"], method)
    if method is Method.offset:
        title = f"{law_title(law['law'], law['k'])}, E + {words.constant} {words.x}^−α"
    return law_row(law, axis) | {"title": title, "form": SupportedForm(choice["form"]).word if choice else None}


def _laws(laws: GroupLaws, fits: Sequence[Record]) -> Table:
    group, words = laws.group, AXES[laws.group.axis]
    methods = list(dict.fromkeys(law.method for law in laws.laws))
    offset = "E + " if methods == [Method.offset] else ""
    title = f"Scaling laws: y = {offset}{words.constant} · {words.x}^−α, fitted to ln y by {by_methods(methods)}"
    notes = [f"RBP_k: the share of true tokens that rank at most k, ties {group.ties.value}."] * (
        any(law.law == "rbp" for law in laws.laws)
    )
    notes += ["Exponents with and without E do not compare."] if {Method.ols, Method.offset} <= {*methods} else []
    notes += [] if group.is_measured else ["Intervals are over models; how far they vary over documents is unknown."]
    rows = [_told(law, group.axis) for law in fits]
    return LAWS.of(title, rows, group.title, group.axis, " ".join(notes))


QUESTION = of_each(answer, select=partial(select, sizes=3), page=PAGE)
