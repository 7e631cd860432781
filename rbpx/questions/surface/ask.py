"""Answers how quantities depend on size and tokens: the constants of each form, and the best of each budget."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.frontier import frontier_table
from rbpx.display.given import given_tables
from rbpx.display.view import (
    Cell,
    Column,
    Table,
    View,
    decimal,
    ends,
    magnitude,
    share,
    state,
    text,
    whole,
    with_ends,
    written,
)
from rbpx.display.vocabulary import decimals, in_digits, law_title, rough, short, significant
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.surface.fit import FORMS
from rbpx.laws.sweeps import Cell as Swept
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.questions.surface.analysis import FormFit, SurfaceLaw, analyse, budgets_of
from rbpx.questions.surface.figures import figures
from rbpx.questions.surface.words import computes, sentences
from rbpx.runs.fits import alike, with_cells
from rbpx.runs.points.outliers import outlier_rows
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.runs.select.ways import whole_trainings
from rbpx.status import Status
from rbpx.store.store import Record


def answer(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Result:
    """Fit every form to every quantity of a group: a row for each, then the best of sweeps, and runs that lie off."""
    laws = analyse(connection, group, request)
    fits = [form.row for law in laws for form in law.forms]
    cells = [cell for law in laws for cell in law.trained.cells]
    rows, outside = with_cells(group, alike(fits), cells), outlier_rows(group, [law.trained for law in laws])
    return Result(
        [group],
        alike([*({"kind": "law"} | row for row in rows), *outside]) if outside else rows,
        [*_tables(group, laws, cells)],
        [*sentences(group, laws, cells)],
        partial(figures, group, laws),
        fits,
    )


LAW: Final[Column[Record]] = text("law", "law", lambda row: law_title(row["law"], row["k"]))


SURFACES: Final = View[Record](
    "surfaces",
    LAW,
    text("form", "form", spare=12),
    with_ends("α", "alpha", means="exponent of S; intervals are over trainings and documents"),
    with_ends("β", "beta", means="exponent of D"),
    with_ends("E", "E", spare=1, ends_spare=5),
    with_ends("A", "A", None, in_digits(4), spare=6),
    with_ends("B", "B", None, in_digits(4), spare=7),
    with_ends("a", "a", None, decimals(3), "the best S grows as C^a", spare=3, ends_spare=8),
    whole("points", "n_points", spare=4),
    written("objective", "objective", None, lambda value: significant(value, 6), spare=9),
    decimal("AIC", "aic", None, 1, spare=10),
    decimal("BIC", "bic", None, 1, spare=10),
    written("sd", "scatter", None, rough, "scatter of the runs in ln y", spare=11),
    share(
        "held out", "held_out_error",
        means="mean |error| at the largest S, D and C, each predicted from the others", spare=2,
    ),
    state(),
)  # fmt: skip
DESIGNS: Final = View[Record](
    "design",
    LAW,
    text("form", "form"),
    whole("trainings", "n_runs", spare=4),
    whole("sizes", "n_S", spare=2),
    whole("numbers of D", "n_D", spare=5),
    ends("least_D_per_S greatest_D_per_S", None, short, "D/S"),
    written(
        "sd", "sd", lambda row: min(row["sd_D"], row["sd_S"]) if "sd_D" in row else None, rough,
        "standard deviation of ln D about its line on ln S, or of ln S about its line on ln D where that is less; "
        "below 0.1 one follows the other",
    ),
    magnitude(
        "condition", "condition",
        means="condition number of the derivatives of ln y by the constants, each scaled to length 1", spare=3,
    ),
    state(),
)  # fmt: skip


def _isoflop(row: Record) -> Cell:
    """The best size, or the status that says why there is none."""
    S, status = row.get("isoflop_S"), row.get("isoflop_status")
    return Cell((Status(status).label if status and S is None else short(S),), (S,))


OPTIMA: Final = View[Record](
    "optima",
    LAW,
    text("form", "form", spare=2),
    magnitude("C", "C"),
    with_ends("best S", "S", None, short),
    with_ends("best D", "D", None, short, ends_spare=5),
    magnitude("D/S", "ratio", lambda row: row["S"] and row["D"] and row["D"] / row["S"], spare=1),
    decimal("y", "y", spare=4),
    Column("IsoFLOP S", ("isoflop_S",), _isoflop, "minimum of a parabola in ln S through the runs of the budget", 3),
    ends("isoflop_S_lo isoflop_S_hi", None, short, spare=7),
    magnitude("N total", "S_with_head", means="best S where all parameters count, C = 6 N D", spare=6),
)


def _tables(group: TrainingGroup, laws: Sequence[SurfaceLaw], cells: Sequence[Swept]) -> Iterator[Table]:
    """The surfaces of a group, a table for each form, how their points lie, then the best of each budget."""
    about, named = group.title, [(f"{law.trained.title}, {form.fit.form}", form) for law in laws for form in law.forms]
    rows = [_by_exponents(form) for _, form in named]
    for name in dict.fromkeys(row["form"] for row in rows):
        title, note = f"{name}: {FORMS[name].equation}", f"{name}: {FORMS[name].source}."
        table = SURFACES.table(title, [row for row in rows if row["form"] == name], about, note=note)
        yield replace(table, name=f"{table.name}-{name}")
    if rows:
        yield DESIGNS.table("Whether size and tokens can be told apart", rows, about)
    yield from given_tables([(title, each) for title, form in named for each in form.fit.pinned], about)
    if cells:
        yield frontier_table(cells, about)
    if best := [(law, row) for law in laws for row in _best(law)]:
        C = computes(law.trained for law, _ in best)
        yield OPTIMA.table(f"The best of a budget, {C}", [row for _, row in best], about)


def _by_exponents(form: FormFit) -> Record:
    """The row of a form whose alpha and beta are the exponents of S and D, whatever its source calls them."""
    alpha, beta = (form.fit.constants[name] for name in FORMS[form.fit.form].exponents)
    return form.row | by_name(alpha=alpha, beta=beta) | {"scatter": form.fit.surface and form.fit.surface.scatter}


def _best(law: SurfaceLaw) -> Iterator[Record]:
    """The best of each budget by a form, by IsoFLOP, and with all parameters counted."""
    form = law.optimal or next((each for each in law.forms if each.optima), None)
    if form is None:
        return
    named = {name: form.row[name] for name in ("law", "k", "form")}
    found = {each["C"]: each for each in budgets_of(form.row["isoflop"])}
    heads = form.row["optima_with_head"] or [{"S": None}] * len(form.optima)
    for best, head in zip(form.optima, heads, strict=True):
        by_parabola = {f"isoflop_{name}": value for name, value in found.get(best["C"], {}).items()}
        yield named | best | by_parabola | {"S_with_head": head["S"]}


QUESTION = of_each(answer, select=whole_trainings)
