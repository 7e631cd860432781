"""One exponent for the families on one text: fitted, beside their own, in sentences, and the residuals against S."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from rbpx.display.chart.figure import Figure, Origin, Undrawn
from rbpx.display.chart.laws import residual_figure
from rbpx.display.law_columns import exponent
from rbpx.display.section import interval
from rbpx.display.view import Table, View, decimal, state, text, with_ends, written
from rbpx.display.vocabulary import decimals, law_title, number, rough
from rbpx.laws.families.pooled import PooledFit, fit_pooled
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, flat
from rbpx.laws.names import Method
from rbpx.laws.power.law import LawFit, PowerLaw, finite_or_none
from rbpx.runs.fits import fit_points, record_of
from rbpx.runs.group import ALIKE, Group, Run, grouped
from rbpx.runs.origin import spelled
from rbpx.runs.points.sizes import Points
from rbpx.status import Status
from rbpx.store.store import Record

_SHARED: Final = tuple(name for name in ALIKE if name != "family")
_METHODS: Final = (Method.ols, Method.offset)


@dataclass(frozen=True, eq=False)
class PooledLaw:
    """One quantity of several families on one text.

    Attributes:
        groups: the runs of all families on the text.
        law: "rbp" or "cross_entropy".
        k: its k; None where the law has none.
        points: the points of each family.
        own: the power law of each family by itself.
        fits: the laws with one exponent, without an offset and with one.
    """

    groups: tuple[Group, ...]
    law: str
    k: int | None
    points: tuple[Points, ...]
    own: tuple[PowerLaw, ...]
    fits: tuple[PooledFit, ...]

    @property
    def families(self) -> list[str]:
        """Names, in the order of the points."""
        return [points.runs[0].family for points in self.points]

    @property
    def title(self) -> str:
        """The law on its text."""
        return f"{law_title(self.law, self.k)} on {self.groups[0].first.dataset}"


class Families(Group):
    """The runs of several families, which are named together."""

    @property
    def first(self) -> Run:
        """A run that names what all have in common, with the names of the families."""
        return replace(super().first, family=" + ".join(dict.fromkeys(run.family for run in self.runs)))


def families(groups: Sequence[Group]) -> Group:
    """The runs of several groups, as one."""
    return Families(tuple(run for group in groups for run in group.runs), groups[0].ties)


def pool(known: Sequence[tuple[Group, Sequence[Points]]]) -> list[list[PooledLaw]]:
    """The laws of each text: pools the groups that differ in their family alone, each with the points of its laws."""

    def alike(of: tuple[Group, Sequence[Points]]) -> tuple[str, ...]:
        return (of[0].ties.value, *(str(getattr(of[0].first, name)) for name in _SHARED))

    pooled = []
    for members in grouped(sorted(known, key=alike), alike).values():
        groups, points = zip(*members, strict=True)
        by_law = grouped(chain.from_iterable(points), lambda each: (each.law, each.k))
        pooled.append([_law(groups, of) for of in by_law.values() if len(of) > 1])
    return [laws for laws in pooled if laws]


def _law(groups: tuple[Group, ...], points: Sequence[Points]) -> PooledLaw:
    own = tuple(fit_points(each, Method.ols).fit for each in points)
    lone = any(each.doubt is Status.one_document for each in points)
    # The documents of one text are drawn alike for all families, so their resamples belong together.
    replicates = None if lone else [each.y_BN for each in points]
    sizes, values = [each.S_N for each in points], [each.y_N for each in points]
    fits = [fit_pooled(sizes, values, replicates, method, points[0].n_documents) for method in _METHODS]
    if lone:
        fits = [replace(fit, alpha_lo=None, alpha_hi=None, E_lo=None, E_hi=None) for fit in fits]
        fits = [replace(fit, status=Status.one_document) if fit.status is Status.ok else fit for fit in fits]
    return PooledLaw(groups, points[0].law, points[0].k, tuple(points), own, tuple(fits))


def fit_records(law: PooledLaw) -> Iterator[Record]:
    """Rows of `fits`, one for each form."""
    run_ids = sorted({run_id for points in law.points for run in points.runs for run_id in run.run_ids})
    for fit in law.fits:
        params: Record = fit.record() | {"loss": law.law, "families": law.families}
        params |= {"S": [of.S_N for of in law.points], "y": [finite_or_none(of.y_N) for of in law.points]}
        params |= {"own_alpha": [[own.alpha.value, own.alpha.lo, own.alpha.hi] for own in law.own]}
        more: Record = {"k": law.k, "n": law.law, "family": " + ".join(law.families), "params": params}
        alpha = Estimate(fit.alpha, fit.alpha_lo, fit.alpha_hi, fit.alpha_stderr)  # constants are in params
        as_law = LawFit(alpha=alpha, n_points=sum(len(points.S_N) for points in law.points), status=fit.status)
        yield record_of(law.groups[0], "pooled", as_law, run_ids, fit.method, **more)


def sentence(law: PooledLaw) -> str:
    """The shared exponent, what the families are worth, and what the residuals show."""
    fit, n = law.fits[0], len(law.families)
    if fit.alpha is None:
        return f"{law.title}: {fit.status.remedy}"
    equal = "equal exponents cannot be tested"
    if fit.exponents is not None:
        words = "differ" if "exponents differ" in fit.reasons else "may be equal"
        equal = f"exponents {words} (p = {fit.exponents.p:.2g})"
    worth = f"{n} families that share fewer than 4 sizes, so the correlation of their residuals is unknown"
    if fit.mean_correlation is not None:
        counted = f"correlate by {fit.mean_correlation:.2f} count as {number(fit.effective_families, 2)}"
        worth = f"{n} families whose residuals {counted}"
    said = [equal, worth, *(_scatter(each) for each in law.fits if each.alpha is not None)]
    return f"{law.title}: α = {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi)}; {'; '.join(said)}."


def _scatter(fit: PooledFit) -> str:
    """What the residuals about one form are."""
    return f"{'y = E + C · S^−α' if fit.method is Method.offset else 'y = C · S^−α'}: {fit.verdict}"


def table(texts: Sequence[Sequence[PooledLaw]]) -> Table:
    """Every law of every text, of the families and with one exponent."""
    rows = [row for laws in texts for law in laws for row in _rows(law)]
    one, group = len(texts) == 1, families(texts[0][0].groups)
    view = View(LAWS.name, LAWS.columns[1:]) if one else LAWS
    note = (
        "y = C_f · S^−α, with E: y = E + C_f · S^−α; α and E are shared, each family has its own C_f. Neither form is "
        "chosen: each is tested by the points that it is fitted to; `predict` holds sizes out."
    )
    if not one:
        note += " Texts of the same models are not independent: a model that is off its law on one may be so on all."
    return view.table("one exponent", rows, group.title if one else group.title_of_family, note=note)


def _rows(law: PooledLaw) -> Iterator[Record]:
    names = {"dataset": law.groups[0].first.dataset, "law": law_title(law.law, law.k)}
    for family, own in zip(law.families, law.own, strict=True):
        dof = own.n_points - 2
        sd = (sum(e**2 for e in own.residuals_ln) / dof) ** 0.5 if dof > 0 and own.residuals_ln else None
        yield {**own.columns(), "E": own.E.value, **names, "family": family, "residual_sd": sd}
    for fit in law.fits:
        is_offset = fit.method is Method.offset
        no_E = {} if is_offset else flat({"E": NO_ESTIMATE})
        yield {**vars(fit), **names, "family": "pooled, with E" if is_offset else "pooled", **no_E}


LAWS: Final = View[Record](
    "pooled",
    text("text", "dataset"),
    text("law", "law"),
    text("family", "family"),
    exponent(means="interval over models and documents; what families have in common at a size counts once"),
    with_ends("E", "E", None, decimals(3), spare=1, ends_spare=4),
    written("sd", "residual_sd", None, rough, "of ln y about the law", spare=6),
    decimal("ρ", "mean_correlation", None, 2, "correlation of the residuals at the same sizes", spare=2),
    decimal("worth", "effective_families", None, 2, "how many independent families they amount to", spare=5),
    state(lambda row: row["status"]),  # its reasons are words
)


def figures(texts: Sequence[Sequence[PooledLaw]], fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Draw the residuals of each law on each text."""
    for at, laws in enumerate(texts):
        for n, law in enumerate(laws):
            yield _residuals(f"residuals-{at}-{n}", law, fit_ids)


def _residuals(name: str, law: PooledLaw, fit_ids: Sequence[str]) -> Figure | Undrawn:
    fit, title = law.fits[0], f"{law.title}: residuals about the shared law"
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
