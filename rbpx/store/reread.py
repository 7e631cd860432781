"""Repeats a question to a store when a file turns out to be corrupt while it is read, this time without the file."""

from collections.abc import Callable
from typing import TypeVar

from rbpx.errors import DamageError

T = TypeVar("T")


def read_again(store: str, do: Callable[[], T]) -> T:
    """Call `do`; if a file of the store fails while it is read, check all files and repeat without the corrupt ones."""
    try:
        return do()
    except DamageError:
        # imported here because most commands find no damage, and some need no table at all
        from rbpx.store.checks.integrity import doubt
        from rbpx.store.named import open_store

        doubt(open_store(store))
        return do()
