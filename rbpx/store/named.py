"""Opens stores by name: a folder, or the mirror of a store in object storage.

A question whose file turns out to be corrupt while it is read is asked again, without that file.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rbpx.errors import DamageError, RbpxError

if TYPE_CHECKING:
    from rbpx.store.store import Store

T = TypeVar("T")
_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)  # of object storage or not: no folder is meant

_opened: ContextVar["dict[tuple[str, bool], Store] | None"] = ContextVar("opened", default=None)


@contextmanager
def opened_once() -> Iterator[None]:
    """Open each store in object storage once while the block lasts, since all that is in it is listed then."""
    before = _opened.set({})
    try:
        yield
    finally:
        _opened.reset(before)


def is_remote(name: str) -> bool:
    """Whether a store is named by a URL."""
    return _URL.match(name) is not None


def open_store(name: str) -> "Store":
    """Open the store of that name for reading: a folder, or one in object storage (s3://BUCKET/PATH).

    Raises:
        RbpxError: there is no bucket of that name, or no access to it.
        MeasureError: the storage does not answer.
    """
    return _open(name, writes=False)


def own_store(name: str) -> "Store":
    """Open the store of that name for writing.

    Raises:
        RbpxError: there is no bucket of that name, or no access to it.
        MeasureError: the storage does not answer.
    """
    return _open(name, writes=True)


def _open(name: str, writes: bool) -> "Store":
    from rbpx.store.store import Store

    if not name:
        raise RbpxError("a store without a name would be this folder; give the path of a folder, or '.' for this one")
    if not is_remote(name):
        return Store(Path(name))
    from rbpx.store.remote.mirror import Mirror

    opened = _opened.get()
    if opened is None:
        return Mirror(name, writes)
    if (name, writes) not in opened:
        opened[name, writes] = Mirror(name, writes)
    return opened[name, writes]


def read_again(store: str, do: Callable[[], T]) -> T:
    """Call `do`; if a file of the store fails while it is read, check all files and repeat without the corrupt ones."""
    try:
        return do()
    except DamageError:
        # imported here because most commands find no damage, and some need no table at all
        from rbpx.store.checks.integrity import doubt

        doubt(open_store(store))
        return do()
