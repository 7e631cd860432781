"""Reading that may meet a damaged file: what to do with a store in, its answer without what is damaged out."""

from collections.abc import Callable
from typing import TypeVar

from rbpx.errors import DamageError
from rbpx.store.integrity import doubt
from rbpx.store.remote import open_store

T = TypeVar("T")


def read_again(store: str, do: Callable[[], T]) -> T:
    """A file that fails while it is read is looked at again, and left out the second time."""
    try:
        return do()
    except DamageError:
        doubt(open_store(store))
        return do()
