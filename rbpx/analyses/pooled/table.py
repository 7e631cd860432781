"""Pooled laws: their families' own exponents beside the shared one, and what the residuals are."""

from collections.abc import Sequence

from rich.markup import escape

from rbpx.analyses.pooled.analysis import Pooled, PooledLaw
from rbpx.analyses.pooled.words import exponents, form_name, residuals, worth
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, rough, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.names import Method
from rbpx.laws.pooled import PooledFit
from rbpx.laws.power import PowerLawFit


def show(results: Sequence[Pooled]) -> None:
    """Print a table for each text, a part for each law, and a paragraph that says what its residuals are."""
    screen = console()
    for pooled in results:
        table = grid(f"{pooled.title}: one exponent", _COLUMNS, spare=_SPARE)
        table.columns[-1].justify = "left"
        for law in pooled.laws:
            rows = [_own(name, fit) for name, fit in zip(law.families, law.own, strict=True)]
            table.add_part(law_name(law.law, law.k), [*rows, *map(_pooled, law.fits)])
        put(screen, table)
        for law in pooled.laws:
            for line in _says(law):
                screen.print(line, markup=False, soft_wrap=True)
        screen.print()
    print_notes(
        screen,
        "y = C_f S^-alpha, with E: y = E + C_f S^-alpha; alpha and E are shared, each family has its C_f. 95 %: models "
        "and documents; what families have in common at one size counts once. sd: of ln y about the law. rho: mean "
        "correlation of the families' residuals at the same sizes; worth: independent families that they amount to.",
        (fit.status for pooled in results for law in pooled.laws for fit in law.fits),
    )


_COLUMNS = ["family", "alpha", "95 % interval", "E", "95 % of E", "sd", "rho", "worth", "status"]
_SPARE = ("rho", "95 % of E", "worth", "sd")


def _own(family: str, fit: PowerLawFit) -> list[str]:
    left = fit.params.get("residuals_ln") or []
    dof = len(left) - 2
    sd = (sum(e**2 for e in left) / dof) ** 0.5 if dof > 0 else None
    ends = span(fit.alpha_lo, fit.alpha_hi)
    return [
        f" {escape(family)}",
        number(fit.alpha),
        ends,
        *[UNKNOWN] * 2,
        rough(sd),
        *[UNKNOWN] * 2,
        status_name(fit.status),
    ]


def _pooled(fit: PooledFit) -> list[str]:
    return [
        f" {form_name(fit)}",
        number(fit.alpha),
        span(fit.alpha_lo, fit.alpha_hi),
        *([UNKNOWN] * 2 if fit.method is Method.ols else [number(fit.E, 3), span(fit.E_lo, fit.E_hi, 3)]),
        rough(fit.residual_sd),
        number(fit.mean_correlation, 2),
        number(fit.effective_families, 2),
        status_name(fit.status),
    ]


def _says(law: PooledLaw) -> list[str]:
    """What the exponents, the families and the residuals of each form are, a line each."""
    first, name = law.fits[0], law_name(law.law, law.k)
    if first.alpha is None:
        return [f"{name}: {first.status.remedy}"]
    lines = [f"{name}: {exponents(first)}; {worth(law, first)}"]
    return [*lines, *(f"  {residuals(fit)}" for fit in law.fits if fit.alpha is not None)]
