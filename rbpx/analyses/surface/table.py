"""Surfaces: the constants of each form, what is left, and the best of each budget, in tables."""

from collections.abc import Sequence

from rbpx.analyses.surface.law import FormFit, SurfaceLaw, Surfaces
from rbpx.analyses.surface.words import (
    about,
    compared,
    computes,
    design_says,
    exponents_of,
    isoflop_says,
    left,
    without_optimum,
)
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, magnitude_span, number, percent, rough, short, significant, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.interval import Estimate
from rbpx.laws.surface.fit import FORMS
from rbpx.laws.surface.optimum import Optimum

_NONE = Estimate(None, None, None)


def show(results: Sequence[Surfaces]) -> None:
    """Print the constants, then the best of each budget."""
    screen = console()
    for surfaces in results:
        _print_constants(surfaces)
        for law in surfaces.laws:
            for line in _says(law):
                screen.print(line, markup=False, soft_wrap=True)
        screen.print(f"{surfaces.group.title}: {about(surfaces.group)}\n", markup=False, soft_wrap=True)
        _print_optima(surfaces)
    forms = dict.fromkeys(form.fit.form for each in results for law in each.laws for form in law.forms)
    equations = "; ".join(f"{name}: {FORMS[name].equation} ({FORMS[name].source})" for name in forms)
    print_notes(
        screen,
        f"{equations}. alpha, beta: exponents of S and D, with 95 % intervals over trainings and documents. a: the "
        "best S grows as C^a. Held out: mean error at the largest S, D and C, each predicted from the others.",
        (form.status for each in results for law in each.laws for form in law.forms),
    )


_COLUMNS = ["law", "alpha", "95 % interval", "beta", "95 %", "E", "a", "n", "held out", "status"]
_SPARE = ("held out", "a", "n", "95 % of E", "A", "B", "objective", "AIC", "BIC", "sd")


def _print_constants(surfaces: Surfaces) -> None:
    table = grid(
        f"{surfaces.group.title}: surfaces in size and tokens",
        [*_COLUMNS[:6], "95 % of E", "A", "B", *_COLUMNS[6:8], "objective", "AIC", "BIC", "sd", *_COLUMNS[8:]],
        spare=_SPARE,
    )
    table.columns[-1].justify = "left"
    for form in dict.fromkeys(form.fit.form for law in surfaces.laws for form in law.forms):
        rows = [_row(law, each) for law in surfaces.laws for each in law.forms if each.fit.form == form]
        table.add_part(FORMS[form].equation, rows)
    put(console(), table)


def _row(law: SurfaceLaw, form: FormFit) -> list[str]:
    fit = form.fit
    in_S, in_D = exponents_of(form)
    E, A, B = (fit.constants.get(name, _NONE) for name in ("E", "A", "B"))
    error = form.held_out_error
    return [
        f" {law_name(law.trained.law, law.trained.k)}",
        number(in_S.value),
        span(in_S.lo, in_S.hi),
        number(in_D.value),
        span(in_D.lo, in_D.hi),
        number(E.value, 3),
        span(E.lo, E.hi, 3),
        significant(A.value, 4),
        significant(B.value, 4),
        UNKNOWN if form.split is None else number(form.split[0].value, 3),
        str(fit.n_points),
        significant(fit.objective, 6),
        number(fit.aic, 1),
        number(fit.bic, 1),
        UNKNOWN if fit.surface is None else rough(fit.surface.scatter),
        UNKNOWN if error is None else percent(error).lstrip("+"),
        status_name(form.status),
    ]


def _says(law: SurfaceLaw) -> list[str]:
    name, lines = law_name(law.trained.law, law.trained.k), []
    together = design_says(law.forms[0].fit.design, law.trained.runs.S_N.tolist(), law.trained.runs.D_N.tolist())
    if together is not None:
        lines.append(f"{name}: {together}.")
    rest = left(law.best)
    if rest is not None:
        lines.append(f"{name}, {law.best.fit.form}: {rest}.")
    forms = compared(law)
    return [*lines, *([] if forms is None else [f"{name}: {forms}."])]


def _print_optima(surfaces: Surfaces) -> None:
    laws = [law for law in surfaces.laws if any(form.optima for form in law.forms)]
    if not laws:
        return
    columns = [
        "budget C",
        "best S",
        "95 %",
        "best D",
        "95 % of D",
        "D/S",
        "y",
        "IsoFLOP S",
        "95 % of IsoFLOP",
        "N total",
    ]
    spare = ("IsoFLOP S", "y", "95 % of D", "N total", "95 % of IsoFLOP")
    title = f"{surfaces.group.title}: the best of a budget, {computes(laws)}"
    table = grid(title, columns, spare=spare)
    for law in laws:
        form = law.optimal or next(each for each in law.forms if each.optima)
        of_isoflop = {} if law.isoflop is None else {each.C: each for each in law.isoflop.budgets}
        heads: Sequence[Optimum | None] = form.with_head or [None] * len(form.shown)
        rows = []
        for best, head in zip(form.shown, heads, strict=True):
            flop = of_isoflop.get(best.C)
            S, D = best.S.value, best.D.value
            rows.append(
                [
                    f" {short(best.C)}",
                    short(S),
                    magnitude_span(best.S.lo, best.S.hi),
                    short(D),
                    magnitude_span(best.D.lo, best.D.hi),
                    short(D / S) if S and D else UNKNOWN,
                    number(best.y.value, 3),
                    UNKNOWN if flop is None else short(flop.S.value) if flop.S.value else status_name(flop.status),
                    UNKNOWN if flop is None else magnitude_span(flop.S.lo, flop.S.hi),
                    UNKNOWN if head is None else short(head.S.value),
                ]
            )
        table.add_part(f"{law_name(law.trained.law, law.trained.k)}, {form.fit.form}", rows)
    put(console(), table)
    for law in laws:
        for line in (_beside(law), isoflop_says(law), without_optimum(law)):
            if line is not None:
                name = law_name(law.trained.law, law.trained.k)
                console().print(f"{name}: {line}.", markup=False, soft_wrap=True)
    notes = "IsoFLOP S: minimum of a parabola in ln S through the runs of the budget. N total: best S where all "
    console().print(f"{notes}parameters count, C = 6 N D.\n", markup=False, soft_wrap=True)


def _beside(law: SurfaceLaw) -> str | None:
    """The exponents of the best S in C by each way there is."""
    said = []
    split = None if law.optimal is None else law.optimal.split
    if split is not None and split[0].value is not None:
        said.append(f"surface {_exponent(split[0])}")
    if law.isoflop is not None and law.isoflop.law is not None:
        said.append(f"IsoFLOP {_exponent(law.isoflop.law.a)}")
    if law.envelope is not None and law.envelope.law is not None:
        said.append(f"envelope {_exponent(law.envelope.law.a)}")
    return f"best S as C^a, a by {', '.join(said)}" if said else None


def _exponent(a: Estimate) -> str:
    ends = "" if a.ends is None else f" ({number(a.lo, 3)} to {number(a.hi, 3)})"
    return f"{number(a.value, 3)}{ends}"
