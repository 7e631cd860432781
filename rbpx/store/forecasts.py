"""Forecasts of a store: predictions that are registered before their model comes, and never change afterwards.

A record is named after a digest of all its contents, and names the records that it follows. A file with other contents
therefore does not match its name, and a forecast that is taken away is missed by those that were registered after it.
The last one is held to its word by whoever noted its id when it was printed.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from rbpx.errors import RbpxError
from rbpx.store.checks.values import own_name
from rbpx.store.files.ledger import locked, since
from rbpx.store.store import Record, Store, now

__all__ = ["backdated", "forecast_id", "lost_before", "register", "rows_of"]

_KIND = "forecasts"
_CLOCKS = timedelta(days=1)  # by which those of two machines, or of two zones, may differ


def forecast_id(record: Record) -> str:
    """The id of a record: NAME-DIGEST, the name of its file."""
    return str(own_name(_KIND, record))


def rows_of(store: Store, record: Record) -> list[Record]:
    """A row of the relation `forecasts` for each prediction of a record."""
    shared = {name: value for name, value in record.items() if name != "predictions"}
    own = {"forecast_id": forecast_id(record), "seen_at": since(store.record_file(_KIND, forecast_id(record)))}
    return [{**shared, **each, **own} for each in record["predictions"]]


def backdated(store: Store, record: Record) -> str | None:
    """The fault of a record that claims to be older than a run that it rests on; None where it does not.

    A record states its own time, which cannot be earlier than the times of its runs, but for clocks that differ.
    """
    registered = datetime.fromisoformat(record["registered_at"])
    for run_id in sorted({each for one in record["predictions"] for each in one.get("run_ids") or ()}):
        if not store.has_run(run_id):
            continue
        with suppress(OSError, ValueError, TypeError, KeyError):  # a run that is corrupt is reported as such
            measured = datetime.fromisoformat(store.manifest(run_id)["started_at"])
            if measured - registered > _CLOCKS:
                return (
                    f"it says that it was registered on {registered:%Y-%m-%d}, but rests on run {run_id}, which was "
                    f"measured on {measured:%Y-%m-%d}"
                )
    return None


def register(store: Store, name: str, facts: Record, predictions: Sequence[Record]) -> str:
    """Write predictions under a name that no forecast of the store has; returns their id.

    Args:
        store: the store.
        name: as users call it.
        facts: what all predictions share: names of the group and the versions.
        predictions: the columns of `forecasts` that are theirs alone.

    Raises:
        RbpxError: the store has a forecast of that name, or cannot be written.
    """
    store.prepare()
    with locked(store.root, ".forecasts.lock"):
        known = list(store.records(_KIND))
        refuse_known(name, known)
        followed = {before for record in known for before in record["follows"]}
        heads = sorted({forecast_id(record) for record in known} - followed)
        record = {"name": name, "registered_at": now(), **facts, "follows": heads, "predictions": list(predictions)}
        record = json.loads(json.dumps(record, allow_nan=False))
        store.write_record(_KIND, forecast_id(record), record)
        store.finish()
    return forecast_id(record)


def refuse_known(name: str, known: Iterable[Record]) -> None:
    """Refuse a name that a forecast has.

    Raises:
        RbpxError: with when that one was registered.
    """
    for record in known:
        if record["name"] == name:
            raise RbpxError(
                f"register={name} names a forecast of {record['registered_at'][:16]} already; forecasts never change, "
                "so choose another name"
            )


def lost_before(store: Store, record: Record) -> list[str]:
    """The forecasts that a record follows and that the store lacks, or holds changed."""
    return [before for before in record["follows"] if store.record(_KIND, before) is None]
