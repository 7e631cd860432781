"""Shows surfaces as tables: the constants of each form, and the best of each budget."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from rbpx.display.frontier import frontier_table
from rbpx.display.given import GIVEN
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
from rbpx.display.vocabulary import UNKNOWN, decimals, rough, short, significant
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.surface.design import Design
from rbpx.laws.surface.fit import FORMS
from rbpx.laws.surface.isoflop import Budget
from rbpx.laws.surface.surface import Optimum
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.questions.surface.analysis import FormFit, SurfaceLaw, Surfaces, analyse, keep
from rbpx.questions.surface.figures import figures
from rbpx.questions.surface.words import computes, sentences
from rbpx.runs.select.ways import whole_trainings


class Fitted(NamedTuple):
    """One form of one quantity."""

    law: SurfaceLaw
    form: FormFit


class Best(NamedTuple):
    """The best of a budget by a form, by IsoFLOP, and with all parameters counted; None where there is none."""

    law: SurfaceLaw
    form: FormFit
    by_form: Optimum
    by_isoflop: Budget | None
    with_head: Optimum | None


def _constant(name: str) -> Callable[[Fitted], Estimate | None]:
    return lambda row: row.form.fit.constants.get(name)


def _exponent(at: int) -> Callable[[Fitted], Estimate]:
    """The exponent of S (0) or of D (1)."""
    return lambda row: row.form.fit.constants[FORMS[row.form.fit.form].exponents[at]]


def _scatter(row: Fitted) -> float | None:
    return None if row.form.fit.surface is None else row.form.fit.surface.scatter


def _four(value: float | None) -> str:
    return significant(value, 4)


SURFACES: Final = View[Fitted](
    "surfaces",
    text("law", "law", lambda row: row.law.trained.title),
    text("form", "form", lambda row: row.form.fit.form, spare=12),
    with_ends("α", "alpha", _exponent(0), means="exponent of S; intervals are over trainings and documents"),
    with_ends("β", "beta", _exponent(1), means="exponent of D"),
    with_ends("E", "E", _constant("E"), spare=1, ends_spare=5),
    with_ends("A", "A", _constant("A"), _four, spare=6),
    with_ends("B", "B", _constant("B"), _four, spare=7),
    with_ends(
        "a", "a", lambda row: None if row.form.split is None else row.form.split[0],
        decimals(3), "the best S grows as C^a", spare=3, ends_spare=8,
    ),
    whole("points", "n_points", lambda row: row.form.fit.n_points, spare=4),
    written("objective", "objective", lambda row: row.form.fit.objective, lambda value: significant(value, 6), spare=9),
    decimal("AIC", "aic", lambda row: row.form.fit.aic, 1, spare=10),
    decimal("BIC", "bic", lambda row: row.form.fit.bic, 1, spare=10),
    written("sd", "scatter", _scatter, rough, "scatter of the runs in ln y", spare=11),
    share(
        "held out", "held_out_error", lambda row: row.form.held_out_error,
        means="mean |error| at the largest S, D and C, each predicted from the others", spare=2,
    ),
    state(lambda row: row.form.status),
)  # fmt: skip


_SD: Final = (
    "standard deviation of ln D about its line on ln S, or of ln S about its line on ln D where that is less; "
    "below 0.1 one follows the other"
)
_CONDITION: Final = "condition number of the derivatives of ln y by the constants, each scaled to length 1"


def _how(of: Callable[[Design], float | None]) -> Callable[[Fitted], float | None]:
    return lambda row: None if row.form.fit.design is None else of(row.form.fit.design)


DESIGNS: Final = View[Fitted](
    "design",
    text("law", "law", lambda row: row.law.trained.title),
    text("form", "form", lambda row: row.form.fit.form),
    whole("trainings", "n_runs", lambda row: row.form.fit.n_runs, spare=4),
    whole("sizes", "n_S", _how(lambda design: design.n_S), spare=2),
    whole("numbers of D", "n_D", _how(lambda design: design.n_D), spare=5),
    ends("least_D_per_S greatest_D_per_S", lambda row: row.form.ratios or (None, None), short, "D/S"),
    written("sd", "sd", _how(lambda design: design.sd), rough, _SD),
    magnitude("condition", "condition", _how(lambda design: design.condition), _CONDITION, spare=3),
    state(lambda row: row.form.status),
)  # fmt: skip


def _isoflop(row: Best) -> Cell:
    """The best size, or the status that says why there is none."""
    if row.by_isoflop is None:
        return Cell((UNKNOWN,), (None,))
    S = row.by_isoflop.S.value
    return Cell((row.by_isoflop.status.label if S is None else short(S),), (S,))


def _isoflop_ends(row: Best) -> tuple[float | None, float | None]:
    return (None, None) if row.by_isoflop is None else (row.by_isoflop.S.lo, row.by_isoflop.S.hi)


def _ratio(row: Best) -> float | None:
    S, D = row.by_form.S.value, row.by_form.D.value
    return D / S if S and D else None


OPTIMA: Final = View[Best](
    "optima",
    text("law", "law", lambda row: row.law.trained.title),
    text("form", "form", lambda row: row.form.fit.form, spare=2),
    magnitude("C", "C", lambda row: row.by_form.C),
    with_ends("best S", "S", lambda row: row.by_form.S, short),
    with_ends("best D", "D", lambda row: row.by_form.D, short, ends_spare=5),
    magnitude("D/S", "ratio", _ratio, spare=1),
    decimal("y", "y", lambda row: row.by_form.y.value, spare=4),
    Column("IsoFLOP S", ("isoflop_S",), _isoflop, "minimum of a parabola in ln S through the runs of the budget", 3),
    ends("isoflop_S_lo isoflop_S_hi", _isoflop_ends, short, spare=7),
    magnitude(
        "N total", "S_with_head", lambda row: None if row.with_head is None else row.with_head.S.value,
        "best S where all parameters count, C = 6 N D", spare=6,
    ),
)  # fmt: skip


@one_by_one
def tables(of: Surfaces) -> Iterator[Table]:
    """The surfaces of a group, a table for each form, how their points lie, then the best of each budget."""
    fitted, about = [Fitted(law, form) for law in of.laws for form in law.forms], of.group.title
    for name in dict.fromkeys(row.form.fit.form for row in fitted):
        rows, kind = [row for row in fitted if row.form.fit.form == name], FORMS[name]
        view = View(f"{SURFACES.name}-{name}", SURFACES.columns)
        yield view.table(f"{name}: {kind.equation}", rows, about, note=f"{name}: {kind.source}.")
    if fitted:
        yield DESIGNS.table("Whether size and tokens can be told apart", fitted, about)
    given = [(f"{row.law.trained.title}, {row.form.fit.form}", each) for row in fitted for each in row.form.fit.pinned]
    if given:
        yield GIVEN.table("Constants that were given", given, about)
    cells = [cell for law in of.laws for cell in law.trained.cells]
    if cells:
        yield frontier_table(cells, about)
    best = [row for law in of.laws for row in _best(law)]
    if best:
        yield OPTIMA.table(f"The best of a budget, {computes(row.law for row in best)}", best, about)


def _best(law: SurfaceLaw) -> list[Best]:
    form = law.optimal or next((each for each in law.forms if each.optima), None)
    if form is None:
        return []
    flops = {} if law.isoflop is None else {each.C: each for each in law.isoflop.budgets}
    heads = form.with_head or [None] * len(form.shown)
    return [Best(law, form, at, flops.get(at.C), head) for at, head in zip(form.shown, heads, strict=True)]


QUESTION = of_parts(each(analyse), keep, tables, sentences, figures, select=whole_trainings)
