"""Fits laws to the points of a group and makes their rows of the relation `fits`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from rbpx.errors import RbpxError
from rbpx.files.digest import digest
from rbpx.laws.intervals.estimate import MOST_LEFT_OUT, Replicates
from rbpx.laws.names import Axis, Method, SizeBy
from rbpx.laws.power.law import LawFit, PowerLaw, fit_power_law
from rbpx.laws.power.offset import PINNABLE
from rbpx.laws.prediction.judged import fit_judged, positive_replicates
from rbpx.laws.prediction.verdict import Backtest, FormVerdict, SupportedForm, compare_forms, with_reasons
from rbpx.laws.priors import NO_PRIORS, ImpossiblePrior, Priors
from rbpx.laws.quantity import quantity
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.sweeps import SweepCell
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points
from rbpx.runs.run import Run
from rbpx.status import Status
from rbpx.store.schema import FITS
from rbpx.store.store import Record, now
from rbpx.ties import Ties

_SIGNED = ("error_entropy", "self_alignment", "confidence")  # and what derives from them, as confidence_share
_AGAINST: Final = {Status.bends, Status.backtest_failed, Status.barely_determined}


@dataclass(frozen=True)
class Law:
    """One fitted law of a group.

    Attributes:
        choice: the form chosen by the comparison of forms.
        backtests: the law, fitted to the smallest sizes, against each larger one.
    """

    law: str
    k: int | None
    method: Method
    fit: PowerLaw
    choice: FormVerdict | None
    runs: tuple[Run, ...]
    backtests: tuple[Backtest, ...] = ()

    @property
    def calls_for_E(self) -> bool:
        """Whether the points call for an irreducible part."""
        return self.choice is not None and self.choice.form is SupportedForm.offset


def fit_points(points: Points, method: Method, pins: Priors = NO_PRIORS) -> Law:
    """Fit one law to its points and judge it by `rbpx.laws.prediction.verdict`.

    A warning about the points is one of its reasons, or prevents the fit.
    """
    (law,) = fit_all([points], method, compares=False, pins=pins)
    return law


def fit_all(series: Sequence[Points], method: Method, compares: bool = True, pins: Priors = NO_PRIORS) -> list[Law]:
    """Fit laws as `fit_points` does; without weights, `ols` compares their forms too.

    Raises:
        RbpxError: a fixed parameter is impossible, or the method cannot use the weights of the runs.
    """
    method = pinning(method, pins)
    _check_unequal(series, method, pins)
    compares = compares and method is Method.ols and not pins
    compares = compares and all(points.weight_N is None for points in series)
    with naming(f"{series[0].runs[0].family} on {series[0].runs[0].dataset}" if series else ""):
        return [_fit(points, method, pins, compares) for points in series]


def with_offset(law: Law, points: Points) -> Law:
    """The law with the offset of its comparison of forms, judged."""
    found = None if law.choice is None or law.fit.n_replicates_left_out else law.choice.law  # of |y| it leaves none out
    return _fit(points, Method.offset, NO_PRIORS, False, found)


def _fit(points: Points, method: Method, pins: Priors, compares: bool, fitted: PowerLaw | None = None) -> Law:
    if points.doubt in (Status.not_known, Status.not_positive):
        law = with_reasons(fit_power_law(points.S_N, points.y_N), [points.doubt])
        return Law(points.law, points.k, method, law, None, points.runs)
    own = quantity(points.law)
    signed = points.law.startswith(_SIGNED) if own is None else own.signed
    tokens = [run.training_tokens if run.axis is Axis.S else None for run in points.runs]  # of laws in size alone
    replicates = _replicates(points, signed)
    fit, tests = fit_judged(
        np.asarray(points.S_N), points.y_N, replicates, method, pins, signed, points.weight_N, tokens, fit=fitted
    )
    if points.doubt is Status.one_document:
        fit = replace(fit, alpha=replace(fit.alpha, lo=None, hi=None))
    choice = compare_forms(fit, positive_replicates(replicates)) if compares else None
    reasons = [*(fit.reasons or ()), points.doubt]
    return Law(points.law, points.k, method, with_reasons(fit, reasons), choice, points.runs, tests)


def _replicates(points: Points, signed: bool) -> Replicates | None:
    if points.y_BN is None or points.doubt is Status.one_document:
        return None
    sign = -1 if signed and len(points.y_N) > 0 and points.y_N[0] < 0 else 1
    return Replicates.of(sign * points.y_BN, points.n_effective)


def _check_unequal(series: Sequence[Points], method: Method, pins: Priors) -> None:
    is_weighted = any(points.weight_N is not None for points in series)
    beside = next((f"{name}={pin}" for name, pin in pins.items()), "" if method is Method.ols else f"method={method}")
    if is_weighted and beside:
        raise RbpxError(
            f"a column weight and {beside} do not go together: runs that do not count alike take method=ols alone"
        )


@contextmanager
def naming(title: str) -> Iterator[None]:
    """Add the title of the runs to an error about a fixed parameter, as an RbpxError."""
    try:
        yield
    except ImpossiblePrior as error:
        raise RbpxError(f"{title}: {error}") from error


def pinning(method: Method, pins: Priors) -> Method:
    """The method for a law with fixed parameters, `offset` where E is; raises RbpxError if it has no such parameter."""
    if not pins:
        return method
    chosen = Method.offset if method is Method.ols and "E" in pins else method
    constants = PINNABLE.get(chosen, ())
    foreign = [f"{name}={pin}" for name, pin in pins.items() if name not in constants]
    if foreign:
        methods = "; ".join(f"method={each.value} has {', '.join(names)}" for each, names in PINNABLE.items())
        raise RbpxError(f"{', '.join(foreign)} is no constant that can be given with method={chosen.value}; {methods}")
    return chosen


def doubted(group: Group, law: Law) -> Law:
    """Add the warnings about the runs and documents of its group."""
    return replace(law, fit=_with_more(law.fit, [*document_doubts(group, law.fit), *group.doubts]))


def document_doubts(group: Group, fit: PowerLaw) -> list[Status]:
    """The warning dependent_documents where the interval of alpha is too narrow for dependent documents."""
    sd, _ = fit.alpha_sds
    if group.documents is None or sd is None or fit.alpha.lo is None or fit.alpha.hi is None:
        return []
    narrow = group.documents.leave_too_narrow((fit.alpha.hi - fit.alpha.lo) / 2, sd**2)
    return [Status.dependent_documents] if narrow else []


def _with_more(fit: PowerLaw, reasons: Sequence[Status]) -> PowerLaw:
    if not reasons:
        return fit
    return with_reasons(fit, [*(fit.reasons or ()), fit.status, *reasons])


def of_one_document(group: Group, fit: PowerLaw) -> PowerLaw:
    """Remove the interval, and add a status, where a group has one document, which cannot be resampled."""
    if group.n_resampled != 1 or fit.alpha.value is None:
        return fit
    return replace(_with_more(fit, [Status.one_document]), alpha=replace(fit.alpha, lo=None, hi=None))


def power_law_of(group: Group, points: Points) -> PowerLaw:
    """The power law of some points, not judged; one document gives it no interval."""
    return of_one_document(group, fit_power_law(points.S_N, points.y_N, points.replicates))


def with_document_doubts(group: Group, fit: PowerLaw) -> PowerLaw:
    """Apply `of_one_document`, and add the warning of `document_doubts`."""
    fit = of_one_document(group, fit)
    return _with_more(fit, document_doubts(group, fit))


def alike(rows: Sequence[Record]) -> list[Record]:
    """Give rows of several kinds the same columns, None where a row has no value."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


