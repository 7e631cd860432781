"""Fits one exponent to all families on a text; gives rows, sentences, the table and the figure of residuals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from rbpx.display.chart.figure import Figure, Origin, Undrawn
from rbpx.display.chart.laws import residual_figure
from rbpx.display.law_columns import estimate_in, exponent
from rbpx.display.section import interval_of
from rbpx.display.view import Table, View, decimal, state, text, with_ends, written
from rbpx.display.vocabulary import decimals, law_title, number, rough
from rbpx.laws.families.pooled import fit_pooled
from rbpx.laws.names import Method
from rbpx.laws.power.law import LawFit, PowerLaw, finite_or_none
from rbpx.runs.fits import fit_points, record_of
from rbpx.runs.group import ALIKE, Group, grouped
from rbpx.runs.origin import spelled
from rbpx.runs.points.sizes import Points
from rbpx.status import Status, first_of
from rbpx.store.store import Record

_SHARED: Final = tuple(name for name in ALIKE if name != "family")
_FORMS: Final = {Method.ols: ("pooled", "y = C · S^−α"), Method.offset: ("pooled, with E", "y = E + C · S^−α")}


@dataclass(frozen=True, eq=False)
class PooledLaw:
    """One quantity of several families on one text: each family's points and its own power law.

    Attributes:
        groups: the runs of all families on the text.
        fits: the laws with one exponent, without and with an offset.
    """

    groups: Sequence[Group]
    points: Sequence[Points]
    own: Sequence[PowerLaw]
    fits: Sequence[Record]

    @property
    def families(self) -> list[str]:
        """Names in the order of the points."""
        return [points.runs[0].family for points in self.points]

    @property
    def title(self) -> str:
        """The law and its text."""
        return f"{law_title(self.points[0].law, self.points[0].k)} on {self.groups[0].first.dataset}"


def families(groups: Sequence[Group]) -> Group:
    """Merges groups into one, named by all of them."""
    name = " + ".join(dict.fromkeys(run.family for group in groups for run in group.runs))
    return Group(tuple(replace(run, family=name) for group in groups for run in group.runs), groups[0].ties)


def pool(known: Sequence[tuple[Group, Sequence[Points]]]) -> list[PooledLaw]:
    """Returns the laws of each text, pooling the groups that differ in family alone."""

    def alike(of: tuple[Group, Sequence[Points]]) -> tuple[str, ...]:
        return (of[0].ties.value, *(str(getattr(of[0].first, name)) for name in _SHARED))

    laws = []
    for members in grouped(sorted(known, key=alike), alike).values():
        groups, points = zip(*members, strict=True)
        by_law = grouped(chain.from_iterable(points), lambda each: (each.law, each.k))
        laws += [_law(groups, of) for of in by_law.values() if len(of) > 1]
    return laws


def _law(groups: Sequence[Group], points: Sequence[Points]) -> PooledLaw:
    lone = any(each.doubt is Status.one_document for each in points)
    # The documents of a text are drawn alike for all families, so replicates correspond.
    replicates = None if lone else [each.y_BN for each in points]
    sizes, values = [each.S_N for each in points], [each.y_N for each in points]
    fits = [fit_pooled(sizes, values, replicates, method, points[0].n_effective) for method in _FORMS]
    if lone:
        no_ends = dict.fromkeys(("alpha_lo", "alpha_hi", "E_lo", "E_hi"))
        fits = [fit | no_ends | {"status": first_of([fit["status"], Status.one_document])} for fit in fits]
    return PooledLaw(groups, points, [fit_points(each, Method.ols).fit for each in points], fits)


def fit_records(law: PooledLaw) -> Iterator[Record]:
    """Yields rows of `fits`, one for each form."""
    run_ids = sorted({run_id for points in law.points for run in points.runs for run_id in run.run_ids})
    (name, k), n = (law.points[0].law, law.points[0].k), sum(len(points.S_N) for points in law.points)
    shared: Record = {"loss": name, "families": law.families}
    shared |= {"S": [of.S_N for of in law.points], "y": [finite_or_none(of.y_N) for of in law.points]}
    shared |= {"own_alpha": [[own.alpha.value, own.alpha.lo, own.alpha.hi] for own in law.own]}
    for fit in law.fits:
        more: Record = {"k": k, "n": name, "family": " + ".join(law.families), "params": fit | shared}
        alpha = replace(estimate_in(fit, "alpha"), stderr=fit.get("alpha_stderr"))
        as_law = LawFit(alpha=alpha, n_points=n, status=fit["status"])  # the constants are in params
        yield record_of(law.groups[0], "pooled", as_law, run_ids, fit["method"], **more)


def sentence(law: PooledLaw) -> str:
    """States the shared exponent, the ratios between families, and what the residuals show."""
    fit, n = law.fits[0], len(law.families)
    if "alpha" not in fit:
        return f"{law.title}: {fit['status'].remedy}"
    said = [f"p of equal exponents {fit['exponents']['p']:.2g}"] if fit["exponents"] else []
    if fit["mean_correlation"] is not None:
        counted = f"correlate by {fit['mean_correlation']:.2f} count as {number(fit['effective_families'], 2)}"
        said.append(f"{n} families whose residuals {counted}")
    said += [f"{_FORMS[each['method']][1]}: {each['verdict']}" for each in law.fits if "verdict" in each]
    return f"{law.title}: α = {interval_of(estimate_in(fit, 'alpha'))}; {'; '.join(said)}."


def table(laws: Sequence[PooledLaw], brief: bool) -> Table:
    """Table of every law of every text, per family and with one exponent; a terminal shows only the latter, if any."""
    rows, about = chain.from_iterable(map(_rows, laws)), families(laws[0].groups).title_of_family
    return LAWS.table("one exponent", rows, about, brief=brief and (lambda row: row["family"] == _FORMS[Method.ols][0]))


def _rows(law: PooledLaw) -> Iterator[Record]:
    names = {"dataset": law.groups[0].first.dataset, "law": law_title(law.points[0].law, law.points[0].k)}
    for family, own in zip(law.families, law.own, strict=True):
        dof = own.n_points - 2
        sd = (sum(e**2 for e in own.residuals_ln) / dof) ** 0.5 if dof > 0 and own.residuals_ln else None
        yield {**own.columns(), **names, "family": family, "residual_sd": sd}
    for fit in law.fits:
        no_E = dict.fromkeys(("E", "E_lo", "E_hi")) if fit["method"] is Method.ols else {}
        yield {**fit, **no_E, **names, "family": _FORMS[fit["method"]][0]}


LAWS: Final = View[Record](
    "pooled",
    text("text", "dataset"),
    text("law", "law"),
    text("family", "family"),
    exponent(),
    with_ends("E", "E", None, decimals(3), spare=1, ends_spare=4),
    written("sd", "residual_sd", None, rough, "of ln y about the law", spare=6),
    decimal("ρ", "mean_correlation", None, 2, "correlation of the residuals at the same sizes", spare=2),
    decimal("worth", "effective_families", None, 2, "how many independent families they amount to", spare=5),
    state(lambda row: row["status"]),
)


def figures(laws: Sequence[PooledLaw], fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Draws the residuals of each law on each text."""
    for n, law in enumerate(laws):
        fit, title = law.fits[0], f"{law.title}: residuals about the shared law"
        if "alpha" not in fit:
            yield Undrawn(f"residuals-{n}", title, fit["status"].remedy)
            continue
        rows = [
            (family, run.size, run, left)
            for family, points, of_family in zip(law.families, law.points, fit["residuals"], strict=True)
            for run, left in zip(points.runs, of_family, strict=True)
        ]
        says = f"Residuals of {', '.join(law.families)} against size: {fit['verdict']}."
        run_ids = tuple(run_id for _, _, run, _ in rows for run_id in run.run_ids)
        origin = Origin(spelled("laws", fit_ids=fit_ids), run_ids)
        yield residual_figure(f"residuals-{n}", title, rows, "family", says, origin)
