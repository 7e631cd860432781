"""Repeats a question to a store when a file turns out to be corrupt while it is read, this time without the file."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from rbpx.errors import DamageError, MeasureError
from rbpx.files.output import Rows
from rbpx.store.integrity import doubt
from rbpx.store.remote import open_store
from rbpx.store.store import Store

T = TypeVar("T")


def read_again(store: str, do: Callable[[], T]) -> T:
    """Call `do`; if a file of the store fails while it is read, check all files and repeat without the corrupt ones."""
    try:
        return do()
    except DamageError:
        doubt(open_store(store))
        return do()


def known_complete(rows: Rows, store: Store, output: str | None) -> Rows:
    """Rows on their way to an output; what was printed cannot be taken back, so it is said that it is not all.

    Raises:
        MeasureError: a file of the store failed after rows were printed; files are written whole or not at all, so for
            an output that is a file the question can be repeated, as `read_again` does.
    """

    def parts() -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except DamageError as problem:
            if output is not None:
                raise
            doubt(store)
            raise MeasureError(f"{problem}; what was printed is not all: run the same line again") from None

    return Rows(rows.schema, parts())