def with_cells(group: Group, rows: list[Record], cells: Sequence[SweepCell]) -> list[Record]:
    """Append a row of kind cell for each best run of a sweep."""
    if not cells:
        return rows
    of_cells = [{"kind": "cell", **group.names(), **cell.row()} for cell in cells]
    return alike([*({"kind": "law", **row} for row in rows), *of_cells])


def fit_record(group: Group, law: Law, resamples: int, own: Record | None = None) -> Record:
    """A row of `fits`; `own` has the params that only this law has."""
    run_ids = [run_id for run in law.runs for run_id in run.run_ids]
    choice = {} if law.choice is None else {"choice": law.choice.record()}
    more: dict[str, Any] = {"resamples": resamples, "sizes": [run.size for run in law.runs], **choice}
    more |= about_axis(group)
    size = {} if group.fixed_size is None else {"size": group.fixed_size}
    params = law.fit.record() | (own or {}) | more
    return record_of(group, law.law, law.fit, run_ids, law.method, k=law.k, params=params, **size)


def about_axis(group: Group) -> dict[str, Any]:
    """The params of a law that is not in S; its `S` are positions on the axis."""
    if group.axis is Axis.S:
        return {"notes": group.notes} if group.notes else {}
    return {"axis": group.axis.value, "notes": group.notes, "revisions": [run.revision for run in group.runs]}


def record_of(group: Group, law: str, fit: LawFit, run_ids: Sequence[str], method: str, **more: Any) -> Record:
    """A row of `fits` for any law; `more` are its own columns (k, size, params), and `n`, which enters its id only."""
    names = group.names()
    shared = [names[name] for name in ("ties", "source", "family", "dataset", "revision")]
    apart = [
        more.get("k"),
        more.get("size"),
        more.pop("n", None),
        *filter(None, [names["variant"], names.get("model")]),
    ]
    apart += [] if group.axis is Axis.S else [group.axis.value]
    by = group.first.size_by
    apart += [] if by is SizeBy.total else [f"size_by={by.value}"]
    params = more.get("params") or {}
    pins = {name: [pin["value"], pin["sd"]] for name, pin in (params.get("pins") or {}).items()}
    apart += [pins] if pins else []
    apart += ["frontier"] if params.get("frontier") else []
    apart += [{name: params[name]} for name in ("over", "weights") if name in params]
    values: Record = {
        **names,
        **fit.columns(),
        "fit_id": digest([law, str(method), *shared, *apart, sorted(run_ids)]),
        "law": law,
        "method": str(method),
        "axis": group.axis.value,
        "run_ids": list(run_ids),
        "created_at": now(),
        **more,
    }
    if by is not SizeBy.total:
        values["params"] = (values.get("params") or {}) | {"size_by": by.value}
    return {name: values.get(name) for name in FITS.names}


def rank_fit_record(run: Run, ties: Ties, fit: RankFit, implied: Record) -> Record:
    """A row of `rank_fits`; `implied` has params besides those of the distribution."""
    return {
        **{name: each for name, each in vars(fit).items() if name != "theta"},
        **{"run_id": run.run_id, "ties": ties.value, "created_at": now()},
        "params": fit.params | implied,
    }


def stands(law: Law) -> bool:
    """Whether a law holds: the interval of alpha lies above 0 and no warning says that its form or alpha is unsure.

    0 < RBP_k < 1 must hold at every size and in nearly all replicates.
    """
    fit = law.fit
    falls = fit.alpha.lo is not None and fit.alpha.lo > 0
    few = fit.n_replicates_left_out <= MOST_LEFT_OUT * (fit.n_replicates or 0)
    return falls and few and not _AGAINST & set(fit.reasons or ())


def largest_standing(laws: Iterable[Law]) -> int | None:
    """The largest k at which a law stands."""
    return max((law.k for law in laws if law.k is not None and stands(law)), default=None)
