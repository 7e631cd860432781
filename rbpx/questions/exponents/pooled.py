"""Fits one exponent to the families on one text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Final

from rbpx.laws.families.pooled import PooledFit, fit_pooled
from rbpx.laws.names import Method
from rbpx.laws.power.law import LawFit, PowerLawFit, finite_or_none
from rbpx.runs.fits import fit_points, record_of
from rbpx.runs.group import ALIKE, Group, Run
from rbpx.runs.points.sizes import Points
from rbpx.status import Status
from rbpx.store.store import Record

_SHARED: Final = tuple(name for name in ALIKE if name != "family")
_METHODS: Final = (Method.ols, Method.offset)
_COLUMNS: Final = ("alpha", "alpha_stderr", "alpha_lo", "alpha_hi", "status")  # of `fits`


@dataclass(frozen=True, eq=False)
class PooledLaw:
    """One quantity of several families.

    Attributes:
        law: "rbp" or "cross_entropy".
        k: its k; None where the law has none.
        points: the points of each family.
        own: the power law of each family by itself.
        fits: the laws with one exponent, without an offset and with one.
    """

    law: str
    k: int | None
    points: tuple[Points, ...]
    own: tuple[PowerLawFit, ...]
    fits: tuple[PooledFit, ...]

    @property
    def families(self) -> list[str]:
        """Names, in the order of the points."""
        return [points.runs[0].family for points in self.points]


class Families(Group):
    """The runs of several families, which are named together."""

    @property
    def first(self) -> Run:
        """A run that names what all have in common, with the names of the families."""
        return replace(super().first, family=" + ".join(dict.fromkeys(run.family for run in self.runs)))


@dataclass(frozen=True, eq=False)
class Pooled:
    """The laws of the families on one text."""

    groups: tuple[Group, ...]
    laws: tuple[PooledLaw, ...]


def families(groups: Sequence[Group]) -> Group:
    """The runs of several groups, as one."""
    return Families(tuple(run for group in groups for run in group.runs), groups[0].ties)


def pool(known: Sequence[tuple[Group, Sequence[Points]]]) -> list[Pooled]:
    """Pool the groups that differ in their family alone, each with the points of its laws."""

    def alike(of: tuple[Group, Sequence[Points]]) -> tuple[str, ...]:
        return (of[0].ties.value, *(str(getattr(of[0].first, name)) for name in _SHARED))

    pooled = []
    for _, members in groupby(sorted(known, key=alike), key=alike):
        groups, points = zip(*members, strict=True)
        by_law: dict[tuple[str, int | None], list[Points]] = {}
        for each in chain.from_iterable(points):
            by_law.setdefault((each.law, each.k), []).append(each)
        laws = tuple(_law(*key, of) for key, of in by_law.items() if len(of) > 1)
        pooled += [Pooled(groups, laws)] if laws else []
    return pooled


def _law(law: str, k: int | None, points: Sequence[Points]) -> PooledLaw:
    own = tuple(fit_points(each, Method.ols).fit for each in points)
    lone = any(each.doubt is Status.one_document for each in points)
    # The documents of one text are drawn alike for all families, so their resamples belong together.
    resampled = None if lone else [each.y_BN for each in points]
    sizes, values = [each.S_N for each in points], [each.y_N for each in points]
    fits = [fit_pooled(sizes, values, resampled, method, points[0].n_documents) for method in _METHODS]
    if lone:
        fits = [replace(fit, alpha_lo=None, alpha_hi=None, E_lo=None, E_hi=None) for fit in fits]
        fits = [replace(fit, status=Status.one_document) if fit.status is Status.ok else fit for fit in fits]
    return PooledLaw(law, k, tuple(points), own, tuple(fits))


def fit_records(pooled: Pooled) -> list[Record]:
    """Rows of `fits`, one for each quantity and form."""
    records = []
    for law in pooled.laws:
        run_ids = sorted({run_id for points in law.points for run in points.runs for run_id in run.run_ids})
        for fit in law.fits:
            params: Record = fit.record() | {"loss": law.law, "families": law.families}
            params |= {"S": [of.S_N for of in law.points], "y": [finite_or_none(of.y_N) for of in law.points]}
            params |= {"own_alpha": [[own.alpha, own.alpha_lo, own.alpha_hi] for own in law.own]}
            more: Record = {"k": law.k, "n": law.law, "family": " + ".join(law.families), "params": params}
            columns = {name: getattr(fit, name) for name in _COLUMNS}  # constants are of a family each, and in params
            as_law = LawFit(n_points=sum(len(points.S_N) for points in law.points), **columns)
            records.append(record_of(pooled.groups[0], "pooled", as_law, run_ids, fit.method, **more))
    return records
