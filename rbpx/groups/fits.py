"""A law fitted to the points of a group: its fit, and its row of the relation `fits`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rbpx.files.digest import digest
from rbpx.groups.points import Points
from rbpx.groups.selection import Group, Run
from rbpx.laws.form import FormVerdict, compare_forms
from rbpx.laws.names import Method
from rbpx.laws.power import PowerLawFit, fit_power_law, fit_signed_power_law
from rbpx.laws.quantity import quantity
from rbpx.laws.rank_fit import RankFit
from rbpx.status import Status
from rbpx.store.schema import FITS
from rbpx.store.store import Record, Store, now
from rbpx.ties import Ties

_SIGNED = ("error_entropy", "self_alignment", "confidence")  # and what is made of them, as confidence_share


@dataclass(frozen=True)
class Law:
    """One fitted law of a group; `k` is None where the law has none, `choice` where no forms were compared."""

    law: str
    k: int | None
    method: Method
    fit: PowerLawFit
    choice: FormVerdict | None
    runs: tuple[Run, ...]


def fit_points(points: Points, method: Method, compares: bool = False) -> Law:
    """Fit one law to its points and compare forms; a doubt known beforehand is its status, or prevents the fit."""
    sizes = points.S_N
    if points.doubt in (Status.not_known, Status.beyond_vocabulary):
        fit = replace(fit_power_law(sizes, points.y_N), status=points.doubt)
        return Law(points.law, points.k, method, fit, None, points.runs)
    y_BN = None if points.doubt is Status.one_document else points.y_BN
    fit = (fit_signed_power_law if _is_signed(points.law) else fit_power_law)(sizes, points.y_N, y_BN, method)
    choice = compare_forms(fit, None if y_BN is None else np.abs(y_BN)) if compares and method is Method.ols else None
    if points.doubt is not None and fit.status is Status.ok:
        fit = replace(fit, status=points.doubt)
    if points.doubt is Status.one_document:
        fit = replace(fit, alpha_lo=None, alpha_hi=None)
    return Law(points.law, points.k, method, fit, choice, points.runs)


def _is_signed(law: str) -> bool:
    own = quantity(law)
    return law.startswith(_SIGNED) if own is None else own.signed


def of_one_document(group: Group, fit: PowerLawFit) -> PowerLawFit:
    """Remove the interval, with a status that says so, where a group has one document, which cannot be resampled."""
    if group.n_documents != 1 or fit.status is not Status.ok:
        return fit
    return replace(fit, status=Status.one_document, alpha_lo=None, alpha_hi=None)


def fit_record(group: Group, law: Law, resamples: int) -> Record:
    """A row of the relation `fits`."""
    run_ids = [run_id for run in law.runs for run_id in run.run_ids]
    choice = {} if law.choice is None else {"choice": law.choice.record()}
    more: dict[str, Any] = {"resamples": resamples, "sizes": [run.size for run in law.runs], **choice}
    return record_of(group, law.law, law.fit, run_ids, law.method, k=law.k, params=law.fit.params | more)


def record_of(group: Group, law: str, fit: PowerLawFit, run_ids: Sequence[str], method: str, **more: Any) -> Record:
    """A row of `fits` for any law; `more` are its own columns (k, size, params), and `n`, which enters its id only."""
    names = group.names()
    shared = [names[name] for name in ("ties", "source", "family", "dataset", "revision")]
    apart = [more.get("k"), more.get("size"), more.pop("n", None)]
    values: Record = {
        **names,
        **asdict(fit),
        "fit_id": digest([law, str(method), *shared, *apart, sorted(run_ids)]),
        "law": law,
        "method": str(method),
        "run_ids": list(run_ids),
        "created_at": now(),
        **more,
    }
    return {name: values.get(name) for name in FITS.names}


def write_rank_fit(store: Store, run: Run, ties: Ties, fit: RankFit, implied: Record) -> Record:
    """Write a row of the relation `rank_fits`; params that other analyses wrote for this distribution are kept."""
    name = f"{run.run_id}-{ties.value}-{fit.distribution}"
    previous = store.record("rank_fits", name) or {"params": {}}
    record = {"run_id": run.run_id, "ties": ties.value, **asdict(fit), "created_at": now()}
    record["params"] = previous["params"] | fit.params | implied
    store.write_record("rank_fits", name, record)
    return record
