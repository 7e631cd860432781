"""Stores by name: a folder, or the mirror of one in object storage."""

import re
from pathlib import Path

from rbpx.store.store import Store

_URL = re.compile(r"[a-z][a-z0-9]+://.")


def is_remote(name: str) -> bool:
    """Whether a store is named by a URL."""
    return _URL.match(name) is not None


def open_store(name: str) -> Store:
    """Open the store of that name for reading: a folder, or one in object storage (s3://BUCKET/PATH).

    Raises:
        RbpxError: there is no bucket of that name, or no access to it.
        MeasureError: the storage does not answer.
    """
    return _open(name, writes=False)


def own_store(name: str) -> Store:
    """Open the store of that name for writing.

    Raises:
        RbpxError: there is no bucket of that name, or no access to it.
        MeasureError: the storage does not answer.
    """
    return _open(name, writes=True)


def _open(name: str, writes: bool) -> Store:
    if not is_remote(name):
        return Store(Path(name))
    from rbpx.store.mirror import Mirror

    return Mirror(name, writes)
