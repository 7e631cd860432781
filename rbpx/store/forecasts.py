"""Registers forecasts in a store: predictions made before their model exists, one record each, never overwritten."""

from collections.abc import Iterable, Sequence

from filelock import FileLock

from rbpx.errors import RbpxError
from rbpx.files.digest import digest
from rbpx.store.store import Record, Store, now
from rbpx.store.verify import tables_hash

__all__ = ["refuse_known", "register"]

_KIND = "forecasts"


def register(store: Store, name: str, facts: Record, predictions: Sequence[Record]) -> str:
    """Write predictions, and the `facts` that all share, under a name that no forecast has; returns their id.

    The record has its time and the hashes of its runs, which `store verify` compares.

    Raises:
        RbpxError: the store has a forecast of that name, or cannot be written.
    """
    store.prepare()
    with FileLock(store.root / ".forecasts.lock"):
        refuse_known(name, store.records(_KIND))
        run_ids = sorted({run_id for each in predictions for run_id in each.get("run_ids") or ()})
        runs = {run_id: tables_hash(store.manifest(run_id)) for run_id in run_ids if store.has_run(run_id)}
        record = {"name": name, "registered_at": now(), **facts, "runs": runs, "predictions": list(predictions)}
        forecast_id = f"{name}-{digest(record)}"
        store.write_record(_KIND, forecast_id, record)
    return forecast_id


def refuse_known(name: str, known: Iterable[Record]) -> None:
    """Raises RbpxError for a name that a forecast has."""
    for record in known:
        if record["name"] == name:
            at = str(record.get("registered_at"))[:16]
            raise RbpxError(
                f"register={name} names a forecast of {at} already; forecasts never change, so choose another name"
            )
