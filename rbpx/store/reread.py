"""Asks a store again, without the file, when a file turns out to be damaged while it is read."""

from collections.abc import Callable
from typing import TypeVar

from rbpx.errors import DamageError
from rbpx.store.integrity import doubt
from rbpx.store.remote import open_store

T = TypeVar("T")


def read_again(store: str, do: Callable[[], T]) -> T:
    """Do something with a store; if a file fails while it is read, check all files and repeat without the damaged."""
    try:
        return do()
    except DamageError:
        doubt(open_store(store))
        return do()
