"""Shows what families on one text share: beside their own exponents, in sentences, and the residuals against S."""

from collections.abc import Sequence
from typing import Final

from rbpx.display.chart.figure import Figure, Origin, Undrawn
from rbpx.display.chart.laws import residual_figure
from rbpx.display.section import interval
from rbpx.display.view import Table, View, decimal, state, text, with_ends, written
from rbpx.display.vocabulary import decimals, law_title, number, rough
from rbpx.laws.families.pooled import PooledFit
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.exponents.pooled import Pooled, PooledLaw, families
from rbpx.runs.origin import spelled


def _title(pooled: Pooled, law: PooledLaw) -> str:
    """A law on its text."""
    return f"{law_title(law.law, law.k)} on {pooled.groups[0].first.dataset}"


def sentences(results: Sequence[Pooled]) -> list[str]:
    """A sentence for each law: the shared exponent, what the families are worth, and what the residuals show."""
    return [_sentence(_title(pooled, law), law) for pooled in results for law in pooled.laws]


def _sentence(name: str, law: PooledLaw) -> str:
    first = law.fits[0]
    if first.alpha is None:
        return f"{name}: {first.status.remedy}"
    said = [_exponents(first), _worth(law, first), *(_scatter(fit) for fit in law.fits if fit.alpha is not None)]
    return f"{name}: α = {interval(first.alpha, first.alpha_lo, first.alpha_hi)}; {'; '.join(said)}."


def _exponents(fit: PooledFit) -> str:
    """Whether the families have one exponent."""
    if fit.exponents is None:
        return "equal exponents cannot be tested"
    words = "differ" if "exponents differ" in fit.reasons else "may be equal"
    return f"exponents {words} (p = {fit.exponents.p:.2g})"


def _worth(law: PooledLaw, fit: PooledFit) -> str:
    """How many independent families these are worth."""
    n, rho = len(law.families), fit.mean_correlation
    if rho is None:
        return f"{n} families that share fewer than 4 sizes, so the correlation of their residuals is unknown"
    return f"{n} families whose residuals correlate by {rho:.2f} count as {number(fit.effective_families, 2)}"


def _scatter(fit: PooledFit) -> str:
    """What the residuals about one form are."""
    return f"{'y = E + C · S^−α' if fit.method is Method.offset else 'y = C · S^−α'}: {fit.verdict}"


# The text, the law, a family or a form, its fit, and the same fit where it is pooled.
_Row = tuple[str, str, str, PowerLawFit | PooledFit, PooledFit | None]


def table(results: Sequence[Pooled]) -> Table:
    """Every law of every text, of the families and with one exponent."""
    rows: list[_Row] = []
    for pooled in results:
        for law in pooled.laws:
            of = pooled.groups[0].first.dataset, law_title(law.law, law.k)
            rows += [(*of, family, own, None) for family, own in zip(law.families, law.own, strict=True)]
            rows += [(*of, "pooled, with E" if fit.method is Method.offset else "pooled", fit, fit) for fit in law.fits]
    one, group = len(results) == 1, families(results[0].groups)
    view = View(LAWS.name, LAWS.columns[1:]) if one else LAWS
    note = (
        "y = C_f · S^−α, with E: y = E + C_f · S^−α; α and E are shared, each family has its own C_f. Neither form is "
        "chosen: each is tested by the points that it is fitted to; `predict` holds sizes out."
    )
    if not one:
        note += " Texts of the same models are not independent: a model that is off its law on one may be so on all."
    return view.table("one exponent", rows, group.title if one else group.title_of_family, note=note)


def _offset(row: _Row) -> Estimate | None:
    fit = row[4]
    return None if fit is None or fit.method is Method.ols else Estimate(fit.E, fit.E_lo, fit.E_hi)


def _sd(row: _Row) -> float | None:
    """Standard deviation of ln y about the law."""
    if isinstance(row[3], PooledFit):
        return row[3].residual_sd
    left = row[3].residuals_ln
    dof = len(left) - 2
    return float((sum(e**2 for e in left) / dof) ** 0.5) if dof > 0 else None


LAWS: Final = View[_Row](
    "pooled",
    text("text", "dataset", lambda row: row[0]),
    text("law", "law", lambda row: row[1]),
    text("family", "family", lambda row: row[2]),
    with_ends(
        "α", "alpha", lambda row: Estimate(row[3].alpha, row[3].alpha_lo, row[3].alpha_hi),
        means="interval over models and documents; what families have in common at a size counts once",
    ),
    with_ends("E", "E", _offset, decimals(3), spare=1, ends_spare=4),
    written("sd", "residual_sd", _sd, rough, "of ln y about the law", spare=6),
    decimal(
        "ρ", "mean_correlation", lambda row: None if row[4] is None else row[4].mean_correlation, 2,
        "correlation of the residuals at the same sizes", spare=2,
    ),
    decimal(
        "worth", "effective_families", lambda row: None if row[4] is None else row[4].effective_families, 2,
        "how many independent families they amount to", spare=5,
    ),
    state(lambda row: row[3].status),
)  # fmt: skip


def figures(results: Sequence[Pooled], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Draw the residuals of each law on each text."""
    return [
        _residuals(f"residuals-{at}-{n}", f"{_title(pooled, law)}: residuals about the shared law", law, fit_ids)
        for at, pooled in enumerate(results)
        for n, law in enumerate(pooled.laws)
    ]


def _residuals(name: str, title: str, law: PooledLaw, fit_ids: Sequence[str]) -> Figure | Undrawn:
    fit = law.fits[0]
    if fit.alpha is None:
        return Undrawn(name, title, fit.status.remedy)
    rows = [
        (family, run.size, run, left)
        for family, points, of_family in zip(law.families, law.points, fit.residuals, strict=True)
        for run, left in zip(points.runs, of_family, strict=True)
    ]
    says = f"Residuals of {', '.join(law.families)} against size: {_scatter(fit)}."
    run_ids = tuple(run_id for _, _, run, _ in rows for run_id in run.run_ids)
    return residual_figure(name, title, rows, "family", says, Origin(spelled("laws", fit_ids=fit_ids), run_ids))
