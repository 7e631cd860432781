"""Answers `surface`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import duckdb

from rbpx.display.fixed_parameters import given_tables, said_of_given
from rbpx.display.frontier import frontier_table
from rbpx.display.section import between
from rbpx.display.table import STATUS, Column, Table, interval, table_of
from rbpx.display.vocabulary import amount, in_digits, law_order, law_title, rough, short, whole
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Estimate, by_name
from rbpx.laws.prediction.prediction import COMBINED
from rbpx.laws.surface.design import Design
from rbpx.laws.surface.fit import FORMS
from rbpx.laws.sweeps import SweepCell
from rbpx.questions.question import OnPage, of_each
from rbpx.questions.result import Result
from rbpx.questions.surface import SurfaceKeys
from rbpx.questions.surface.analysis import C_label, FormFit, SurfaceLaw, analyse
from rbpx.questions.surface.figures import figures
from rbpx.runs.fits import alike, with_cells
from rbpx.runs.group import By, Group
from rbpx.runs.points.outliers import outlier_rows, said_of_largest, said_of_runs
from rbpx.runs.points.surfaces import varies_in_both
from rbpx.runs.select.groups import select
from rbpx.status import Status
from rbpx.store.store import Record


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: SurfaceKeys) -> Result:
    """Fits every form to every quantity; a row for each, the best of sweeps, and outliers."""
    laws = analyse(connection, group, request)
    fits = [form.row for law in laws for form in law.forms]
    cells, quantities = [cell for law in laws for cell in law.trained.cells], [law.trained for law in laws]
    rows, outside = with_cells(group, alike(fits), cells), outlier_rows(group, quantities)
    return Result(
        [group],
        alike([*({"kind": "law"} | row for row in rows), *outside]) if outside else rows,
        [*_tables(group, laws, cells, request)],
        [*_sentences(laws)],
        partial(figures, group, laws),
        fits,
        notes=[
            *said_of_runs(group, quantities),
            *(f"{each.title}: {off}." for each in quantities if (off := said_of_largest(each))),
        ],
    )


_ALONE: Final = (
    "; constants and errors are of this form alone, what flops=, predict and decide say is averaged over forms"
)
LAW: Final = Column("law", "law")
SURFACES: Final = table_of(
    "surfaces", LAW, ("form", "form"), *interval("α", "alpha"), *interval("β", "beta"), *interval("E", "E"),
    *interval("A", "A", in_digits(4)), *interval("B", "B", in_digits(4)),
    *interval("a", "a", ".3f", "the best S grows as C^a"),
    ("held out", "held_out_error", ".1%", "mean |error| of the largest runs, predicted from the others"),
    ("points", "n_points", whole), ("trainings", "n_runs", whole), ("sizes", "n_S", whole),
    ("numbers of D", "n_D", whole), ("D/S", "least_D_per_S greatest_D_per_S", short),
    ("sd of D", "sd", rough, "of ln D about its line on ln S, or the other way round; below 0.1 one follows the other"),
    ("condition", "condition", short, "condition number of the scaled derivatives of ln y"),
    ("objective", "objective", in_digits(6)), ("AIC", "aic", ".1f"), ("BIC", "bic", ".1f"),
    ("sd", "scatter", rough, "scatter of the runs in ln y"),
    STATUS,
    first="law form alpha beta status, beta_lo E, held_out_error, a, n_points, E_lo least_D_per_S, n_S sd, A, B, "
    "a_lo condition, objective aic bic, n_runs n_D",
)  # fmt: skip
OPTIMA: Final = table_of(
    "optima", LAW, ("form", "form"), ("C", "C", short), *interval("best S", "S", amount),
    *interval("best D", "D", amount), ("D/S", "ratio", short), ("y", "y", ".4f"),
    ("N total", "S_with_head", short, "best S where all parameters count, C = 6 N D"),
    first="law C S D, ratio, form, y, D_lo",
)  # fmt: skip


def _tables(
    group: Group, laws: Sequence[SurfaceLaw], cells: Sequence[SweepCell], request: SurfaceKeys
) -> Iterator[Table]:
    about, named = group.title, [(f"{law.trained.title}, {form.fit.form}", form) for law in laws for form in law.forms]
    if rows := [_by_exponents(form) for _, form in named]:
        of_forms = {name: FORMS[name].equation for name in (row["form"] for row in rows)}
        is_main = [request.laws.by_name or form.row["law"] in ("rbp", "cross_entropy") for _, form in named]
        told = "; ".join(f"{name}: {equation}" for name, equation in of_forms.items())
        alone = "" if any(law.asks_form for law in laws) else _ALONE
        yield SURFACES.of("Surfaces in size and tokens", rows, about, note=f"{told}{alone}.", brief=is_main)
    yield from given_tables([(title, each) for title, form in named for each in form.fit.pinned], about)
    if cells:
        yield replace(frontier_table(cells, about), brief=())
    if best := [row for law in laws for row in _best(law)]:
        C = " or ".join(dict.fromkeys(C_label(law.trained) if law.asks_form else "6 S D" for law in laws))
        yield OPTIMA.of(f"The best of a budget, C as {C}", alike(best), about, brief=bool(request.flops))


def _by_exponents(form: FormFit) -> Record:
    """With alpha the exponent of S and beta that of D, whatever names its source uses."""
    alpha, beta = (form.fit.constants[name] for name in FORMS[form.fit.form].exponents)
    row, scatter = form.row, form.fit.surface and form.fit.surface.scatter
    sd = min(row["sd_D"], row["sd_S"]) if "sd_D" in row else None
    told = {"law": law_title(row["law"], row["k"]), "scatter": scatter, "sd": sd}
    return row | by_name(alpha=alpha, beta=beta) | told


def _best(law: SurfaceLaw) -> Iterator[Record]:
    form = law.optimal or next((each for each in law.forms if each.optima), None)
    if form is None:
        return
    heads = form.row["optima_with_head"] or [{"S": None}] * len(form.optima)
    for best, head in zip(form.optima, heads, strict=True):
        named = {"law": law.trained.title, "form": form.row["form"] if law.asks_form else COMBINED}
        ratio = best["S"] and best["D"] and best["D"] / best["S"]
        yield named | best | {"S_with_head": head["S"], "ratio": ratio}


def _sentences(laws: Sequence[SurfaceLaw]) -> Iterator[str]:
    if laws:
        yield _answer(min(laws, key=lambda law: law_order(law.trained.law, law.trained.k)))
    for law in laws:
        said = "; ".join(_verdict(law))
        yield from [f"{law.trained.title}: {said}."] if said else []
        yield from said_of_given(law.trained.title, law.best.fit.pinned)


def _answer(law: SurfaceLaw) -> str:
    row, fit, title = _by_exponents(law.best), law.best.fit, law.trained.title
    if fit.surface is None:
        return f"No surface of {title}: {Status(row['status']).remedy}"
    alpha, beta, E = (between(*(row[f"{name}{end}"] for end in ("", "_lo", "_hi"))) for name in ("alpha", "beta", "E"))
    if why := _why_collinear(fit.design):
        return f"What size and what tokens do to {title} cannot be told apart: {why}."
    towards, error = "" if row["E"] is None else f" towards E = {E}", row["held_out_error"]
    tested = "no larger run tests it" if error is None else f"smaller runs predict the largest to {error:.1%}"
    falls = f"{title} falls as S^-{alpha} and D^-{beta}{towards} by {fit.form}"
    return f"{falls}; size and tokens can be told apart, and {tested}."


def _verdict(law: SurfaceLaw) -> Iterator[str]:
    best, row, optimal = law.best, law.best.row, law.optimal
    others = [
        f"{each.fit.form} {each.fit.aic - (best.fit.aic or 0):+.1f}"
        for each in law.forms
        if each is not best and each.fit.aic
    ]
    if others:
        yield f"least AIC: {best.fit.form} ({', '.join(others)})"
    if bent := [of["axis"] for of in row["params"]["against"] if Estimate(*of["curvature"]).leaves_out_0]:
        yield f"the residuals of {best.fit.form} bend along {', '.join(bent)}"
    if law.asks_form and optimal is not None and (of := optimal.row)["a"] is not None:
        yield f"the best size grows as C^a, a by {optimal.fit.form} {between(of['a'], of['a_lo'], of['a_hi'])}"


def _why_collinear(design: Design | None) -> str | None:
    if design is None or not design.is_collinear:
        return None
    few = [number_of(design.n_S, "size")] if design.n_S < 3 else []
    few += [number_of(design.n_D, "number of training tokens", "numbers of training tokens")] if design.n_D < 3 else []
    if few:
        return f"the runs have {' and '.join(few)}, and a surface needs 3 of each"
    return (
        f"larger models had {'more' if design.slope > 0 else 'fewer'} tokens, by one power of S (ln D lies off it by "
        f"{rough(design.sd)})"
    )


QUESTION = of_each(answer, select=partial(select, by=By.training), page=OnPage(suits=varies_in_both))
